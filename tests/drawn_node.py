"""A node drawn as text, so that a test reads like the picture it means: the seconds of each core,
and who was on it.

    core 0:  ....................
    core 1:  ..........kkkkkk....
    k: system  kubelet[1872]  /system.slice/kubelet.service  main, Read > ksys_read, vfs_read,
    memcg_stat_show, mem_cgroup_iter

A character is a second of a core. `.` is a core with little to do, `_` one whose time is in no
mode. Any other letter is explained by a line of its own: the mode (or `user+system`, half and
half), the task with its pid, its cgroup, and its stack, outermost frame first: user frames, `>`,
kernel frames. Cells are two or more spaces apart. Two lines of one letter take turns.
"""

import re
from collections.abc import Collection, Iterable, Sequence
from dataclasses import dataclass, field
from typing import Any

import numpy as np
import pyarrow as pa

from necroscope.model.reading import Gap, Row, Rows
from necroscope.model.tables import SOFTIRQ_VECTORS, TABLES
from necroscope.segment.arrow import batch_from_rows, empty, gaps_of

START_NS = 1_760_000_000_000_000_000
NS = 1_000_000_000
HZ = 50
QUIET, MISSING = ".", "_"
_CORE = re.compile(r"core (\d+):\s+(\S+)")
_LEGEND = re.compile(r"(\w): (.*)")
_TASK = re.compile(r"(.+)\[(\d+)\]")
_MODES = ("user", "nice", "system", "idle", "iowait", "irq", "softirq", "steal", "guest")


def at(second: float) -> int:
    """A moment of a drawn node in ns UTC."""
    return START_NS + round(second * NS)


@dataclass(frozen=True)
class Tables:
    samples: pa.Table
    stacks: pa.Table
    frames: pa.Table


@dataclass(frozen=True)
class Info:
    schema: int
    node: str
    from_ns: int | None
    to_ns: int | None
    cpus: int | None
    tables: dict[str, int]


@dataclass(frozen=True)
class Work:
    """What a letter stands for."""

    modes: tuple[str, ...]
    comm: str
    pid: int
    cgroup: str
    stack: tuple[tuple[str, str], ...]


@dataclass
class DrawnNode:
    """A `Recording` in memory. All methods that add rows return the node, so that a test is one
    expression.
    """

    cores: dict[int, str]
    works: dict[str, list[Work]]
    added: dict[str, Rows] = field(default_factory=dict)
    without: set[str] = field(default_factory=set)
    made: dict[tuple[str, int], pa.Table] = field(default_factory=dict)

    def add(self, table: str, second: float, **values: Any) -> "DrawnNode":
        """A row; what is not given is 0 where the column may not be null, else null. `elapsed_ns`
        is a second.
        """
        given = {"time": at(second), "elapsed_ns": NS} | values
        row = tuple(
            given.pop(c.name, None if c.nullable else _nothing(c.type.value))
            for c in TABLES[table].columns
        )
        unknown = set(given) - {"elapsed_ns"}
        assert not unknown, f"{table} has no column {unknown}"
        self.added.setdefault(table, []).append(row)
        return self

    def every_second(self, table: str, seconds: Iterable[int], **values: Any) -> "DrawnNode":
        for second in seconds:
            self.add(table, second, **values)
        return self

    def delay(
        self, second: float, cpu: int, wait_s: float, vector: str = "net_rx", pending_s: float = 0
    ) -> "DrawnNode":
        waits = {
            "worst_ns": round(wait_s * NS),
            "pending_ns": round(pending_s * NS),
            "count": 1,
            "histogram": [0] * 24,
        }
        return self.add("softirq_delay", second, cpu=cpu, vector=vector, **waits)

    def event(self, second: float, kind: str, message: str = "", **values: Any) -> "DrawnNode":
        given = {"by_kernel": True, "severity": 3, "pattern": "drawn"} | values
        return self.add("events", second, kind=kind, message=message or kind, **given)

    def zombies(self, second: float, dead: int, live: int = 200) -> "DrawnNode":
        return self.add(
            "cgroups",
            second,
            controller="memory",
            path="/",
            tracked=dead + live,
            visible=live,
            dying=dead,
        )

    def forget(self, *tables: str) -> "DrawnNode":
        """As if these tables had not been recorded."""
        self.without |= set(tables)
        return self

    # --- as a Recording

    def rows(
        self,
        table: str,
        from_ns: int,
        to_ns: int,
        cpus: Collection[int] | None = None,
        columns: Sequence[str] | None = None,
    ) -> pa.Table:
        if table not in TABLES:
            return pa.table({})
        found = self._table(table)
        time = found.column("time").to_numpy()
        found = found.slice(*_within(time, from_ns, to_ns))
        if cpus is not None and "cpu" in found.column_names:
            found = found.filter(pa.array(np.isin(found.column("cpu").to_numpy(), list(cpus))))
        return found if columns is None else found.select(list(columns))

    def samples(self, from_ns: int, to_ns: int, cpus: Collection[int] | None = None) -> Tables:
        return Tables(
            self.rows("samples", from_ns, to_ns, cpus), self._table("stacks"), self._table("frames")
        )

    def gaps(self, from_ns: int, to_ns: int) -> list[Gap]:
        return [
            gap
            for gap in gaps_of(self._table("gaps"))
            if gap.from_ns < to_ns and gap.to_ns >= from_ns
        ]

    def info(self) -> Info:
        counts = {name: len(self._rows(name)) for name in TABLES}
        length = max(map(len, self.cores.values()), default=0)
        return Info(
            1,
            "drawn",
            at(0),
            at(length),
            len(self.cores),
            {name: count for name, count in counts.items() if count},
        )

    # --- from the picture

    def _rows(self, table: str) -> Rows:
        if table in self.without:
            return []
        drawn = self._drawn()
        return [*drawn.get(table, []), *self.added.get(table, [])]

    def _table(self, table: str) -> pa.Table:
        """Made once for as many rows: a diagnosis asks again and again."""
        rows = self._rows(table)
        if (table, len(rows)) not in self.made:
            ordered = sorted(rows, key=lambda row: row[0]) if TABLES[table].is_timed else rows
            self.made[table, len(rows)] = _table(table, ordered)
        return self.made[table, len(rows)]

    def _drawn(self) -> dict[str, Rows]:
        if not hasattr(self, "_cached"):
            self._cached = _draw(self.cores, self.works)
        return self._cached


