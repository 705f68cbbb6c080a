"""The process that keeps the ledger of a live recording: started by its recorder, ends with it.

`python -P -m necroscope.verdicts.keeper DIR` runs until its standard input ends. It is behind every
other process of the node, on one core, in bounded memory, and a stretch on which it hangs or dies
is left out by the next one. For each incident it asks for a window to be kept, by a line
`FROM_NS TO_NS CAUSE` on its standard output; an empty line says that it is alive.
"""

import contextlib
import os
import resource
import select
import signal
import sys
import time
from collections.abc import Callable, Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Final

from necroscope.errors import CorruptData, NecroscopeError
from necroscope.model import capabilities
from necroscope.model.allocator import give_memory_back
from necroscope.model.names import clean
from necroscope.model.units import NS_PER_S
from necroscope.model.unwanted_modules import leave_out
from necroscope.segment.recording import PINS_FILE, read_pins
from necroscope.verdicts.entry import IncidentState, LedgerEntry
from necroscope.verdicts.ledger_writer import LedgerWriter

if TYPE_CHECKING:
    from necroscope.verdicts.follower import Round

_NICE: Final = 19
_DATA_LIMIT_BYTES: Final = 512 << 20
# Memory that the analysis of a bad hour took is the node's again: the process starts over.
_RESIDENT_BYTES: Final = 320 << 20
_POLL_S: Final = 1.0
# CPU time: on a node without a free core a round takes as long as it takes.
_ROUND_LIMIT_S: Final = 120.0
# The analysis may take this much of the time.
_SHARE: Final = 0.1
_NOTE_PROGRESS_S: Final = 60.0
# Of an incident that goes on all day this much is kept: others need room too.
_MOST_KEPT_NS: Final = 600 * NS_PER_S


class Keeper:
    """Rounds of a `Follower` into a ledger. `ask` gets the lines for the recorder."""

    def __init__(self, directory: Path, ask: Callable[[str], None]) -> None:
        from necroscope.verdicts.follower import Follower  # noqa: PLC0415 - only now: it is large

        self._directory = directory
        self._ask = ask
        self._writer = LedgerWriter(directory)
        self._follower = Follower(directory, self._writer.ledger, self._writer.attempt)
        self._noted_s: float | None = None
        self._pins_changed_ns = self._pins_time_ns()
        self._keep_windows(list(self._writer.ledger.entries.values()))

    def close(self) -> None:
        self._writer.close()

    def turn(self, *, is_live: bool) -> float:
        """One look; returns how many seconds it took, 0 if none was due."""
        started_s = time.monotonic()
        changed_ns, self._pins_changed_ns = self._pins_changed_ns, self._pins_time_ns()
        is_alarm = changed_ns != self._pins_changed_ns
        found = self._follower.look(is_live=is_live, is_alarm=is_alarm)
        if found is None:
            return 0.0
        is_noted = self._noted_s is not None and started_s - self._noted_s < _NOTE_PROGRESS_S
        if found.is_judged or found.entries or not is_live or not is_noted:
            self._noted_s = started_s
            self._write(found)
            self._writer.rewrite_if_large(self._follower.first_ns)
        return time.monotonic() - started_s

    def judge_past(self) -> float:
        """An hour of what was recorded while no ledger was kept; returns how many seconds it took,
        0 if there is none left.
        """
        started_s = time.monotonic()
        found = self._follower.judge_past()
        if found is None:
            return 0.0
        self._write(found)
        return time.monotonic() - started_s

    def _write(self, found: "Round") -> None:
        self._writer.append(found.entries, found.judged, found.notes, found.unjudged)
        self._keep_windows(found.entries)

    def _keep_windows(self, entries: Sequence[LedgerEntry]) -> None:
        """Newest first, as far as the recording still holds them."""
        try:
            pins = read_pins(self._directory)
        except CorruptData:
            pins = []
        first_ns = self._follower.first_ns
        held = [one for one in entries if one.incident.to_ns >= first_ns]
        for entry in sorted(held, key=lambda one: one.incident.from_ns, reverse=True):
            from_ns, to_ns = entry.incident.from_ns, entry.incident.to_ns
            to_ns = min(to_ns, from_ns + _MOST_KEPT_NS)
            is_kept = any(pin.from_ns <= from_ns and to_ns <= pin.to_ns for pin in pins)
            if entry.state is not IncidentState.MERGED and not is_kept:
                self._ask(f"{from_ns} {to_ns} {entry.incident.verdict.cause}")

    def _pins_time_ns(self) -> int:
        try:
            return (self._directory / PINS_FILE).stat().st_mtime_ns
        except OSError:
            return 0


