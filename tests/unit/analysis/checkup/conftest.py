"""A node of which a test says only what is special: rows by column name, all others None or 0."""

import pytest

from necroscope.analysis.checkup.finding import NodeSnapshot
from necroscope.model.reading import Row, Rows
from necroscope.model.tables import TABLES
from necroscope.model.top_source import TopSample

S = 1_000_000_000
NOW_NS = 1_776_248_000 * S


class Node:
    """A `TopSource`; every row is a second old unless `time` is given."""

    def __init__(self) -> None:
        self._rows: dict[str, Rows] = {}
        self.samples: list[TopSample] = []
        self.texts: list[str] = []

    def add(self, table: str, /, **values: object) -> None:
        row: Row = tuple(  # type: ignore[assignment]
            values.get(c.name, NOW_NS - S if c.name == "time" else None if c.nullable else 0)
            for c in TABLES[table].columns
        )
        self._rows.setdefault(table, []).append(row)

    def core(self, cpu: int, **shares: float) -> None:
        self.add(
            "cores",
            cpu=cpu,
            elapsed_ns=S,
            **{f"{mode}_ns": round(share * S) for mode, share in shares.items()},
        )

    def cores(self, cpu: int, seconds: int, **shares: float) -> None:
        """This many seconds of a core, and no others."""
        self._rows["cores"] = [row for row in self._rows["cores"] if row[1] != cpu]
        for _ in range(seconds):
            self.core(cpu, **shares)

    def sampled(self, cpu: int, comm: str, function: str | None, times: int) -> None:
        self.samples += [TopSample(NOW_NS - S, cpu, 7, 7, comm, None, function, None)] * times

    def span(self) -> tuple[int, int] | None:
        return None

    def rows(self, table: str, from_ns: int, to_ns: int) -> Rows:
        return [row for row in self._rows.get(table, []) if from_ns < row[0] <= to_ns]  # type: ignore[operator]

    def notices(self) -> list[str]:
        return self.texts

    def status(self) -> str:
        return ""

    def seen(self) -> NodeSnapshot:
        return NodeSnapshot(_Source(self), NOW_NS)


class _Source:
    """The node as a `TopSource`: its `sampled` is a question, the node's own draws."""

    def __init__(self, node: Node) -> None:
        self._node = node
        self.span, self.rows, self.notices, self.status = (
            node.span,
            node.rows,
            node.notices,
            node.status,
        )

    def samples_between(self, from_ns: int, to_ns: int) -> list[TopSample]:
        return self._node.samples


@pytest.fixture
def node() -> Node:
    drawn = Node()
    drawn.core(0, idle=1.0)
    drawn.core(1, idle=1.0)
    drawn.add("cgroups", controller="memory", path="/", tracked=240, visible=240)
    return drawn
