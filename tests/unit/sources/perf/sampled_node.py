"""A sampler with a clock, on rings fed by hand."""

from pathlib import Path
from typing import Any

from necroscope.model.frame import Frame
from necroscope.model.reading import Moment, Reading, Rows
from necroscope.model.tables import TABLES
from necroscope.profile.kernel_functions import KernelFunctions
from necroscope.segment.block import rows_of
from necroscope.sources.perf.sampler import Sampler
from necroscope.sources.perf.seen_tasks import SeenTask

UTC_NS = 1_776_249_000_000_000_000

SECOND = 1_000_000_000


class FakeLedger:
    def row(self, time_ns: int, tracepoint_id: int, raw: bytes) -> tuple[object, ...]:
        return (time_ns, tracepoint_id, raw[:3])


def table(reading: Reading, name: str) -> Rows:
    """The rows of a table that comes as columns."""
    columns = reading.columns.get(name)
    return (
        []
        if columns is None
        else rows_of(TABLES[name], len(columns), map(memoryview, columns.buffers))
    )


class Node:
    """A sampler with a clock; `read` drains what was written and gives its rows by column name."""

    def __init__(self, rings: Any, lookup: Any, root: Path) -> None:
        self.rings = rings
        self.root = root
        rings.tracepoint_of = {701: 33}
        self.sampler = Sampler(rings, lookup, FakeLedger(), root)  # type: ignore[arg-type]
        self.sampler.profile.kernel = KernelFunctions(
            self.sampler.profile.core, lookup.read_kernel_symbols
        )
        self.now_ns = 0

    def read_all(self, *written: bytes, cpu: int = 0, after_ns: int = SECOND) -> Reading:
        self.now_ns += after_ns
        self.rings.write(cpu, *written)
        return self.sampler.read(Moment(UTC_NS + self.now_ns, self.now_ns))

    def read(self, *written: bytes, cpu: int = 0) -> list[dict[str, Any]]:
        names = [column.name for column in TABLES["samples"].columns]
        return [
            dict(zip(names, row, strict=True))
            for row in table(self.read_all(*written, cpu=cpu), "samples")
        ]

    def functions(self, *written: bytes) -> list[str | None]:
        """The innermost function of each sample."""
        return [self.frame(row["stack"]).function for row in self.read(*written)]

    def frame(self, stack: int) -> Frame:
        return self.sampler.frames_of(stack)[0]

    def seen_on(self, cpu: int) -> list[SeenTask]:
        return self.sampler.seen_on(cpu, UTC_NS + self.now_ns)

    def comms(self, *written: bytes) -> list[str]:
        return [row["comm"] for row in self.read(*written)]

    def proc(self, pid: int, comm: str, cgroup: str = "/") -> None:
        task = self.root / f"proc/{pid}/task/{pid}"
        task.mkdir(parents=True, exist_ok=True)
        (task / "comm").write_text(f"{comm}\n")
        (self.root / f"proc/{pid}/cgroup").write_text(f"0::{cgroup}\n")
