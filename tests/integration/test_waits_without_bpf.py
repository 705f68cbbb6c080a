"""Waits where the kernel refuses BPF: the recorder looks at /proc instead, on the live kernel."""

from pathlib import Path

import pytest
from tests.injected_waits import sleeping_in_the_kernel
from tests.integration.conftest import RunningRecorder
from tests.integration.test_privilege import without_bpf

from necroscope.analysis.engine import diagnose
from necroscope.store.query import Store

pytestmark = [pytest.mark.kernel, pytest.mark.root]


def test_a_task_that_stands_is_found_and_described_without_bpf(tmp_path: Path) -> None:
    with sleeping_in_the_kernel() as pid:
        recorder = RunningRecorder(tmp_path, "--for", "14s", preexec=without_bpf)
        try:
            code, _, said = recorder.wait_for_end()
        finally:
            recorder.kill()
    assert code == 0
    assert "CAP_BPF is missing" in said
    store = Store.open(tmp_path)
    waits = [row for row in store.rows("waits", 0, 1 << 62).to_pylist() if row["pid"] == pid]
    assert [(row["kind"], row["is_open"], row["by_pid"]) for row in waits] == [
        ("blocked", True, None)
    ] * len(waits)
    assert max(row["waited_ns"] for row in waits) >= 5 * 10**9
    assert waits[-1]["stack"] == "kernel_clone", "wchan: the stack takes CAP_SYS_ADMIN"
    causes = {row["cause"] for row in store.rows("gaps", 0, 1 << 62).to_pylist()}
    assert any("looks at /proc, 5 s apart" in cause for cause in causes)
    found = [incident.verdict for incident in diagnose(store).incidents]
    assert any("for its child (vfork)" in verdict.summary for verdict in found)
