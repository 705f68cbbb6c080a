"""A crash loop: three thousand processes that live for a millisecond. Losses are counted, memory
stays flat, they have names.
"""

import shutil
import subprocess
from collections import Counter
from pathlib import Path

import pytest

from necroscope.store.query import Store

pytestmark = [pytest.mark.kernel, pytest.mark.root]
SHELLS, TURNS = 2, 1500
MOST_GROWTH_BYTES = 8 << 20


def rss_bytes(pid: int) -> int:
    line = next(
        line
        for line in Path(f"/proc/{pid}/status").read_text().splitlines()
        if line.startswith("VmRSS:")
    )
    return int(line.split()[1]) << 10


def test_three_thousand_short_lived_processes(record, tmp_path, leaks):
    blink = tmp_path / "blink"
    shutil.copy("/bin/true", blink)
    recorder = record()
    recorder.wait_for_rows("cores", 6)
    before_bytes = rss_bytes(recorder.process.pid)
    loop = f"i=0; while [ $i -lt {TURNS} ]; do {blink}; i=$((i+1)); done"
    shells = [
        subprocess.Popen(["/bin/sh", "-c", loop], stdin=subprocess.DEVNULL) for _ in range(SHELLS)
    ]
    assert [shell.wait(timeout=60) for shell in shells] == [0] * SHELLS
    seen = len(recorder.rows("cores"))
    recorder.wait_for_rows("cores", seen + 4)
    growth_bytes = rss_bytes(recorder.process.pid) - before_bytes
    code, facts, _ = recorder.stop()
    assert code == 0
    assert growth_bytes < MOST_GROWTH_BYTES
    store = Store.open(recorder.directory)
    losses = [
        row for row in store.rows("gaps", 0, 1 << 62).to_pylist() if row["table"] == "samples"
    ]
    assert sum(row["lost"] for row in losses) == facts["lost_samples"], "what is lost is counted"
    comms = Counter(row["comm"] for row in store.rows("samples", 0, 1 << 62).to_pylist())
    nameless = sum(count for comm, count in comms.items() if comm.startswith(":"))
    assert comms["blink"] > 20
    assert nameless * 50 < comms["blink"] + comms["sh"], comms
    assert leaks() == []
