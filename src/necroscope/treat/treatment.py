"""A treatment: steps that are planned and shown, then applied one by one, each in the ledger before
it is done; what fails or is killed half-way is taken back as a whole.
"""

import os
import signal
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any, Final, Protocol

from necroscope.errors import NecroscopeError, TreatmentFailed
from necroscope.treat.act_ledger import (
    APPLIED,
    TAKEN_BACK,
    TreatmentAct,
    TreatmentRecord,
    UndoLedger,
    ledgers,
    only_one,
    read_boot_id,
)

Say = Callable[[str], None]
# Undoes an act; says in words what was done. It can be repeated, and does nothing where nothing is
# left to undo.
Undo = Callable[[Path, dict[str, Any]], str]


class TreatmentStep(Protocol):
    """`describe` is what is printed without `--yes`; `apply` calls `note` before each change that
    has to be undone if the treatment does not end.
    """

    def describe(self) -> list[str]: ...

    def as_json(self) -> dict[str, Any]: ...

    def apply(self, note: Callable[[TreatmentAct], None], say: Say) -> None: ...


@dataclass(frozen=True, slots=True)
class Treatment:
    title: str
    steps: tuple[TreatmentStep, ...]

    def as_json(self) -> dict[str, Any]:
        return {"title": self.title, "steps": [step.as_json() for step in self.steps]}


@dataclass(frozen=True, slots=True)
class UndoKind:
    """How acts of a kind are undone. What is only in memory is gone with a reboot."""

    undo: Undo
    outlives_reboot: bool = False


UndoKinds = dict[str, UndoKind]
_GUARDED_SIGNALS: Final = (signal.SIGINT, signal.SIGTERM, signal.SIGHUP)


def apply(treatment: Treatment, root: Path, state: Path, kinds: UndoKinds, say: Say) -> str:
    """Returns the id to undo it by."""
    with only_one(state):
        recover(root, state, kinds, say)
        release = _start_guardian(root, state, kinds)
        ledger = UndoLedger.begin(state, treatment.title, read_boot_id(root))
        try:
            for step in treatment.steps:
                step.apply(ledger.write, say)
        except BaseException as error:
            release()
            problems = take_back(ledger, root, kinds, say)
            if isinstance(error, NecroscopeError | OSError):
                raise _failure(error, problems) from None
            raise
        ledger.end(APPLIED)
        release()
    return ledger.directory.name


def undo(identity: str | None, root: Path, state: Path, kinds: UndoKinds, say: Say) -> str:
    """The newest that is applied, or the one that is named."""
    with only_one(state):
        recover(root, state, kinds, say)
        known = [ledger for ledger in ledgers(state) if ledger.record().outcome == APPLIED]
        chosen = [ledger for ledger in known if identity in (None, ledger.directory.name)]
        if not chosen:
            raise TreatmentFailed(
                f"there is no treatment {identity} to undo" if identity else "nothing to undo",
                "see: necroscope treat list",
            )
        problems = take_back(chosen[0], root, kinds, say)
        if problems:
            raise TreatmentFailed("; ".join(problems), "mend that, and undo it again")
        return chosen[0].directory.name


def recover(root: Path, state: Path, kinds: UndoKinds, say: Say) -> None:
    """Takes back what was killed, and whose guardian was killed too."""
    for ledger in ledgers(state):
        record = ledger.record()
        if record.outcome is None:
            say(f"treatment {record.id} did not end: taking it back")
            take_back(ledger, root, kinds, say)


def take_back(ledger: UndoLedger, root: Path, kinds: UndoKinds, say: Say) -> list[str]:
    """The last act first; what could not be undone, in words. Then the treatment is over, unless
    something is left to undo.
    """
    record = ledger.record()
    problems = []
    for act in reversed(record.acts):
        try:
            say(_undone(act, record, root, kinds))
        except (OSError, KeyError, ValueError, TypeError, NecroscopeError) as error:
            problems.append(f"cannot undo {act.kind}: {error}")
    if not problems:
        ledger.end(TAKEN_BACK)
    return problems


def _undone(act: TreatmentAct, record: TreatmentRecord, root: Path, kinds: UndoKinds) -> str:
    kind = kinds[act.kind]
    if record.boot_id != read_boot_id(root) and not kind.outlives_reboot:
        return f"{act.kind}: the reboot has taken it back"
    return kind.undo(root, act.data)


def _failure(error: NecroscopeError | OSError, problems: Sequence[str]) -> TreatmentFailed:
    facts = error.facts if isinstance(error, NecroscopeError) else str(error)
    if problems:
        return TreatmentFailed(
            f"{facts}; {'; '.join(problems)}", "mend that, then: necroscope treat undo"
        )
    hint = error.hint if isinstance(error, NecroscopeError) else ""
    return TreatmentFailed(f"{facts}; all that was done was taken back", hint)


def _start_guardian(root: Path, state: Path, kinds: UndoKinds) -> Callable[[], None]:
    """A process that takes the treatment back if this one is killed. It waits for the end of a
    pipe, whose other end only we hold. It is there before the ledger is.
    """
    listening, holding = os.pipe()
    guardian = os.fork()
    if guardian:
        os.close(listening)

        def release() -> None:
            os.write(holding, b".")
            os.close(holding)
            os.waitpid(guardian, 0)

        return release
    try:
        os.setsid()
        for number in _GUARDED_SIGNALS:
            signal.signal(number, signal.SIG_IGN)
        os.close(holding)
        if not os.read(listening, 1):
            recover(root, state, kinds, lambda _text: None)
    finally:
        os._exit(0)
