"""Who was on a core just now: the rows of the last turns, kept for a closer look at a
core.
"""

from collections import Counter, defaultdict, deque
from collections.abc import Callable, Sequence
from functools import cached_property
from typing import Final, NamedTuple

from necroscope.model.units import NS_PER_S
from necroscope.profile.core import Core
from necroscope.profile.sample_columns import readable_name

# A look closer is at this much of the past; a turn takes about as long.
_KEPT_NS: Final = 4 * NS_PER_S
_MOST_TURNS: Final = 8


class SeenTask(NamedTuple):
    """A thread seen on a core in the last turns: how often, its commonest stack, the system call
    argument seen there.
    """

    pid: int
    tid: int
    comm: str
    cgroup: str | None
    samples: int
    stack: int
    first_argument: int | None


class _Turn:
    """Columns of one turn, as the core gave them."""

    def __init__(self, core: Core, now_ns: int) -> None:
        self.time_ns = now_ns
        self.names = core.names()
        self.cgroups = core.cgroups()
        self.cpu = memoryview(core.column("cpu", 2)).cast("h")
        self.pid, self.tid, self.name, self.cgroup, self.stack = (
            memoryview(core.column(name, 4)).cast("i")
            for name in ("pid", "tid", "name", "cgroup", "stack")
        )
        self.argument = memoryview(core.column("argument", 8)).cast("Q")
        self.has_argument = core.column("has_argument", 1)
        self.has_cgroup = core.column("has_cgroup", 1)

    @cached_property
    def rows_by_cpu(self) -> dict[int, list[int]]:
        """Made at the first question: a node of 448 cores asks about each of them."""
        found: defaultdict[int, list[int]] = defaultdict(list)
        for row, cpu in enumerate(self.cpu):
            found[cpu].append(row)
        return found


class SeenTasks:
    """`cgroup_path` gives the path of a cgroup's number."""

    def __init__(self, cgroup_path: Callable[[int], str]) -> None:
        self._cgroup_path = cgroup_path
        self._turns: deque[_Turn] = deque(maxlen=_MOST_TURNS)

    def add(self, core: Core, now_ns: int) -> None:
        # At 9,300 samples per second a turn of three seconds takes more than a megabyte.
        while self._turns and now_ns - self._turns[0].time_ns > _KEPT_NS:
            self._turns.popleft()
        if core.row_count:
            self._turns.append(_Turn(core, now_ns))

    def clear(self) -> None:
        """Numbers of stacks mean something else from now on."""
        self._turns.clear()

    def on(self, cpu: int, now_ns: int) -> list[SeenTask]:
        """Most seen first."""
        tally: Counter[int] = Counter()
        stacks: defaultdict[int, Counter[int]] = defaultdict(Counter)
        last: dict[tuple[int, int], tuple[_Turn, int]] = {}
        for turn in self._turns:
            if now_ns - turn.time_ns <= _KEPT_NS:
                for row in turn.rows_by_cpu.get(cpu, ()):
                    tid, stack = turn.tid[row], turn.stack[row]
                    tally[tid] += 1
                    stacks[tid][stack] += 1
                    last[tid, stack] = turn, row
        return [
            self._task(*last[tid, stacks[tid].most_common(1)[0][0]], count)
            for tid, count in tally.most_common()
        ]

    def _task(self, turn: _Turn, row: int, count: int) -> SeenTask:
        return SeenTask(
            turn.pid[row],
            turn.tid[row],
            readable_name(turn.names[turn.name[row]]),
            self._cgroup_path(turn.cgroups[turn.cgroup[row]])
            if _bit(turn.has_cgroup, row)
            else None,
            count,
            turn.stack[row],
            turn.argument[row] if turn.has_argument[row] else None,
        )


def _bit(bitmap: Sequence[int], place: int) -> bool:
    return bool(bitmap[place >> 3] >> (place & 7) & 1)
