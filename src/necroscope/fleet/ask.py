"""DuckDB over a lake: a view for each table that a question needs, of the days and clusters that
can answer it, every row once.

DuckDB reads the files of a directory itself: it looks for a value in a column's dictionary before
it reads a row. Those of an object store are read by pyarrow, which knows all kinds; DuckDB would
need an extension for that and may load none.
"""

import contextlib
import os
import threading
import time
from collections import defaultdict
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any, Final, TypeVar

import duckdb
import pyarrow as pa

from necroscope.errors import NecroscopeError
from necroscope.fleet.lake import Lake
from necroscope.fleet.lake_tables import DAY_NS, LAKE_TABLES
from necroscope.model.span import Span
from necroscope.model.units import NS_PER_S, format_bytes

# Ends of a time that is too long to read: a thousand nodes of 96 cores send 138 million core
# minutes per day.
_LENGTHS_NS: Final = (DAY_NS, 6 * 3600 * NS_PER_S, 3600 * NS_PER_S, 600 * NS_PER_S)
# A collector answers two at a time, next to the intake and what is read ahead of them.
_SHARE: Final = 4
_MOST_BYTES: Final = 2 << 30
Answer = TypeVar("Answer")
_SETTINGS: Final = {
    "autoinstall_known_extensions": "false",
    "autoload_known_extensions": "false",
    "preserve_insertion_order": "false",
    # A question writes nothing: it may run in a read-only place.
    "temp_directory": "",
}
_PATTERN: Final = frozenset("*?[")
_LONGEST_S: Final = 60.0
_LESS: Final = "ask about less time or fewer nodes"
# Files are merged while they are read: what is gone is now in another one.
_TRIES: Final = 3
_BEFORE_NEXT_TRY_S: Final = 0.2


@dataclass(frozen=True, slots=True)
class View:
    """Rows of a table in a span, with cluster, node, time and these columns; None: with all.

    Rows are told apart by the columns that are read: they must hold the row's identity.
    """

    span: Span
    columns: Sequence[str] | None = None


class _Database:
    """One for all that is asked: to make one costs as much as a small answer."""

    def __init__(self) -> None:
        self._first: duckdb.DuckDBPyConnection | None = None

    def cursor(self) -> duckdb.DuckDBPyConnection:
        """Views of one are not seen by the others."""
        if self._first is None:
            limit = {"memory_limit": f"{question_bytes()}B"}
            self._first = duckdb.connect(":memory:", config={**_SETTINGS, **limit})
        return self._first.cursor()


@dataclass(frozen=True, slots=True)
class LakeQuestions:
    """`clusters` are those that may be seen; None: all. `now_ns` is the end of what is asked about
    unless said otherwise.
    """

    lake: Lake
    now_ns: int
    clusters: tuple[str, ...] | None = None
    longest_s: float = field(default=_LONGEST_S)
    _database: _Database = field(default_factory=_Database, repr=False, compare=False)

    def rows(
        self,
        query: str,
        views: Mapping[str, View],
        parameters: Sequence[Any] = (),
        tables: Mapping[str, pa.Table] | None = None,
    ) -> list[tuple[Any, ...]]:
        """The answer to SQL over these views, and over `tables` that the question brings along."""
        return self.again_if_merged(lambda: self._ask(query, views, parameters, tables or {}))

    def again_if_merged(self, ask: Callable[[], Answer]) -> Answer:
        for _ in range(_TRIES - 1):
            try:
                return ask()
            except (duckdb.IOException, duckdb.InvalidInputException, pa.ArrowException, OSError):
                time.sleep(_BEFORE_NEXT_TRY_S)
        try:
            return ask()
        except (duckdb.Error, pa.ArrowException, OSError) as error:
            facts = f"the lake {self.lake.url} cannot be read: {str(error).splitlines()[0][:300]}"
            raise NecroscopeError(
                facts, "look at its rights and network, and at its files with a Parquet reader"
            ) from None

    def took_too_long(self) -> NecroscopeError:
        return NecroscopeError(f"the question took longer than {self.longest_s:.0f} s", _LESS)

    def _ask(
        self,
        query: str,
        views: Mapping[str, View],
        parameters: Sequence[Any],
        tables: Mapping[str, pa.Table],
    ) -> list[tuple[Any, ...]]:
        with self._database.cursor() as connection:
            for name, table in tables.items():
                connection.register(name, table)
            for name, view in views.items():
                for part, paths in zip(
                    ("alone", "shared"), self._files(name, view.span), strict=True
                ):
                    self._open(connection, name, part, paths)
                connection.execute(f"CREATE TEMP VIEW {name} AS {_select(name, view)}")
            timer = threading.Timer(self.longest_s, connection.interrupt)
            timer.start()
            try:
                return connection.execute(query, list(parameters)).fetchall()
            except duckdb.InterruptException:
                raise self.took_too_long() from None
            except duckdb.OutOfMemoryException:
                facts = f"the question needs more than {format_bytes(question_bytes())} of memory"
                raise NecroscopeError(facts, _LESS) from None
            finally:
                timer.cancel()

    def _open(
        self, connection: duckdb.DuckDBPyConnection, table: str, part: str, paths: list[str]
    ) -> None:
        """As a view of all columns of today; those that an older collector did not write are
        null.
        """
        empty = LAKE_TABLES[table].empty_table()
        places = [self.lake.local_place(path) for path in paths]
        # DuckDB would take some names for patterns.
        if not places or any(place is None or _PATTERN & set(place) for place in places):
            stored = self.lake.dataset_of(table, paths) if paths else empty
            connection.register(f"{table}_{part}", stored)
            return
        connection.register(f"{table}_{part}_columns", empty)
        names = ", ".join(_literal(place) for place in places if place is not None)
        connection.execute(
            f"CREATE TEMP VIEW {table}_{part} AS SELECT * FROM read_parquet([{names}],"
            " hive_partitioning = false, union_by_name = true)"
            f" UNION ALL BY NAME SELECT * FROM {table}_{part}_columns"
        )

    def _files(self, table: str, span: Span) -> tuple[list[str], list[str]]:
        """Files that have their day and cluster to themselves, and the others: only those can hold
        a row twice.
        """
        together: dict[str, list[str]] = defaultdict(list)
        for path in self.lake.table_files(table, span.from_ns, span.to_ns, self.clusters):
            together[path.rpartition("/")[0]].append(path)
        alone = [path for paths in together.values() if len(paths) == 1 for path in paths]
        shared = [path for paths in together.values() if len(paths) > 1 for path in paths]
        return alone, shared