def run(keeper: Keeper, is_over: Callable[[float], bool], alive: Callable[[], None]) -> None:
    """Until `is_over`, which sleeps, is True; then what is left is judged as ended."""
    wait_s = 0.0
    while not is_over(wait_s):
        # After the wait: what the round took counts against the share, also of its successor.
        if wait_s and _resident_bytes() > _RESIDENT_BYTES:
            keeper.close()
            os.execv(sys.executable, [sys.executable, "-P", "-m", __spec__.name, *sys.argv[1:]])
        signal.setitimer(signal.ITIMER_PROF, _ROUND_LIMIT_S)
        took_s = keeper.turn(is_live=True) or keeper.judge_past()
        signal.setitimer(signal.ITIMER_PROF, 0.0)
        alive()
        wait_s = max(_POLL_S, took_s / _SHARE - took_s)
    signal.setitimer(signal.ITIMER_PROF, _ROUND_LIMIT_S)
    keeper.turn(is_live=False)


def _step_back() -> None:
    """Behind all other work, with bounded memory, first to go where memory is short, and without
    the recorder's capabilities: the recording is all it reads.
    """
    os.setpriority(os.PRIO_PROCESS, 0, _NICE)
    with contextlib.suppress(OSError):
        Path("/proc/self/oom_score_adj").write_text("1000", "ascii")
    with contextlib.suppress(ValueError, OSError):
        resource.setrlimit(resource.RLIMIT_DATA, (_DATA_LIMIT_BYTES, _DATA_LIMIT_BYTES))
    with contextlib.suppress(OSError):
        capabilities.keep(())
    give_memory_back()
    os.environ.setdefault("OPENBLAS_NUM_THREADS", "1")
    leave_out("pandas")
    import pyarrow as pa  # noqa: PLC0415 - after the limits are set

    pa.set_memory_pool(pa.system_memory_pool())
    pa.set_cpu_count(1)
    pa.set_io_thread_count(1)


def _resident_bytes() -> int:
    pages = int(Path("/proc/self/statm").read_text("ascii").split()[1])
    return pages * resource.getpagesize()


def _is_over(seconds: float) -> bool:
    return bool(select.select([sys.stdin.fileno()], [], [], seconds)[0])


def _say(text: str) -> None:
    with contextlib.suppress(OSError):
        os.write(sys.stdout.fileno(), f"{text}\n".encode())


def main(arguments: Sequence[str]) -> int:
    # Ctrl-C goes to the recorder too, which ends us by our standard input.
    for number in (signal.SIGINT, signal.SIGTERM, signal.SIGHUP):
        signal.signal(number, signal.SIG_IGN)
    _step_back()
    try:
        keeper = Keeper(Path(arguments[0]), _say)
        run(keeper, _is_over, lambda: _say(""))
        keeper.close()
    except BlockingIOError:
        print("another process keeps the ledger", file=sys.stderr)  # noqa: T201
        return 1
    except (NecroscopeError, OSError, MemoryError) as error:
        print(clean(str(error) or "out of memory", 500), file=sys.stderr)  # noqa: T201 - the recorder passes it on
        return 1
    return 0


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
