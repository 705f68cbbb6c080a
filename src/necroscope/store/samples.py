"""The selected samples of a window one by one, with stacks and frames, for formats that keep each
sample's time and core.
"""

from collections import Counter
from dataclasses import dataclass
from typing import Final

import pyarrow as pa

from necroscope.errors import UsageError
from necroscope.model.tables import TABLES
from necroscope.segment.arrow import empty
from necroscope.segment.reader import SegmentReader
from necroscope.stacks.samples import SampleTables
from necroscope.store.flame import ALL
from necroscope.store.merged_samples import merge_samples, with_stacks
from necroscope.store.query import Store
from necroscope.store.segment_selection import SegmentSelection
from necroscope.store.selection import Selection
from necroscope.store.time_limit import TimeLimit
from necroscope.store.window_reading import WindowReading

# About a gigabyte in the writers, and more than any viewer opens.
MOST_SAMPLES: Final = 5_000_000
_COLUMNS: Final = [column.name for column in TABLES["samples"].columns]


@dataclass(frozen=True, slots=True)
class SelectedSampleWindow:
    """`from_ns` and `to_ns` are the part of the window that could be answered; `left_out` says in
    words what is not here.
    """

    tables: SampleTables
    from_ns: int
    to_ns: int
    left_out: list[str]

    @property
    def count(self) -> int:
        return int(self.tables.samples.num_rows)


def read_samples(
    store: Store,
    from_ns: int,
    to_ns: int,
    selection: Selection = ALL,
    *,
    most: int = MOST_SAMPLES,
    limit: TimeLimit | None = None,
) -> SelectedSampleWindow:
    """UsageError if there are more than `most`: each of them would be written."""
    reading = WindowReading(store, from_ns, to_ns, limit or TimeLimit())
    parts: list[SampleTables] = []
    left_out: Counter[str] = Counter()
    for part, left in reading.segments(lambda reader: _read(reader, reading, selection)):
        parts.append(part)
        left_out += left
        if sum(each.samples.num_rows for each in parts) > most:
            raise UsageError(
                f"the window holds more than {most:,} samples",
                "ask for less time or fewer cores, or write folded",
            )
    return SelectedSampleWindow(
        merge_samples(parts), *reading.answered(), reading.left_out(left_out)
    )


def _read(
    reader: SegmentReader, reading: WindowReading, selection: Selection
) -> tuple[SampleTables, Counter[str]]:
    selected = SegmentSelection(reader, selection)
    left_out: Counter[str] = Counter()
    pieces = [empty(TABLES["samples"])]
    for span in reading.slices(reader):
        samples = selected.samples(*span, _COLUMNS)
        left_out += samples.left_out
        pieces.append(samples.rows.select(_COLUMNS))
    rows = pa.concat_tables([piece for piece in pieces if piece.num_rows] or pieces[:1])
    return with_stacks(reader, rows), left_out
