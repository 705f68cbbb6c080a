"""Facts that changed since they were last pushed: a segment has all of them at its start, the
collector wants the changes.
"""

import hashlib
from collections.abc import Collection
from dataclasses import dataclass, field
from typing import Any, Final

from necroscope.fleet.protocol import EARLIEST_NS, LATEST_NS
from necroscope.model.units import NS_PER_S
from necroscope.outlets.push.segment_rows import ALL_TIME
from necroscope.segment.reader import SegmentReader

# A collector takes 8 MiB of JSON at once.
_MOST_FACTS: Final = 3000
_MOST_CHARACTERS: Final = 1_500_000
FACT_COLUMNS: Final = ("time", "kind", "name", "value")
_LABEL: Final = "label"
# Told hourly, or when a hash is done: that a segment lacks one says nothing.
_SLOW: Final = frozenset({"package", "executable", _LABEL})
# A segment of a recorder that has just begun may end before all facts are reported.
_WHOLE_NS: Final = 120 * NS_PER_S

Row = dict[str, Any]


@dataclass(slots=True)
class NewFacts:
    """`to_ns`: the segment's facts up to this time are among what was pushed."""

    rows: list[Row] = field(default_factory=list)
    to_ns: int = 0
    is_cut: bool = False


class FactLedger:
    """Hashes of the values that were pushed, by kind and name; a fact that is gone is not in it."""

    def __init__(self, hashes: dict[str, str]) -> None:
        self.hashes = hashes

    def news(self, reader: SegmentReader, after_ns: int, labels: Collection[str]) -> NewFacts:
        """Changes in a segment after a time; labels that every batch names are left out. The ledger
        takes them in at once.
        """
        found = NewFacts(to_ns=after_ns)
        rows = reader.read(
            "facts", max(after_ns + 1, ALL_TIME[0]), ALL_TIME[1], FACT_COLUMNS
        ).to_pylist()
        characters = 0
        for row in sorted(rows, key=lambda row: row["time"]):
            if len(found.rows) >= _MOST_FACTS or characters >= _MOST_CHARACTERS:
                # Others may have the same time: they are looked at again, and those that were taken
                # are known by then.
                found.to_ns, found.is_cut = row["time"] - 1, True
                return found
            found.to_ns = row["time"]
            if not (row["kind"] == _LABEL and row["name"] in labels):
                is_new = self._take(row)
                found.rows += [row] if is_new else []
                characters += len(row["value"] or "") if is_new else 0
        if not reader.is_live:
            found.rows += self._vanished_facts(reader)
        return found

    def take(self, columns: dict[str, list[Any]]) -> None:
        """Facts of a batch that was made before, by columns."""
        for values in zip(*(columns[name] for name in FACT_COLUMNS), strict=True):
            self._take(dict(zip(FACT_COLUMNS, values, strict=True)))

    def _take(self, row: Row) -> bool:
        if not EARLIEST_NS <= row["time"] < LATEST_NS:
            return False
        key = f"{row['kind']}\t{row['name']}"
        if row["value"] is None:
            return self.hashes.pop(key, None) is not None
        value = hashlib.blake2b(row["value"].encode("utf-8", "replace"), digest_size=6).hexdigest()
        is_new = self.hashes.get(key) != value
        self.hashes[key] = value
        return is_new

    def _vanished_facts(self, reader: SegmentReader) -> list[Row]:
        """Facts that went while no recorder ran: a whole segment that tells others of their kind
        does not tell them.
        """
        if reader.span[1] - reader.span[0] < _WHOLE_NS:
            return []
        all_rows = reader.read("facts", *ALL_TIME, ("kind", "name"))
        present = set(
            zip(
                all_rows.column("kind").to_pylist(),
                all_rows.column("name").to_pylist(),
                strict=True,
            )
        )
        kinds = {kind for kind, _ in present} - _SLOW
        known = [tuple(key.split("\t", 1)) for key in self.hashes]
        gone = [
            (kind, name) for kind, name in known if kind in kinds and (kind, name) not in present
        ]
        lost = [
            {"time": reader.span[1], "kind": kind, "name": name, "value": None}
            for kind, name in gone[:_MOST_FACTS]
        ]
        return [row for row in lost if self._take(row)]
