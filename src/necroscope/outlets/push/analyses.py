"""Which pinned windows are due for a verdict, and the one process at a time that finds it."""

import contextlib
import shutil
import subprocess
import sys
import time
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any, Final

from necroscope.errors import CorruptData
from necroscope.model.names import clean
from necroscope.model.units import NS_PER_S
from necroscope.outlets.push.window_analysis import BUNDLE_FILE, VERDICTS_FILE
from necroscope.segment.checksum import read_checked
from necroscope.segment.recording import Pin

# A pin that grows on and on is judged by the hour.
_PIECE_NS: Final = 3600 * NS_PER_S
# What was quiet before an incident is compared with it.
_BEFORE_NS: Final = 300 * NS_PER_S
# A first verdict while the window still runs (pins end two minutes after what they are for), others
# seldom, the last at its end.
_SOON_NS: Final = 90 * NS_PER_S
_AGAIN_NS: Final = 600 * NS_PER_S
_LIMIT_S: Final = 300.0


@dataclass(frozen=True, slots=True)
class Due:
    """A window to judge: what was over by `since_ns` is told already. `key` names its pin."""

    key: str
    from_ns: int
    to_ns: int
    since_ns: int
    is_final: bool


@dataclass(frozen=True, slots=True)
class Judged:
    """What the process found; `trouble` says why it found nothing."""

    due: Due
    incidents: list[dict[str, Any]]
    episodes: list[dict[str, Any]]
    bundle_name: str | None = None
    bundle: bytes | None = None
    trouble: str | None = None


def next_due(
    pins: Sequence[Pin],
    analysed: Mapping[str, list[int]],
    recorded: tuple[int, int],
    *,
    is_ended: bool,
) -> Due | None:
    """The newest window that is due. `analysed` tells of a pin's start up to where it is judged for
    good, and was looked at.
    """
    first_ns, last_ns = recorded
    for pin in sorted(pins, key=lambda pin: -pin.from_ns):
        key = str(pin.from_ns)
        final_ns, early_ns = analysed.get(key, [0, 0])
        start_ns = max(pin.from_ns, final_ns)
        end_ns = min(pin.to_ns, start_ns + _PIECE_NS)
        if end_ns <= max(start_ns, first_ns) or start_ns >= last_ns:
            continue
        from_ns = max(pin.from_ns, start_ns - _BEFORE_NS, first_ns)
        if is_ended or last_ns >= end_ns:
            return Due(key, from_ns, min(end_ns, last_ns + 1), final_ns, is_final=True)
        is_first = early_ns <= start_ns and (
            last_ns >= end_ns - _SOON_NS or last_ns - start_ns >= _AGAIN_NS
        )
        if is_first or (early_ns > start_ns and last_ns - early_ns >= _AGAIN_NS):
            return Due(key, from_ns, last_ns + 1, final_ns, is_final=False)
    return None


def note(analysed: dict[str, list[int]], due: Due, pins: Sequence[Pin]) -> None:
    """Take a window as judged; what is known of pins that are gone is forgotten."""
    final_ns = analysed.get(due.key, [0, 0])[0]
    analysed[due.key] = [due.to_ns if due.is_final else final_ns, due.to_ns]
    present = {str(pin.from_ns) for pin in pins} | {due.key}
    for key in set(analysed) - present:
        del analysed[key]


class AnalysisProcess:
    """One window at a time; one that takes too long is killed, and its window goes without a
    verdict.
    """

    def __init__(
        self, recording: Path, work: Path, clock: Callable[[], float] = time.monotonic
    ) -> None:
        self._recording = recording
        self._work = work
        self._clock = clock
        self._child: subprocess.Popen[bytes] | None = None
        self._due: Due | None = None
        self._ends_at = 0.0

    @property
    def is_busy(self) -> bool:
        return self._child is not None

    def start(self, due: Due) -> None:
        shutil.rmtree(self._work, ignore_errors=True)
        self._work.mkdir(mode=0o700)
        kind = "final" if due.is_final else "early"
        window = [str(due.from_ns), str(due.to_ns), str(due.since_ns), kind]
        module = "necroscope.outlets.push.window_analysis"
        command = [
            sys.executable,
            "-P",
            "-m",
            module,
            str(self._recording.absolute()),
            *window,
            str(self._work.absolute()),
        ]
        with (self._work / "errors").open("wb") as errors:
            self._child = subprocess.Popen(
                command, stdin=subprocess.DEVNULL, stdout=subprocess.DEVNULL, stderr=errors
            )
        self._due, self._ends_at = due, self._clock() + _LIMIT_S

    def take(self) -> Judged | None:
        """What it found, once it has ended; never waits."""
        child, due = self._child, self._due
        if child is None or due is None:
            return None
        is_late = child.poll() is None and self._clock() >= self._ends_at
        if is_late:
            child.kill()
            child.wait()
        if child.poll() is None:
            return None
        self._child = None
        trouble = (
            f"the analysis took longer than {_LIMIT_S:.0f} s"
            if is_late
            else self._trouble(child.returncode)
        )
        judged = Judged(due, [], [], trouble=trouble) if trouble else self._found(due)
        shutil.rmtree(self._work, ignore_errors=True)
        return judged

    def wait(self, seconds: float) -> None:
        if self._child is not None:
            with contextlib.suppress(subprocess.TimeoutExpired):
                self._child.wait(seconds)

    def close(self) -> None:
        if self._child is not None:
            self._child.kill()
            self._child.wait()
            self._child = None
        shutil.rmtree(self._work, ignore_errors=True)

    def _trouble(self, code: int) -> str | None:
        if code == 0:
            return None
        said = b""
        with contextlib.suppress(OSError):
            said = (self._work / "errors").read_bytes()[-1000:].strip().rpartition(b"\n")[2]
        return (
            f"the analysis ended with {code}: {clean(said)}"
            if said
            else f"the analysis ended with {code}"
        )

    def _found(self, due: Due) -> Judged:
        try:
            content = read_checked(self._work / VERDICTS_FILE)
            name = content["bundle"]
            bundle = (self._work / BUNDLE_FILE).read_bytes() if name else None
            return Judged(due, content["incidents"], content["episodes"], name, bundle)
        except (OSError, CorruptData, KeyError, TypeError) as error:
            return Judged(due, [], [], trouble=f"the analysis left nothing: {error}")
