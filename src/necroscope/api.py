"""The Python API: a recording as tables, flame graphs and incidents.

Everything here is promised: what `necroscope.__all__` names keeps its meaning until the next major
version. Moments are ISO 8601 text, a `datetime` (UTC if they name no zone), nanoseconds UTC, or
`"-5m"`, which is before the end of the recording. A window begins at its first moment and ends
before its second.
"""

import io
import os
from collections.abc import Collection, Mapping, Sequence
from dataclasses import dataclass, replace
from datetime import UTC, datetime
from pathlib import Path
from typing import Any, Self

import pyarrow as pa

from necroscope.analysis.report import Incident, Verdict
from necroscope.errors import NecroscopeError, UsageError
from necroscope.interchange.writers.folded import write_folded
from necroscope.model.span import Span
from necroscope.model.tables import TABLES
from necroscope.model.units import datetime_ns, format_moment, parse_moment_ns
from necroscope.stacks.differential import compare
from necroscope.stacks.flame_tree import FlameTree
from necroscope.store.choices import GroupBy
from necroscope.store.flame import read_flame
from necroscope.store.query import Store
from necroscope.store.selection import Selection
from necroscope.verdicts.reading import read_report
from necroscope.views.flame.heading import Heading, HeadingWindow
from necroscope.views.flame.svg import differential_svg, flame_svg

__all__ = ["FlameGraph", "Incident", "NecroscopeError", "NodeRecording", "Verdict", "open"]

Moment = str | int | datetime


def open(path: str | os.PathLike[str]) -> "NodeRecording":  # noqa: A001 - as gzip.open
    """The recording in a directory, also while it is being recorded.

    >>> with necroscope.open(directory) as recording:
    ...     recording.tables["cores"]
    152
    """
    return NodeRecording(Store.open(Path(path)))