def drawn_node(picture: str) -> DrawnNode:
    cores: dict[int, str] = {}
    works: dict[str, list[Work]] = {}
    for line in filter(None, map(str.strip, picture.splitlines())):
        if core := _CORE.fullmatch(line):
            cores[int(core[1])] = core[2]
        elif legend := _LEGEND.fullmatch(line):
            works.setdefault(legend[1], []).append(_work(legend[2]))
        else:
            raise AssertionError(f"this line of the picture means nothing: {line}")
    unexplained = set("".join(cores.values())) - set(works) - {QUIET, MISSING}
    assert not unexplained, f"letters without a legend: {unexplained}"
    return DrawnNode(cores, works)


def _work(text: str) -> Work:
    mode, task, cgroup, *stack = re.split(r"\s{2,}", text.strip())
    found = _TASK.fullmatch(task)
    assert found is not None, f"write the task as comm[pid]: {task}"
    user, _, kernel = (stack[0] if stack else "main").partition(">")
    frames = [
        *((name, "user") for name in _names(user)),
        *((name, "kernel") for name in _names(kernel)),
    ]
    return Work(tuple(mode.split("+")), found[1], int(found[2]), cgroup, tuple(frames))


def _names(text: str) -> list[str]:
    return [name.strip() for name in text.split(",") if name.strip()]


def _draw(cores: dict[int, str], works: dict[str, list[Work]]) -> dict[str, Rows]:
    idle = Work(("idle",), "sh", 7, "/", (("main", "user"),))
    frames: dict[tuple[str, str], int] = {}
    stacks: dict[tuple[int, int], int] = {}
    rows: dict[str, Rows] = {"cores": [], "softirqs": [], "samples": []}
    for cpu, seconds in cores.items():
        for second, letter in enumerate(seconds):
            own = works.get(letter, [idle])
            rows["cores"].append(_core_row(cpu, second, letter, own[0]))
            rows["softirqs"].append((at(second + 1), cpu, NS, *([100] * len(SOFTIRQ_VECTORS))))
            count = {QUIET: 2, MISSING: 0}.get(letter, HZ)
            for number in range(count):
                work = own[number % len(own)]
                time_ns = at(second) + number * NS // HZ + cpu
                stack = _intern(work.stack, frames, stacks)
                rows["samples"].append(
                    (time_ns, cpu, work.pid, work.pid, work.comm, work.cgroup, stack, 1)
                )
    rows["stacks"] = [(number, *key) for key, number in stacks.items()]
    rows["frames"] = [
        (number, name, "[kernel]" if kind == "kernel" else "/bin/program", kind, None, None)
        for (name, kind), number in frames.items()
    ]
    return rows


def _core_row(cpu: int, second: int, letter: str, work: Work) -> Row:
    shares = {"user": 0.02, "system": 0.01}
    if letter == MISSING:
        shares = {"idle": 0.05}
    elif letter != QUIET:
        shares = {mode: 1 / len(work.modes) for mode in work.modes}
    shares.setdefault("idle", max(0.0, 1 - sum(shares.values())) if letter != MISSING else 0.0)
    return (at(second + 1), cpu, NS, *(round(shares.get(mode, 0) * NS) for mode in _MODES))


def _intern(
    path: Sequence[tuple[str, str]],
    frames: dict[tuple[str, str], int],
    stacks: dict[tuple[int, int], int],
) -> int:
    stack = -1
    for name in path:
        frame = frames.setdefault(name, len(frames))
        stack = stacks.setdefault((stack, frame), len(stacks))
    return stack


def _table(name: str, rows: Rows) -> pa.Table:
    if not rows:
        return empty(TABLES[name])
    return pa.Table.from_batches([batch_from_rows(TABLES[name], rows)])


def _within(time: Any, from_ns: int, to_ns: int) -> tuple[int, int]:
    first, end = np.searchsorted(time, (from_ns, to_ns))
    return int(first), max(int(end - first), 0)


def _nothing(kind: str) -> Any:
    return {"utf8": "", "category": "", "bool": False, "int32_list": []}.get(kind, 0)
