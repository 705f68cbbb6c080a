"""The manifest of a sealed segment: what it holds, and the checksums of every byte of its tables.

Times, rows and gaps are here, so that a reader opens a table only when the window needs it.
"""

from collections.abc import Sequence
from pathlib import Path
from typing import Any, Final, NamedTuple

from necroscope.errors import CorruptData
from necroscope.model.reading import Gap
from necroscope.model.tables import TABLES
from necroscope.segment.checksum import read_checked, write_checked
from necroscope.segment.stored_values import (
    take,
    take_count,
    take_cpus,
    take_moment,
    take_text,
)
from necroscope.segment.versions import check_version

MANIFEST_FILE: Final = "manifest.json"
# More gaps than these are merged by table, cause and core; the table `gaps` has them one by one.
GAP_LIMIT: Final = 200

ByteRange = tuple[int, int, int]


class TableEntry(NamedTuple):
    """A table's file. `ranges` are (offset, length, crc32) and tile it: head, one for each row
    group, and the footer last.
    """

    rows: int
    bytes: int
    from_ns: int
    to_ns: int
    ranges: list[ByteRange]


class Manifest(NamedTuple):
    """`from_ns` and `to_ns` are the time recorded; a table may reach further back, as the kernel
    log does at the first start.
    """

    schema: int
    segment: str
    node: str
    boot_id: str
    from_ns: int
    to_ns: int
    cpus: int | None
    tables: dict[str, TableEntry]
    gaps: Sequence[Gap] = ()
    gaps_are_merged: bool = False
    lost_samples: int = 0
    idle_samples: int = 0

    @property
    def reach(self) -> tuple[int, int]:
        """First and last time of any row that was recorded, and of the time recorded: a derived row
        may begin before both.
        """
        timed = [
            entry for name, entry in self.tables.items() if entry.to_ns and not _is_derived(name)
        ]
        return min([self.from_ns, *(entry.from_ns for entry in timed)]), max(
            [self.to_ns, *(entry.to_ns for entry in timed)]
        )

    def write(self, directory: Path) -> None:
        content = self._asdict()
        content["tables"] = {name: entry._asdict() for name, entry in self.tables.items()}
        content["gaps"] = [gap._asdict() for gap in self.gaps]
        write_checked(directory / MANIFEST_FILE, content)


def read_manifest(directory: Path) -> Manifest:
    """CorruptData if it is damaged, FileNotFoundError if there is none, RecordingError if it is
    newer than we know.
    """
    content = read_checked(directory / MANIFEST_FILE)
    check_version(take(content, "schema", int))
    try:
        return Manifest(
            schema=content["schema"],
            segment=take_text(content, "segment"),
            node=take_text(content, "node"),
            boot_id=take_text(content, "boot_id"),
            from_ns=take_moment(content, "from_ns"),
            to_ns=take_moment(content, "to_ns"),
            cpus=take_cpus(content),
            tables={
                str(name): _table_entry(entry)
                for name, entry in take(content, "tables", dict).items()
            },
            gaps=[_gap(gap) for gap in take(content, "gaps", list)],
            gaps_are_merged=take(content, "gaps_are_merged", bool),
            lost_samples=take_count(content, "lost_samples"),
            idle_samples=take_count(content, "idle_samples"),
        )
    except CorruptData as error:
        raise CorruptData(f"{MANIFEST_FILE} is not understood: {error.facts}") from None


def _is_derived(table: str) -> bool:
    return table in TABLES and TABLES[table].is_derived


def _table_entry(content: Any) -> TableEntry:
    ranges = [_byte_range(given) for given in take(content, "ranges", list)]
    return TableEntry(
        take_count(content, "rows"),
        take_count(content, "bytes"),
        take_moment(content, "from_ns"),
        take_moment(content, "to_ns"),
        ranges,
    )


def _byte_range(given: Any) -> ByteRange:
    if (
        not isinstance(given, list)
        or len(given) != 3
        or not all(type(number) is int and 0 <= number < 1 << 63 for number in given)
    ):
        raise CorruptData("a range is not an offset, a length and a checksum")
    return given[0], given[1], given[2]


def _gap(content: Any) -> Gap:
    optional = {
        name: take_count(content, name)
        for name in ("cpu", "lost")
        if isinstance(content, dict) and content.get(name) is not None
    }
    return Gap(
        take_text(content, "table"),
        take_moment(content, "from_ns"),
        take_moment(content, "to_ns"),
        take_text(content, "cause"),
        **optional,
    )
