"""Which cores a recording has rows of: also those that went offline long before its end, and those
that came while it grew.

A week is thousands of segments. A sealed one is looked into only where it holds another number of
rows than the one before it: a core that comes or goes changes that.
"""

from contextlib import suppress
from threading import Lock

from necroscope.segment.reader import SegmentReader
from necroscope.segment.sealed_reader import SegmentGoneError
from necroscope.store.catalog import Segment
from necroscope.store.query import Store


class SeenCores:
    """Asked from several threads, again and again; each time only what is new is looked at."""

    def __init__(self, store: Store) -> None:
        self._catalog = store.catalog
        self._cpus: set[int] = set()
        self._sealed: set[str] = set()
        self._rows_before = ("", 0)
        self._live_to_ns = 0
        self._lock = Lock()

    def cpus(self) -> list[int]:
        """Their numbers may have holes."""
        with self._lock:
            self._catalog.refresh()
            for segment in [
                segment for segment in self._catalog.segments if segment.name not in self._sealed
            ]:
                # Sealed or removed just now: the next who asks will find what became of it.
                with suppress(SegmentGoneError):
                    self._look(segment)
            return sorted(self._cpus)

    def _look(self, segment: Segment) -> None:
        reader = self._catalog.reader(segment)
        if segment.is_live:
            self._cpus |= _cpus_in(reader, "cores", self._live_to_ns)
            self._live_to_ns = segment.to_ns
            return
        # A damaged table of minutes has no rows, and the ticks know the same.
        tables = [table for table in ("core_minutes", "cores") if table in reader.tables]
        rows = next(((table, reader.tables[table]) for table in tables), ("", 0))
        if rows != self._rows_before:
            self._cpus |= next(
                (found for table in tables if (found := _cpus_in(reader, table))), set()
            )
        self._rows_before = rows
        self._sealed.add(segment.name)


def _cpus_in(reader: SegmentReader, table: str, from_ns: int = -(1 << 63)) -> set[int]:
    return set(
        reader.read(table, from_ns, (1 << 63) - 1, ["cpu"])
        .column("cpu")
        .unique()
        .drop_null()
        .to_pylist()
    )
