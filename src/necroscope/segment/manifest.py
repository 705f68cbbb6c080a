"""The manifest of a sealed segment: what it holds, and the checksums of every byte of its tables.

Times, rows and gaps are here, so that a reader opens a table only when the window needs it.
"""

from dataclasses import asdict, dataclass, field, replace
from operator import attrgetter
from pathlib import Path
from typing import Any, Final

from necroscope.errors import CorruptData
from necroscope.model.reading import Gap
from necroscope.model.tables import TABLES
from necroscope.segment.checksum import read_checked, write_checked
from necroscope.segment.versions import check_version

MANIFEST_FILE: Final = "manifest.json"
# More gaps than these are merged by table, cause and core; the table `gaps` has them one by one.
GAP_LIMIT: Final = 200

ByteRange = tuple[int, int, int]


@dataclass(frozen=True, slots=True)
class TableEntry:
    """A table's file. `ranges` are (offset, length, crc32) and tile it: head, one for each row
    group, and the footer last.
    """

    rows: int
    bytes: int
    from_ns: int
    to_ns: int
    ranges: list[ByteRange]


@dataclass(frozen=True, slots=True)
class Manifest:
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
    gaps: list[Gap] = field(default_factory=list)
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
        write_checked(directory / MANIFEST_FILE, asdict(self))


def read_manifest(directory: Path) -> Manifest:
    """CorruptData if it is damaged, FileNotFoundError if there is none, RecordingError if it is
    newer than we know.
    """
    content = read_checked(directory / MANIFEST_FILE)
    try:
        check_version(content["schema"])
        tables = {str(name): _table_entry(entry) for name, entry in content.pop("tables").items()}
        gaps = [Gap(**gap) for gap in content.pop("gaps")]
        return Manifest(tables=tables, gaps=gaps, **content)
    except (KeyError, TypeError, ValueError, AttributeError) as error:
        raise CorruptData(f"{MANIFEST_FILE} is not understood: {error}") from None


def merge_gaps(gaps: list[Gap], closest_ns: int = 1 << 63) -> list[Gap]:
    """Gaps of one table, cause and core are one where no more than `closest_ns` lies between them;
    what was lost adds up.
    """
    merged: dict[tuple[str, str, int | None], list[Gap]] = {}
    for gap in sorted(gaps, key=attrgetter("from_ns")):
        known = merged.setdefault((gap.table, gap.cause, gap.cpu), [])
        if known and gap.from_ns - known[-1].to_ns <= closest_ns:
            before = known.pop()
            to_ns, lost = max(before.to_ns, gap.to_ns), _sum(before.lost, gap.lost)
            known.append(replace(before, to_ns=to_ns, lost=lost))
        else:
            known.append(gap)
    return [gap for known in merged.values() for gap in known]


def _is_derived(table: str) -> bool:
    return table in TABLES and TABLES[table].is_derived


def _table_entry(content: dict[str, Any]) -> TableEntry:
    ranges = [(int(offset), int(length), int(crc)) for offset, length, crc in content.pop("ranges")]
    return TableEntry(ranges=ranges, **content)


def _sum(one: int | None, other: int | None) -> int | None:
    return other if one is None else one if other is None else one + other
