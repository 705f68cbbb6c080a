"""A node drawn by hand for the views: rows by second in memory, so that a test says only what is
special about its node.
"""

from bisect import bisect_right
from collections.abc import Callable

import pytest

from necroscope.model.reading import Row, Rows
from necroscope.model.tables import SOFTIRQ_VECTORS, TABLES
from necroscope.model.top_source import TopSample

S = 1_000_000_000
MS = 1_000_000
START_NS = 1_776_248_000 * S  # 2026-04-15 10:13:20 UTC
MODES = ("user", "nice", "system", "idle", "iowait", "irq", "softirq", "steal", "guest")


class Node:
    """A `TopSource` whose rows a test writes itself; `at(n)` is the n-th second."""

    def __init__(self) -> None:
        self.tables: dict[str, Rows] = {}
        self.samples: list[TopSample] = []
        self.notice_texts: list[str] = []
        self.status_text = "97 Hz, 0 lost, 0.4 % CPU"

    @staticmethod
    def at(second: float) -> int:
        return START_NS + round(second * S)

    def add(self, table: str, row: Row) -> None:
        assert len(row) == len(TABLES[table].columns), (
            f"a row of {table} has {len(TABLES[table].columns)} columns"
        )
        self.tables.setdefault(table, []).append(row)
        self.tables[table].sort(key=lambda row: row[0])

    def core(self, second: float, cpu: int, *, elapsed_s: float = 1.0, **shares: float) -> None:
        """Shares by mode; what they leave of 1 is idle unless idle is given."""
        shares.setdefault("idle", 1 - sum(shares.values()))
        elapsed_ns = round(elapsed_s * S)
        self.add(
            "cores",
            (
                self.at(second),
                cpu,
                elapsed_ns,
                *(round(shares.get(mode, 0) * elapsed_ns) for mode in MODES),
            ),
        )

    def delay(
        self, second: float, cpu: int, worst_ns: int, vector: str = "net_rx", pending_ns: int = 0
    ) -> None:
        self.add("softirq_delay", (self.at(second), cpu, vector, 1, worst_ns, pending_ns, [0] * 24))

    def softirqs(self, second: float, cpu: int, times: int | None) -> None:
        self.add("softirqs", (self.at(second), cpu, S, *([times] * len(SOFTIRQ_VECTORS))))

    def zombies(
        self, second: float, dying: int | None, controller: str = "memory", tracked: int = 70_000
    ) -> None:
        self.add(
            "cgroups",
            (self.at(second), controller, "/", tracked, None, dying, None, None, None, None, None),
        )

    def event(
        self,
        second: float,
        kind: str,
        message: str,
        cpu: int | None = None,
        device: str | None = None,
        by_kernel: bool = True,
    ) -> None:
        row = (
            self.at(second),
            kind,
            None,
            cpu,
            device,
            None,
            None,
            None,
            3,
            by_kernel,
            None,
            message,
            None,
            None,
        )
        self.add("events", row)

    def gap(
        self,
        second: float,
        table: str,
        cause: str,
        cpu: int | None = None,
        lost: int | None = None,
        for_s: float = 1,
    ) -> None:
        self.add("gaps", (self.at(second), self.at(second + for_s), table, cause, cpu, lost))

    def sample(
        self,
        second: float,
        cpu: int,
        comm: str,
        pid: int = 100,
        kernel: str | None = None,
        user: str | None = None,
        cgroup: str | None = "/",
        times: int = 1,
    ) -> None:
        self.samples += [
            TopSample(self.at(second) - place * MS, cpu, pid, pid, comm, cgroup, kernel, user)
            for place in range(times)
        ]
        self.samples.sort(key=_time)

    def span(self) -> tuple[int, int] | None:
        rows = self.tables.get("cores", [])
        return (_time(rows[0]), _time(rows[-1])) if rows else None

    def rows(self, table: str, from_ns: int, to_ns: int) -> Rows:
        rows = self.tables.get(table, [])
        return rows[bisect_right(rows, from_ns, key=_time) : bisect_right(rows, to_ns, key=_time)]

    def samples_between(self, from_ns: int, to_ns: int) -> list[TopSample]:
        return self.samples[
            bisect_right(self.samples, from_ns, key=_time) : bisect_right(
                self.samples, to_ns, key=_time
            )
        ]

    def notices(self) -> list[str]:
        return self.notice_texts

    def status(self) -> str:
        return self.status_text


def _time(row: tuple[object, ...]) -> int:
    assert isinstance(row[0], int)
    return row[0]


@pytest.fixture
def node() -> Node:
    """A node without a row."""
    return Node()


@pytest.fixture
def node_of() -> Callable[..., Node]:
    return quiet_node


def quiet_node(cores: int, seconds: int = 60) -> Node:
    """A quiet node of this many cores over this many seconds, whose last core is held by kubelet in
    the last five.
    """
    node, hot = Node(), cores - 1
    node.tables["cores"] = [
        core_row(node.at(second), cpu, is_held=cpu == hot and second > seconds - 5)
        for second in range(1, seconds + 1)
        for cpu in range(cores)
    ]
    node.delay(seconds, 0, 84_000, "timer")
    node.delay(seconds, hot, 1_240 * MS, pending_ns=1_240 * MS)
    add_samples(node, seconds, hot)
    node.zombies(seconds - 40, 68_600)
    node.zombies(seconds, 68_680)
    message = "ena 0000:00:05.0 eth0: Device reset completed successfully"
    node.event(seconds - 3, "nic_reset", message, hot, "eth0")
    node.gap(seconds - 20, "samples", "rings were full", lost=312)
    for resource, some_ns in (("cpu", S // 8), ("memory", 0), ("io", None)):
        node.add("pressure", (node.at(seconds), resource, S, some_ns, None))
    return node


def core_row(time_ns: int, cpu: int, *, is_held: bool) -> Row:
    shares = {"system": 0.98, "user": 0.02} if is_held else {"user": 0.1 + 0.8 * (cpu % 8 == 1)}
    shares["idle"] = 1 - sum(shares.values())
    return (time_ns, cpu, S, *(round(shares.get(mode, 0) * S) for mode in MODES))


def add_samples(node: Node, second: int, hot: int) -> None:
    worker = "/kubepods/burstable/pod9f2/ray-worker"
    python, kubelet = "_PyEval_EvalFrameDefault", "/system.slice/kubelet.service"
    node.sample(second, 0, "python3", 4121, user=python, cgroup=worker, times=9)
    node.sample(second, hot, "kubelet", 1872, "memcg_page_state", "Read", cgroup=kubelet, times=90)
    containerd = "/system.slice/containerd.service"
    node.sample(second, hot, "containerd", 990, "do_idle", cgroup=containerd, times=4)
