"""The undo ledger: each act of a treatment is on disk, with what it takes to undo it, before it is
done.

    STATE/lock                 held by the treatment that is under way, and by its guardian
    STATE/ID/treatment.json    what it is for, when, and in which boot
    STATE/ID/acts.jsonl        a line per act; then one line that says how it ended

A treatment whose file has no last line was killed: it is taken back by its guardian, or by the
command that comes next. A line that was cut short was not followed by its act. The ledger outlives
a reboot, because what it undoes may: the boot id tells which acts a reboot has taken back already.
"""

import contextlib
import fcntl
import json
import os
import secrets
import time
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path
from typing import Any, Final

from necroscope.errors import TreatmentFailed
from necroscope.model.names import clean

ENVIRONMENT: Final = "NECROSCOPE_TREATMENTS"
APPLIED, TAKEN_BACK = "applied", "taken back"
_ACTS, _ABOUT = "acts.jsonl", "treatment.json"


@dataclass(frozen=True, slots=True)
class TreatmentAct:
    """`kind` names who can undo it, with `data`."""

    kind: str
    data: dict[str, Any]


@dataclass(frozen=True, slots=True)
class TreatmentRecord:
    """One treatment as its ledger reports it. `outcome` is None while it is under way, or where it
    was killed.
    """

    id: str
    title: str
    time_ns: int
    boot_id: str
    acts: tuple[TreatmentAct, ...]
    outcome: str | None

    def as_json(self) -> dict[str, Any]:
        kinds = [{"kind": act.kind, **act.data} for act in self.acts]
        about = {"id": self.id, "title": self.title, "time_ns": self.time_ns}
        return {**about, "boot_id": self.boot_id, "acts": kinds, "outcome": self.outcome}


def state_directory() -> Path:
    return Path(os.environ.get(ENVIRONMENT, "/var/lib/necroscope-treatments"))


def read_boot_id(root: Path) -> str:
    try:
        return (root / "proc/sys/kernel/random/boot_id").read_text("ascii").strip()
    except OSError:
        return ""


class UndoLedger:
    """The ledger of one treatment, written by the process that holds the lock."""

    def __init__(self, directory: Path) -> None:
        self.directory = directory

    @classmethod
    def begin(cls, state: Path, title: str, boot_id: str) -> "UndoLedger":
        directory = (
            state / f"{time.strftime('%Y%m%dT%H%M%S', time.gmtime())}-{secrets.token_hex(3)}"
        )
        directory.mkdir(mode=0o700)
        about = {"title": clean(title), "time_ns": time.time_ns(), "boot_id": boot_id}
        _write_durably(directory / _ABOUT, json.dumps(about))
        return cls(directory)

    def write(self, act: TreatmentAct) -> None:
        self._append({"kind": act.kind, "data": act.data})

    def end(self, outcome: str) -> None:
        self._append({"outcome": outcome})

    def _append(self, content: dict[str, Any]) -> None:
        descriptor = os.open(
            self.directory / _ACTS, os.O_WRONLY | os.O_CREAT | os.O_APPEND | os.O_CLOEXEC, 0o600
        )
        try:
            os.write(descriptor, b"\n" + json.dumps(content).encode() + b"\n")
            os.fsync(descriptor)
        finally:
            os.close(descriptor)

    def record(self) -> TreatmentRecord:
        about = _parse(_text(self.directory / _ABOUT))
        acts: list[TreatmentAct] = []
        outcome = None
        for line in _text(self.directory / _ACTS).splitlines():
            content = _parse(line)
            if isinstance(content.get("data"), dict):
                acts.append(TreatmentAct(str(content.get("kind")), content["data"]))
            outcome = content.get("outcome", outcome)
        return TreatmentRecord(
            self.directory.name,
            str(about.get("title", "")),
            int(about.get("time_ns", 0)),
            str(about.get("boot_id", "")),
            tuple(acts),
            outcome,
        )


def ledgers(state: Path) -> list[UndoLedger]:
    """The newest first."""
    if not state.is_dir():
        return []
    folders = [path for path in state.iterdir() if path.is_dir()]
    return [UndoLedger(path) for path in sorted(folders, reverse=True)]


@contextlib.contextmanager
def only_one(state: Path) -> Iterator[None]:
    """One treatment at a time on a node. The lock is inherited by a guardian, so that nobody comes
    in before it has taken back what a killed treatment left.
    """
    state.mkdir(mode=0o700, parents=True, exist_ok=True)
    descriptor = os.open(state / "lock", os.O_RDWR | os.O_CREAT | os.O_CLOEXEC, 0o600)
    try:
        fcntl.flock(descriptor, fcntl.LOCK_EX | fcntl.LOCK_NB)
    except BlockingIOError:
        os.close(descriptor)
        raise TreatmentFailed(
            "another treatment is under way on this node", "wait for it: necroscope treat list"
        ) from None
    try:
        yield
    finally:
        os.close(descriptor)


def _write_durably(path: Path, text: str) -> None:
    temporary = path.with_suffix(".new")
    with temporary.open("w", encoding="utf-8") as file:
        file.write(text)
        file.flush()
        os.fsync(file.fileno())
    temporary.rename(path)
    for folder in (path.parent, path.parent.parent):
        descriptor = os.open(folder, os.O_RDONLY | os.O_CLOEXEC)
        os.fsync(descriptor)
        os.close(descriptor)


def _text(path: Path) -> str:
    try:
        return path.read_text("utf-8", "replace")
    except OSError:
        return ""


def _parse(text: str) -> dict[str, Any]:
    try:
        content = json.loads(text)
    except (ValueError, RecursionError):
        return {}
    return content if isinstance(content, dict) else {}