def _literal(text: str) -> str:
    return "'" + text.replace("'", "''") + "'"


def _select(table: str, view: View) -> str:
    names: Iterable[str] = (
        LAKE_TABLES[table].names
        if view.columns is None
        else ("cluster", "node", "time", *view.columns)
    )
    columns = ", ".join(f'"{name}"' for name in names)
    within = f"WHERE time >= {int(view.span.from_ns)} AND time < {int(view.span.to_ns)}"
    alone, shared = (
        f"{words} {columns} FROM {table}_{part} {within}"
        for words, part in (("SELECT", "alone"), ("SELECT DISTINCT", "shared"))
    )
    return f"{alone} UNION ALL {shared}"


def question_bytes(root: Path = Path("/")) -> int:
    """How much memory a question may take: a share of what the process may have, which in a
    container is less than the machine's.
    """
    return min(_MOST_BYTES, min(_bounds_bytes(root)) // _SHARE)


def _bounds_bytes(root: Path) -> Iterator[int]:
    """Of the machine, and of each cgroup from ours up to the topmost that is seen here (Linux:
    admin-guide/cgroup-v2.rst).
    """
    yield os.sysconf("SC_PHYS_PAGES") * os.sysconf("SC_PAGE_SIZE")
    with contextlib.suppress(OSError):
        for line in (root / "proc/self/cgroup").read_text("utf-8").splitlines():
            _, controllers, path = line.split(":", 2)
            if not controllers:
                yield from _cgroup_bounds_bytes(root / "sys/fs/cgroup", path, "memory.max")
            elif "memory" in controllers.split(","):
                yield from _cgroup_bounds_bytes(
                    root / "sys/fs/cgroup/memory", path, "memory.limit_in_bytes"
                )


def _cgroup_bounds_bytes(top: Path, path: str, name: str) -> Iterator[int]:
    """In a container without a cgroup namespace the path is the host's: only the topmost is there,
    and is our own.
    """
    names = [part for part in path.split("/") if part not in ("", "..")]
    for depth in range(len(names) + 1):
        # `max` is not a number.
        with contextlib.suppress(OSError, ValueError):
            yield int(top.joinpath(*names[:depth], name).read_text("utf-8"))


def cheap_span(questions: LakeQuestions, table: str, span: Span, most_rows: int) -> Span:
    """The whole span, or the longest end of it with at most this many rows, as the files say; else
    the shortest.
    """
    ends = [
        Span(max(span.from_ns, span.to_ns - length_ns), span.to_ns) for length_ns in _LENGTHS_NS
    ]
    return next(
        (each for each in (span, *ends) if _rows(questions, table, each) <= most_rows), ends[-1]
    )


def _rows(questions: LakeQuestions, table: str, span: Span) -> float:
    """About: files are of whole days, and the last day may not be over."""
    stored = questions.again_if_merged(
        lambda: questions.lake.dataset(
            table, span.from_ns, span.to_ns, questions.clusters
        ).count_rows()
    )
    first_ns, end_ns = span.from_ns // DAY_NS * DAY_NS, -(-span.to_ns // DAY_NS) * DAY_NS
    stored_ns = max(span.to_ns, min(end_ns, questions.now_ns)) - first_ns
    return float(stored) * (span.to_ns - span.from_ns) / stored_ns
