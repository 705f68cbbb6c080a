"""Runs that go wrong: nothing of them is left, and there is no label without its truth."""

import os
import secrets
import signal
import subprocess
import sys
import time
from collections.abc import Callable
from pathlib import Path
from typing import Any, ClassVar

import pytest

from necroscope.errors import UsageError
from necroscope.lab.actor import list_marked
from necroscope.lab.label import LABEL_FILE
from necroscope.lab.ledger import ENVIRONMENT, ActLedger
from necroscope.lab.machine_state import MachineState, left_behind
from necroscope.lab.measured import Measurements
from necroscope.lab.run import Request, run
from necroscope.lab.scenario import ImpactMissing, Scenario, Truth
from necroscope.lab.stage import Stage
from necroscope.lab.undo import undo_all

pytestmark = [pytest.mark.root, pytest.mark.kernel]
LAB = [sys.executable, "-m", "necroscope", "lab"]


@pytest.fixture
def state(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """Ledgers of its own: these runs measure nothing, so that they need not wait for others."""
    monkeypatch.setenv(ENVIRONMENT, str(tmp_path / "state"))
    return tmp_path / "state"


class Everything(Scenario):
    """Makes one of each thing there is to undo, then does nothing."""

    name = "everything"
    cause = "rt-hog"
    names: ClassVar[list[str]] = []

    def prepare(self, stage: Stage) -> None:
        stage.make_network()
        stage.mount_tmpfs(1 << 20)
        stage.set_file("/proc/sys/kernel/printk_ratelimit_burst", 11)
        cgroup = stage.make_cgroup(f"{stage.invent('app')}/{stage.invent('app')}")
        stage.start(time.sleep, 600, cgroup=cgroup, cpu=stage.core, policy="fifo", priority=1)
        type(self).names = stage.own_names

    def provoke(self, stage: Stage) -> None:
        stage.hold()

    def verify(self, stage: Stage, measured: Measurements) -> Truth:
        raise ImpactMissing("nothing came of it")


def wait_for(is_true: Callable[[], Any], seconds: float = 40) -> None:
    deadline = time.monotonic() + seconds
    while not is_true():
        assert time.monotonic() < deadline, "nothing came in time"
        time.sleep(0.05)


def test_without_impact_there_is_no_label_and_all_is_undone(tmp_path: Path, state: Path) -> None:
    before = MachineState.take("")
    setting = Path("/proc/sys/kernel/printk_ratelimit_burst").read_text()
    with pytest.raises(ImpactMissing, match="nothing came of it"):
        run(
            Everything, Request(tmp_path / "r", seconds=1, baseline_s=0, force=True), lambda _: None
        )
    assert not (tmp_path / "r" / LABEL_FILE).exists()
    assert Path("/proc/sys/kernel/printk_ratelimit_burst").read_text() == setting
    assert Everything.names
    # Another run may be under way, and make and purge its zombies.
    assert [
        each for each in left_behind(before, "", Everything.names).by_run if "tracked" not in each
    ] == []
    assert {path.name for path in state.iterdir()} == {"lock", "queue"}


def test_kill_9_leaves_a_ledger_and_clean_undoes_it(tmp_path: Path, state: Path) -> None:
    before = MachineState.take("")
    started = subprocess.Popen(
        [*LAB, "run", "softirq-blackout", "--dir", str(tmp_path / "r"), "--force"],
        stderr=subprocess.DEVNULL,
    )
    wait_for(lambda: list((tmp_path / "r").glob("*.live")))
    (ledger,) = state.glob("*/")
    started.kill()
    started.wait()
    acts = (ledger / "acts.jsonl").read_text()
    namespaces = {name for name in os.listdir("/run/netns") if name in acts}
    assert len(namespaces) == 2
    done = subprocess.run([*LAB, "clean"], capture_output=True, text=True)
    assert (done.returncode, done.stdout) == (0, "1 unfinished run undone\n"), done.stderr
    assert left_behind(before, ledger.name, [*namespaces]).by_run == []
    assert not ledger.exists()
    assert (
        subprocess.run([*LAB, "clean"], capture_output=True, text=True).stdout
        == "0 unfinished runs undone\n"
    )


@pytest.mark.parametrize(
    ("number", "is_heard"), [(signal.SIGINT, True), (signal.SIGTERM, True), (signal.SIGTERM, False)]
)
def test_a_signal_undoes_the_run(number: int, is_heard: bool, tmp_path: Path, state: Path) -> None:
    reader, writer = os.pipe()
    started = subprocess.Popen(
        [*LAB, "run", "softirq-blackout", "--dir", str(tmp_path / "r"), "--force"], stderr=writer
    )
    os.close(writer)
    wait_for(lambda: list((tmp_path / "r").glob("*.live")))
    file = next(state.glob("*/acts.jsonl"))
    acts, mark = file.read_text(), file.parent.name
    if not is_heard:
        os.close(
            reader
        )  # the terminal goes with the run: it can say nothing more, and must undo all the same
    started.send_signal(number)
    code = started.wait(40)
    if is_heard:
        with os.fdopen(reader) as said:
            assert "Traceback" not in said.read()
        assert code == 130
    assert not [name for name in os.listdir("/run/netns") if name in acts]
    assert list(list_marked(mark)) == []
    assert not (tmp_path / "r" / LABEL_FILE).exists()
    assert {path.name for path in state.iterdir()} == {"lock", "queue"}


def test_clean_does_not_touch_a_run_that_lives(state: Path) -> None:
    with ActLedger.make(state) as living:
        living.write("file", {"path": "/proc/sys/kernel/printk_ratelimit_burst", "old": "1"})
        assert (
            subprocess.run([*LAB, "clean"], capture_output=True, text=True).stdout
            == "0 unfinished runs undone\n"
        )
        assert living.acts()
        living.discard()


def test_a_directory_with_something_in_it_is_refused(tmp_path: Path, state: Path) -> None:
    (tmp_path / "file").touch()
    with pytest.raises(UsageError, match="is not empty"):
        run(Everything, Request(tmp_path, force=True), lambda _: None)


def test_undo_can_be_repeated(tmp_path: Path) -> None:
    with ActLedger.make(tmp_path / "state") as ledger:
        scratch = tmp_path / "scratch"
        scratch.mkdir()
        stage = Stage(ledger, 0, 5, secrets.randbits(32), scratch)
        Everything().prepare(stage)
        stage.stop_actors()
        copied = [(act.kind, act.data) for act in ledger.acts()]
        assert undo_all(ledger) == []
    with ActLedger.make(tmp_path / "state") as again:
        for kind, data in copied:
            again.write(kind, data)
        assert undo_all(again) == []