class NodeRecording:
    """What one node recorded. Each question reads only what its window touches."""

    def __init__(self, store: Store) -> None:
        self._opened: Store | None = store

    def __enter__(self) -> Self:
        return self

    def __exit__(self, *_: object) -> None:
        self.close()

    def close(self) -> None:
        """Lets go of its files; a question after that is an error."""
        self._opened = None

    @property
    def node(self) -> str:
        identity = self._store.catalog.identity
        return identity.node if identity else self._store.info().node

    @property
    def labels(self) -> Mapping[str, str]:
        """As `record --label` gave them."""
        return self._store.info().labels

    @property
    def span(self) -> tuple[datetime, datetime]:
        """The first and the last moment that was recorded, to the microsecond."""
        first, last = (datetime.fromtimestamp(ns // 1000 / 1e6, UTC) for ns in self._store.span())
        return first, last

    @property
    def tables(self) -> Mapping[str, int]:
        """The tables it holds, with their rows; docs/tables.md has their columns."""
        return self._store.info().tables

    def table(
        self,
        name: str,
        from_: Moment | None = None,
        to: Moment | None = None,
        *,
        cpus: Collection[int] | None = None,
        columns: Sequence[str] | None = None,
    ) -> pa.Table:
        """Rows of a window as an Arrow table, in order of time; times are nanoseconds UTC.

        >>> recording.table("cores", "-3s", cpus=[1], columns=["cpu", "softirq_ns"]).to_pylist()[0]
        {'cpu': 1, 'softirq_ns': 10000000}
        """
        if name not in TABLES:
            raise UsageError(f"there is no table {name!r}", f"one of: {', '.join(TABLES)}")
        known = [column.name for column in TABLES[name].columns]
        if unknown := [column for column in columns or () if column not in known]:
            raise UsageError(
                f"the table {name} has no column {', '.join(map(repr, unknown))}",
                f"one of: {', '.join(known)}",
            )
        return self._store.rows(name, *self._window(from_, to), cpus, columns)

    def data_frame(
        self,
        name: str,
        from_: Moment | None = None,
        to: Moment | None = None,
        *,
        cpus: Collection[int] | None = None,
        columns: Sequence[str] | None = None,
    ) -> Any:
        """The same as a pandas DataFrame; `time` is a timestamp in UTC.

        >>> recording.data_frame("cores", "-3s").time.dt.second.tolist()
        [15, 15, 16, 16, 17, 17]
        """
        rows = self.table(name, from_, to, cpus=cpus, columns=columns)
        if "time" in rows.column_names:
            time = rows.column("time").cast(pa.timestamp("ns", "UTC"))
            rows = rows.set_column(rows.column_names.index("time"), "time", time)
        try:
            return rows.to_pandas()
        except ModuleNotFoundError:
            raise UsageError(
                "a data frame needs pandas, which is not installed", "pip install pandas"
            ) from None

    def flame(
        self,
        from_: Moment | None = None,
        to: Moment | None = None,
        *,
        cpus: Collection[int] | None = None,
        pids: Collection[int] | None = None,
        comms: Collection[str] | None = None,
        cgroup: str | None = None,
        frames: str | None = None,
        group_by: Sequence[str] = (),
    ) -> "FlameGraph":
        """The flame graph of a window, of all samples or of those that pass the filters.

        `cgroup` takes in those below it, `frames` is a regular expression for a function or module
        that the stack must have, and `group_by` puts groups outermost: process, thread, name, core,
        cgroup or state.

        >>> recording.flame("-30s", cpus=[1], comms=["probe-agent-qe"]).samples
        863
        """
        selection = Selection.of(cpus, pids, None, comms, cgroup, frames=frames)
        tree = read_flame(
            self._store, *self._window(from_, to), selection, [_group(name) for name in group_by]
        )
        return FlameGraph(self.node, "all cores" if cpus is None else _cores(cpus), tree)

    def incidents(
        self, from_: Moment | None = None, to: Moment | None = None
    ) -> tuple[Incident, ...]:
        """What went wrong in a window, each with its verdict, the oldest first.

        It is read from the ledger that is kept while a node records, and judged now where there is
        none.

        >>> [(incident.core, incident.verdict.cause) for incident in recording.incidents()]
        [(1, 'zombie-memcg-walk')]
        """
        window = self._window(from_, to)
        since_ns = 0 if from_ is None else window[0]
        found = read_report(self._store, since_ns).wrong
        return tuple(incident for incident in found if incident.from_ns < window[1])

    @property
    def _store(self) -> Store:
        if self._opened is None:
            raise UsageError("the recording is closed", "ask it inside its `with` block")
        return self._opened

    def _window(self, from_: Moment | None, to: Moment | None) -> Span:
        first_ns, last_ns = self._store.span()
        from_ns = first_ns if from_ is None else _moment_ns(from_, last_ns)
        to_ns = last_ns + 1 if to is None else _moment_ns(to, last_ns)
        if from_ns >= to_ns:
            raise UsageError(
                f"the window from {format_moment(from_ns)} to {format_moment(to_ns)} is empty",
                f"the recording is from {format_moment(first_ns)} to {format_moment(last_ns)}",
            )
        return Span(from_ns, to_ns)


@dataclass(frozen=True, slots=True)
class FlameGraph:
    """Who called whom, by samples. A notebook shows it as a picture."""

    node: str
    cores: str
    _tree: FlameTree

    @property
    def samples(self) -> int:
        return self._tree.samples

    @property
    def left_out(self) -> tuple[str, ...]:
        """In words, what the window held and the graph does not."""
        return tuple(self._tree.left_out)

    def folded(self) -> str:
        """A line per path, `outer;inner 12`, as flamegraph.pl and speedscope read it."""
        out = io.BytesIO()
        write_folded(self._tree, out)
        return out.getvalue().decode()

    def svg(self, baseline: "FlameGraph | None" = None) -> str:
        """One self-contained picture; with a baseline it shows what grew and what shrank."""
        heading = Heading(
            f"Flame graph of {self.node}",
            self.node,
            HeadingWindow.of(self._tree),
            self.cores,
            left_out=self.left_out,
        )
        if baseline is None:
            return flame_svg(self._tree, heading)
        before = baseline._tree  # noqa: SLF001 - of the same class
        difference = compare(self._tree, before)
        compared = replace(
            heading,
            title=f"Differential flame graph of {self.node}",
            baseline=HeadingWindow.of(before),
            left_out=tuple(difference.left_out),
        )
        return differential_svg(difference, compared)

    def _repr_svg_(self) -> str:
        return self.svg()


def _moment_ns(moment: Moment, last_ns: int) -> int:
    if isinstance(moment, str):
        return parse_moment_ns(moment, last_ns)
    if isinstance(moment, datetime):
        return datetime_ns(moment)
    return moment


def _group(name: str) -> GroupBy:
    try:
        return GroupBy(name)
    except ValueError:
        raise UsageError(
            f"samples are not grouped by {name!r}", f"one of: {', '.join(GroupBy)}"
        ) from None


def _cores(cpus: Collection[int]) -> str:
    return f"core{'s' if len(cpus) > 1 else ''} {', '.join(map(str, sorted(cpus)))}"
