"""Which pinned windows are due for their evidence, and the one process at a time that packs it."""

import shutil
import sys
import time
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any, Final

from necroscope.errors import CorruptData
from necroscope.model.child import Child, read_piece
from necroscope.model.names import clean
from necroscope.model.span import Extent, Span
from necroscope.model.units import NS_PER_S
from necroscope.outlets.push.evidence_process import BUNDLE_FILE, EVIDENCE_FILE
from necroscope.segment.checksum import read_checked
from necroscope.segment.recording import Pin

# A pin that grows on and on is packed by the hour.
_PIECE_NS: Final = 3600 * NS_PER_S
# What was quiet before an incident is compared with it.
_BEFORE_NS: Final = 300 * NS_PER_S
_LIMIT_S: Final = 300.0


@dataclass(frozen=True, slots=True)
class WindowDue:
    """A window to pack: what was over by `since_ns` is packed already. `key` names its pin."""

    key: str
    span: Span
    since_ns: int


@dataclass(frozen=True, slots=True)
class WindowEvidence:
    """What the process found; `trouble` says why it found nothing."""

    due: WindowDue
    incidents: list[dict[str, Any]]
    episodes: list[dict[str, Any]]
    bundle_name: str | None = None
    bundle: bytes | None = None
    trouble: str | None = None


def next_due(
    pins: Sequence[Pin], packed: Mapping[str, int], recorded: Extent, *, is_ended: bool
) -> WindowDue | None:
    """The newest window that is over. `packed` says of a pin's start up to where it is packed."""
    first_ns, last_ns = recorded
    for pin in sorted(pins, key=lambda pin: -pin.from_ns):
        key = str(pin.from_ns)
        packed_ns = packed.get(key, 0)
        start_ns = max(pin.from_ns, packed_ns)
        end_ns = min(pin.to_ns, start_ns + _PIECE_NS)
        if end_ns <= max(start_ns, first_ns) or start_ns >= last_ns:
            continue
        if is_ended or last_ns >= end_ns:
            from_ns = max(pin.from_ns, start_ns - _BEFORE_NS, first_ns)
            return WindowDue(key, Span(from_ns, min(end_ns, last_ns + 1)), packed_ns)
    return None


def note(packed: dict[str, int], due: WindowDue, pins: Sequence[Pin]) -> None:
    """Take a window as packed; what is known of pins that are gone is forgotten."""
    packed[due.key] = due.span.to_ns
    present = {str(pin.from_ns) for pin in pins} | {due.key}
    for key in set(packed) - present:
        del packed[key]


class EvidenceProcess:
    """One window at a time; one that takes too long is killed, and its window goes without
    evidence.
    """

    def __init__(
        self, recording: Path, work: Path, clock: Callable[[], float] = time.monotonic
    ) -> None:
        self._recording = recording
        self._work = work
        self._clock = clock
        self._child: Child | None = None
        self._due: WindowDue | None = None

    @property
    def is_busy(self) -> bool:
        return self._child is not None

    def start(self, due: WindowDue) -> None:
        shutil.rmtree(self._work, ignore_errors=True)
        self._work.mkdir(mode=0o700)
        window = [str(due.span.from_ns), str(due.span.to_ns), str(due.since_ns)]
        module = "necroscope.outlets.push.evidence_process"
        command = [
            sys.executable,
            "-P",
            "-m",
            module,
            str(self._recording.absolute()),
            *window,
            str(self._work.absolute()),
        ]
        self._child = Child(command, stderr=True, deadline_s=_LIMIT_S, clock=self._clock)
        self._due = due

    def take(self) -> WindowEvidence | None:
        """What it found, once it has ended; never waits."""
        child, due = self._child, self._due
        if child is None or due is None:
            return None
        if child.is_late:
            trouble: str | None = f"packing the evidence took longer than {_LIMIT_S:.0f} s"
        elif child.status is None:
            return None
        else:
            trouble = _trouble(child.status, read_piece(child.stderr) or b"")
        self._child = None
        child.end(0.0)
        judged = (
            WindowEvidence(due, [], [], trouble=trouble) if trouble else self._read_evidence(due)
        )
        shutil.rmtree(self._work, ignore_errors=True)
        return judged

    def wait(self, seconds: float) -> None:
        if self._child is not None:
            self._child.wait(seconds)

    def close(self) -> None:
        if self._child is not None:
            self._child.end(0.0)
            self._child = None
        shutil.rmtree(self._work, ignore_errors=True)

    def _read_evidence(self, due: WindowDue) -> WindowEvidence:
        try:
            content = read_checked(self._work / EVIDENCE_FILE)
            name = content["bundle"]
            bundle = (self._work / BUNDLE_FILE).read_bytes() if name else None
            return WindowEvidence(due, content["incidents"], content["episodes"], name, bundle)
        except (OSError, CorruptData, KeyError, TypeError) as error:
            return WindowEvidence(
                due, [], [], trouble=f"packing the evidence left nothing: {error}"
            )


def _trouble(code: int, said: bytes) -> str | None:
    if code == 0:
        return None
    last = said.strip().rpartition(b"\n")[2]
    words = f": {clean(last[-1000:])}" if last else ""
    return f"packing the evidence ended with {code}{words}"
