"""What happens to a recorder during `scripts/soak`, one thing after the other, and what each of them
may leave in the recording: gaps by their causes, incidents by their names.
"""

import itertools
import os
import random
import re
import signal
import subprocess
import sys
import time
from collections.abc import Callable
from contextlib import ExitStack, suppress
from dataclasses import dataclass
from pathlib import Path

from compiled_program import compiled
from loads import exec_storm, mixed
from measured_child import children

sys.path.insert(0, str(Path(__file__).parents[1]))
from tests.hostile.test_neighbours import FORKS, HOSTILE_PERF_MAP
from tests.hostile.test_profile import FORGED_STACKS, MANY_MAPPINGS

NOBODY = 65534
CGROUP_ROOTS = [Path("/sys/fs/cgroup/memory"), Path("/sys/fs/cgroup")]
# What a crowded machine brings by itself: the phase is not the reason.
ALWAYS = (
    r"the recorder was not run for|sampling at \d+ Hz|reading it cost|more waits than are kept"
    r"|were not read twice in a row|not all were counted|more new processes"
)
# Programs of nobody, and the words that they want.
HOSTILE = ((FORKS, ""), (HOSTILE_PERF_MAP, ""), (FORGED_STACKS, "60"), (MANY_MAPPINGS, "62000"))


@dataclass(frozen=True, slots=True)
class Node:
    """`disk` is where the recording lies, and nothing else; `clock` the file of `MOVED_CLOCK`."""

    recorder: int
    disk: Path
    clock: Path
    scratch: Path
    chosen: random.Random


@dataclass(frozen=True, slots=True)
class Phase:
    """`gaps` is a pattern of the causes that it may leave, `names` are incidents that it really
    is.
    """

    name: str
    run: Callable[[Node, float], None]
    gaps: str = ""
    names: frozenset[str] = frozenset()

    def explains(self, cause: str) -> bool:
        return bool(re.search(f"{self.gaps}|{ALWAYS}" if self.gaps else ALWAYS, cause))


def _busy(_node: Node, seconds: float) -> None:
    with mixed(round(seconds)):
        time.sleep(seconds)


def _exec_storm(_node: Node, seconds: float) -> None:
    with exec_storm(round(seconds)):
        time.sleep(seconds)


def _cgroup_churn(_node: Node, seconds: float) -> None:
    root = next(place for place in CGROUP_ROOTS if (place / "cgroup.procs").exists())
    top, until = root / f"necroscope-soak-{os.getpid()}", time.monotonic() + seconds
    top.mkdir()
    try:
        for number in itertools.count():
            if time.monotonic() > until:
                break
            (top / f"job-{number}").mkdir()
            (top / f"job-{number}").rmdir()
            if number % 500 == 0:
                time.sleep(0.2)
    finally:
        for left in [*top.glob("job-*"), top]:
            left.rmdir()


def _clock_steps(node: Node, seconds: float) -> None:
    """Forward and back again, less long than what makes a recorder start over."""
    for offset_s in (node.chosen.randrange(61, 7200), 0, -node.chosen.randrange(5, 50), 0):
        node.clock.write_bytes(offset_s.to_bytes(8, "little", signed=True))
        time.sleep(seconds / 4)


def _full_disk(node: Node, seconds: float) -> None:
    filler = node.disk / "filler"
    with filler.open("wb", buffering=0) as file:
        try:
            while True:
                file.write(bytes(1 << 20))
        except OSError:
            pass  # it is full
        time.sleep(seconds / 2)
    filler.unlink()
    time.sleep(seconds / 2)


def _killed_children(node: Node, seconds: float) -> None:
    until = time.monotonic() + seconds
    while time.monotonic() < until:
        for pid in children(node.recorder):
            if _is_replaced(pid) and node.chosen.random() < 0.5:
                try:
                    os.kill(pid, signal.SIGKILL)
                except ProcessLookupError:
                    continue
        time.sleep(5)


def _is_replaced(pid: int) -> bool:
    """The broker is not: names of functions stay missing until the recorder is restarted, as
    docs/privileges.md says.
    """
    try:
        return b"broker" not in Path(f"/proc/{pid}/cmdline").read_bytes()
    except OSError:
        return False


def _hostile_neighbours(node: Node, seconds: float) -> None:
    until = time.monotonic() + seconds
    with ExitStack() as stack:
        for source, word in HOSTILE:
            program = compiled(node.scratch, source)
            process = subprocess.Popen(
                [program, *([word] if word else [])], user=NOBODY, group=NOBODY, extra_groups=[],
                cwd="/", stdout=subprocess.DEVNULL, start_new_session=True,
            )  # fmt: skip
            stack.callback(_end, process)
            time.sleep(max(0.0, (until - time.monotonic()) / len(HOSTILE)))


def _end(process: "subprocess.Popen[bytes]") -> None:
    with suppress(ProcessLookupError):
        os.killpg(process.pid, signal.SIGKILL)
    process.wait()
    Path(f"/tmp/perf-{process.pid}.map").unlink(missing_ok=True)


_LOOKUP = r"lookup|function names|user functions|facts|seal"
PHASES = (
    Phase("busy", _busy),
    Phase("exec storm", _exec_storm, names=frozenset({"fork-exec-churn"})),
    Phase("cgroup churn", _cgroup_churn, r"cgroup|ring"),
    Phase("clock steps", _clock_steps, r"the clock was stepped|ahead of the clock"),
    Phase("full disk", _full_disk, r"No space left|no segment could be opened|seal"),
    Phase("killed children", _killed_children, _LOOKUP),
    Phase("hostile neighbours", _hostile_neighbours, rf"used up its share|{_LOOKUP}|more new processes",
          names=frozenset({"fork-exec-churn", "page-fault-storm", "tlb-shootdown"})),
)  # fmt: skip
