"""A treatment is applied as a whole or not at all, also when it fails, is killed, or meets
another.
"""

import os
import signal
import time
from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import pytest

from necroscope.errors import SourceUnavailable, TreatmentFailed
from necroscope.treat import treatment
from necroscope.treat.act_ledger import (
    APPLIED,
    TAKEN_BACK,
    TreatmentAct,
    TreatmentRecord,
    UndoLedger,
    ledgers,
    only_one,
)
from necroscope.treat.treatment import Treatment, UndoKind


@pytest.fixture
def root(tmp_path: Path) -> Path:
    reboot(tmp_path / "root", "first-boot")
    return tmp_path / "root"


@pytest.fixture
def state(tmp_path: Path) -> Path:
    return tmp_path / "state"


def reboot(root: Path, identity: str) -> None:
    folder = root / "proc/sys/kernel/random"
    folder.mkdir(parents=True, exist_ok=True)
    (folder / "boot_id").write_text(identity)


@dataclass
class Mark:
    """Makes a file; undone by removing it."""

    file: Path
    fails: bool = False
    meanwhile: Callable[[], None] = lambda: None

    def describe(self) -> list[str]:
        return [f"make {self.file}"]

    def as_json(self) -> dict[str, Any]:
        return {"kind": "mark"}

    def apply(self, note: Callable[[TreatmentAct], None], say: Callable[[str], None]) -> None:
        note(TreatmentAct("mark", {"file": str(self.file)}))
        self.file.write_text("done")
        self.meanwhile()
        if self.fails:
            raise SourceUnavailable("the second half does not work", "a hint")
        say("made")


def unmark(_root: Path, data: dict[str, Any]) -> str:
    Path(data["file"]).unlink(missing_ok=True)
    return "removed"


KINDS = {"mark": UndoKind(unmark), "lasting": UndoKind(unmark, outlives_reboot=True)}


def apply(root: Path, state: Path, *steps: Mark) -> str:
    return treatment.apply(Treatment("a test", steps), root, state, KINDS, lambda _: None)


def undo(root: Path, state: Path, identity: str | None = None) -> list[str]:
    said: list[str] = []
    treatment.undo(identity, root, state, KINDS, said.append)
    return said


def newest(state: Path) -> TreatmentRecord:
    return ledgers(state)[0].record()


def test_what_was_applied_is_undone_as_a_whole(root: Path, state: Path, tmp_path: Path) -> None:
    apply(root, state, Mark(tmp_path / "a"), Mark(tmp_path / "b"))
    assert newest(state).outcome == APPLIED
    undo(root, state)
    assert not (tmp_path / "a").exists()
    assert not (tmp_path / "b").exists()
    assert newest(state).outcome == TAKEN_BACK
    with pytest.raises(TreatmentFailed, match="nothing to undo"):
        undo(root, state)


def test_one_that_fails_half_way_is_taken_back_and_says_so(
    root: Path, state: Path, tmp_path: Path
) -> None:
    with pytest.raises(TreatmentFailed) as caught:
        apply(root, state, Mark(tmp_path / "a"), Mark(tmp_path / "b", fails=True))
    assert caught.value.facts == ("the second half does not work; all that was done was taken back")
    assert caught.value.hint == "a hint"
    assert not (tmp_path / "a").exists()
    assert newest(state).outcome == TAKEN_BACK


def killed(root: Path, state: Path, *steps: Mark) -> None:
    """The treatment in a process that is killed when a step says so; waits for its guardian."""
    child = os.fork()
    if not child:
        apply(root, state, *steps)
        os._exit(0)
    os.waitpid(child, 0)
    deadline = time.monotonic() + 10
    while time.monotonic() < deadline:
        try:
            with only_one(state):
                return
        except TreatmentFailed:
            time.sleep(0.01)
    pytest.fail("the guardian did not end")


def die() -> None:
    os.kill(os.getpid(), signal.SIGKILL)


def test_one_that_is_killed_is_taken_back_by_its_guardian(
    root: Path, state: Path, tmp_path: Path
) -> None:
    killed(root, state, Mark(tmp_path / "a"), Mark(tmp_path / "b", meanwhile=die))
    assert not (tmp_path / "a").exists()
    assert not (tmp_path / "b").exists()
    assert newest(state).outcome == TAKEN_BACK


def test_one_whose_guardian_was_killed_too_is_taken_back_by_the_next(
    root: Path, state: Path, tmp_path: Path
) -> None:
    state.mkdir()
    left = UndoLedger.begin(state, "killed", "first-boot")
    left.write(TreatmentAct("mark", {"file": str(tmp_path / "a")}))
    (tmp_path / "a").write_text("half done")
    apply(root, state, Mark(tmp_path / "b"))
    assert not (tmp_path / "a").exists()
    assert left.record().outcome == TAKEN_BACK


def test_two_at_once_are_refused(root: Path, state: Path, tmp_path: Path) -> None:
    def another() -> None:
        with pytest.raises(TreatmentFailed, match="another treatment is under way"):
            apply(root, state, Mark(tmp_path / "b"))

    apply(root, state, Mark(tmp_path / "a", meanwhile=another))
    assert not (tmp_path / "b").exists()
    assert newest(state).outcome == APPLIED


def test_after_a_reboot_only_what_outlives_it_is_undone(
    root: Path, state: Path, tmp_path: Path
) -> None:
    state.mkdir()
    ledger = UndoLedger.begin(state, "before the reboot", "first-boot")
    for kind, name in (("lasting", "mask"), ("mark", "affinity")):
        (tmp_path / name).write_text("")
        ledger.write(TreatmentAct(kind, {"file": str(tmp_path / name)}))
    ledger.end(APPLIED)
    reboot(root, "second-boot")
    assert undo(root, state) == ["mark: the reboot has taken it back", "removed"]
    assert not (tmp_path / "mask").exists()
    assert (tmp_path / "affinity").exists()


def test_what_cannot_be_undone_stays_to_be_undone(root: Path, state: Path, tmp_path: Path) -> None:
    folder = tmp_path / "a"
    identity = apply(root, state, Mark(folder))
    folder.unlink()
    folder.mkdir()
    with pytest.raises(TreatmentFailed, match="cannot undo mark"):
        undo(root, state, identity)
    folder.rmdir()
    undo(root, state, identity)
    assert newest(state).outcome == TAKEN_BACK


def test_a_line_that_was_cut_short_was_not_followed_by_its_act(state: Path, tmp_path: Path) -> None:
    state.mkdir()
    ledger = UndoLedger.begin(state, "cut", "boot")
    ledger.write(TreatmentAct("mark", {"file": str(tmp_path / "a")}))
    with (ledger.directory / "acts.jsonl").open("a") as file:
        file.write('{"kind": "mark", "data": {"fi')
    ledger.write(TreatmentAct("mark", {"file": str(tmp_path / "b")}))
    assert [Path(act.data["file"]).name for act in ledger.record().acts] == ["a", "b"]


def test_a_treatment_that_is_not_there_is_not_undone(root: Path, state: Path) -> None:
    with pytest.raises(TreatmentFailed, match="there is no treatment nonsense to undo"):
        undo(root, state, "nonsense")
