"""A kept recording of a real incident, written again as if it were recorded now: into a live journal,
a flush at a time, at another time of day.
"""

from dataclasses import dataclass
from importlib import import_module
from importlib.util import find_spec
from pathlib import Path
from typing import Any

from necroscope.analysis.engine import diagnose
from necroscope.model.tables import TABLES
from necroscope.segment.journal import JournalWriter, SegmentHeader
from necroscope.segment.recording import (
    LIVE,
    Identity,
    Pin,
    make_recording,
    new_segment_path,
    read_pins,
    write_pins,
)
from necroscope.store.query import Store

# The benchmark that compares with an older checkout runs there too, where it has another name.
seal = import_module(
    "necroscope.segment."
    + ("seal_writer" if find_spec("necroscope.segment.seal_writer") else "sealing")
).seal
NS = 1_000_000_000
NODE, BOOT = "replayed", "boot-1"
# Their rows hold a second time, or clocks of the machine they are from.
LEFT_OUT = ("gaps", "anchors", "core_minutes")


@dataclass(frozen=True)
class Truth:
    """An incident that the whole recording has, from its beginning on."""

    cause: str
    core: int | None
    from_s: float
    to_s: float


class KeptRecording:
    """One segment's rows, and what `diagnose` finds in them."""

    def __init__(self, directory: Path) -> None:
        store = Store.open(directory)
        (segment,) = store.catalog.segments
        reader = store.catalog.reader(segment)
        self.first_ns, self.last_ns = reader.span
        self.cpus = reader.cpus
        self.pins = read_pins(directory)
        self.rows: dict[str, list[tuple[Any, ...]]] = {}
        for name, table in TABLES.items():
            if name not in LEFT_OUT:
                columns = [column.name for column in table.columns]
                found = reader.read(name, 0, 1 << 62, columns).select(columns)
                self.rows[name] = list(
                    zip(*(column.to_pylist() for column in found.columns), strict=True)
                )
        self.truth = [
            Truth(one.verdict.cause, one.core, *map(self._second, (one.from_ns, one.to_ns)))
            for one in diagnose(store).wrong
        ]

    @property
    def seconds(self) -> float:
        return self._second(self.last_ns)

    def _second(self, time_ns: int) -> float:
        return (time_ns - self.first_ns) / NS


class ReplayedRecording:
    """`begin` starts a segment with a kept recording, `grow` appends what has happened until then."""

    def __init__(self, directory: Path) -> None:
        self.directory = directory
        self._pins: list[Pin] = []
        self._writer: JournalWriter | None = None
        make_recording(directory, Identity(NODE, BOOT, "necroscope replayed", {}))

    def begin(self, kept: KeptRecording, start_ns: int) -> None:
        self.end()
        self._kept, self._by_ns, self._until_ns = kept, start_ns - kept.first_ns, 0
        path = new_segment_path(self.directory, start_ns)
        name = path.name.removesuffix(LIVE)
        self._writer = JournalWriter(path, SegmentHeader(name, NODE, BOOT, start_ns, kept.cpus))
        for table, rows in kept.rows.items():
            if rows and not TABLES[table].is_timed:
                self._writer.append(table, rows)

    def grow(self, until_ns: int) -> None:
        """Rows before that time, those of the kernel log from before its beginning included."""
        assert self._writer is not None
        from_ns, to_ns = self._until_ns, until_ns - self._by_ns
        for table, rows in self._kept.rows.items():
            if TABLES[table].is_timed:
                new = [row for row in rows if from_ns <= row[0] < to_ns]
                if new:
                    self._writer.append(table, [(row[0] + self._by_ns, *row[1:]) for row in new])
        self._writer.flush()
        self._until_ns = to_ns
        self._pin(from_ns, to_ns)

    def end(self) -> None:
        if self._writer is not None:
            self._writer.close()
            seal(self._writer.path.parent)
            self._writer = None

    def _pin(self, from_ns: int, to_ns: int) -> None:
        """Pins end two minutes after their trigger, which is when the recorder sets them."""
        after_ns = 120 * NS
        due = [pin for pin in self._kept.pins if from_ns <= pin.to_ns - after_ns < to_ns]
        if due:
            moved = [
                Pin(pin.from_ns + self._by_ns, pin.to_ns + self._by_ns, pin.reason) for pin in due
            ]
            self._pins += moved
            write_pins(self.directory, self._pins)
