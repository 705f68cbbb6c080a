"""What the writers of per-sample formats work on: a window's samples, stacks and frames as numpy columns in order of time."""

from dataclasses import dataclass
from typing import Any, Final, NamedTuple, Protocol

import numpy as np
import pyarrow as pa
from numpy.typing import NDArray

from necroscope.model.frame import frame_name
from necroscope.model.units import NS_PER_S, format_moment

# The id of a cgroup, core or stack that is not known.
UNKNOWN: Final = -1
_DEFAULT_PERIOD_NS: Final = NS_PER_S // 97


class SampleTables(Protocol):
    """Rows of `samples`, `stacks` and `frames`; a sample's stack is a row number of `stacks`, a stack's frame one of `frames`."""

    @property
    def samples(self) -> pa.Table: ...

    @property
    def stacks(self) -> pa.Table: ...

    @property
    def frames(self) -> pa.Table: ...


@dataclass(frozen=True, slots=True)
class WindowFacts:
    """What the samples do not say themselves. `left_out` is what the query could not read, in words."""

    node: str
    from_ns: int
    to_ns: int
    period_ns: int | None = None
    left_out: tuple[str, ...] = ()

    @property
    def title(self) -> str:
        return f"{self.node} {format_moment(self.from_ns)} to {format_moment(self.to_ns)}"


class WrittenFrame(NamedTuple):
    name: str
    module: str
    kind: str
    offset: int | None
    build_id: str | None


LOST_FRAME: Final = WrittenFrame("[stack lost]", "[unknown]", "lost", None, None)


@dataclass(frozen=True, slots=True)
class Columns:
    """Samples by time. `comm` and `cgroup` index their names; every `stack` has a row in `parent` and `frame`."""

    time_ns: NDArray[np.int64]
    cpu: NDArray[np.int64]
    pid: NDArray[np.int64]
    tid: NDArray[np.int64]
    comm: NDArray[np.int64]
    cgroup: NDArray[np.int64]
    stack: NDArray[np.int64]
    weight: NDArray[np.int64]
    comms: list[str]
    cgroups: list[str]
    parent: NDArray[np.int64]
    frame: NDArray[np.int64]
    frames: list[WrittenFrame]

    def path(self, stack: int) -> list[int]:
        """Frames of a stack, innermost first."""
        path = []
        while stack != UNKNOWN:
            path.append(int(self.frame[stack]))
            stack = int(self.parent[stack])
        return path

    def period_ns(self, facts: WindowFacts) -> int:
        """As given, else the usual distance between two samples of one core."""
        if facts.period_ns:
            return facts.period_ns
        order = np.lexsort((self.time_ns, self.cpu))
        apart = np.diff(self.time_ns[order])[np.diff(self.cpu[order]) == 0]
        apart = apart[apart > 0]
        return int(np.median(apart)) if len(apart) else _DEFAULT_PERIOD_NS

    def process_names(self) -> dict[int, str]:
        """Each process is called like its main thread; one whose main thread was not sampled has no name here."""
        rows = np.flatnonzero((self.pid == self.tid) & (self.comm != UNKNOWN))
        return {int(self.pid[row]): self.comms[self.comm[row]] for row in rows}


def columns_of(tables: SampleTables) -> Columns:
    samples = tables.samples
    time_ns = _numbers(samples, "time")
    order = np.argsort(time_ns, kind="stable")
    comm, comms = _texts(samples, "comm")
    cgroup, cgroups = _texts(samples, "cgroup")
    stack = _numbers(samples, "stack")[order]
    parent, frame = _numbers(tables.stacks, "parent"), _numbers(tables.stacks, "frame")
    frames = _frames(tables.frames)
    lost = (stack < 0) | (stack >= len(parent))
    if lost.any():
        # One more stack of one frame, so that the samples keep their time, core and task.
        stack = np.where(lost, len(parent), stack)
        parent, frame = np.append(parent, UNKNOWN), np.append(frame, len(frames))
        frames.append(LOST_FRAME)
    cpu, pid, tid, weight = (_numbers(samples, name)[order] for name in ("cpu", "pid", "tid", "weight"))
    return Columns(
        time_ns[order], cpu, pid, tid, comm[order], cgroup[order], stack, weight, comms, cgroups, parent, frame, frames
    )


def _frames(frames: pa.Table) -> list[WrittenFrame]:
    columns = [frames.column(name).to_pylist() for name in ("function", "module", "kind", "offset", "build_id")]
    return [
        WrittenFrame(frame_name(function, module or "", offset), module or "[unknown]", kind or "user", offset, build_id)
        for function, module, kind, offset, build_id in zip(*columns, strict=True)
    ]


def _numbers(rows: pa.Table, column: str) -> NDArray[np.int64]:
    numbers: NDArray[np.int64] = rows.column(column).fill_null(UNKNOWN).to_numpy().astype(np.int64)
    return numbers


def _texts(rows: pa.Table, column: str) -> tuple[NDArray[np.int64], list[str]]:
    """Codes, UNKNOWN where there is no text, and the texts by code."""
    values: Any = rows.unify_dictionaries().column(column).combine_chunks()
    if not pa.types.is_dictionary(values.type):
        values = values.dictionary_encode()
    codes = values.indices.fill_null(UNKNOWN).to_numpy(zero_copy_only=False).astype(np.int64)
    return codes, [text or "" for text in values.dictionary.to_pylist()]
