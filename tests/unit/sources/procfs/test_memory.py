"""/proc/vmstat, /proc/meminfo and the file system caches, joined into the `memory` table."""

from pathlib import Path

import pytest
from tests.synthetic_root import at_second, make_root, write_files

from necroscope.errors import SourceUnavailable
from necroscope.model.tables import TABLES
from necroscope.sources.procfs import filesystem_caches, meminfo, vmstat
from necroscope.sources.procfs.memory import Memory
from necroscope.sources.procfs.named_numbers import NamedNumbers

DATA = Path(__file__).parents[3] / "data/procfs"
CAPTURE = DATA / "linux-6.18-vm"
COLUMNS = [column.name for column in TABLES["memory"].columns]


def test_the_parsers_fill_the_columns_of_the_table_in_order() -> None:
    assert [*vmstat.COLUMNS, *meminfo.COLUMNS, *filesystem_caches.COLUMNS, "inodes"] == COLUMNS[2:]


def test_a_capture_of_vmstat_has_every_column_and_sums_of_those_that_are_split() -> None:
    values = dict(
        zip(vmstat.COLUMNS, vmstat.Vmstat().parse((CAPTURE / "vmstat").read_bytes()), strict=True)
    )
    lines = dict(line.split() for line in (CAPTURE / "vmstat").read_text().splitlines())
    assert values["pgfault"] == int(lines["pgfault"])
    assert (
        values["workingset_refault"]
        == int(lines["workingset_refault_anon"]) + int(lines["workingset_refault_file"])
        > 0
    )
    assert values["allocstall"] == 0
    assert None not in values.values()


def test_old_kernels_name_the_sums_themselves() -> None:
    values = dict(
        zip(
            vmstat.COLUMNS,
            vmstat.Vmstat().parse((DATA / "vmstat-old-names").read_bytes()),
            strict=True,
        )
    )
    assert (values["allocstall"], values["workingset_refault"], values["numa_pages_migrated"]) == (
        17,
        4242,
        None,
    )


def test_names_that_move_are_found_again() -> None:
    numbers = NamedNumbers(("a", "b"))
    assert numbers.parse(b"a 1\nx 5\nb 2\n") == [1, 2]
    assert numbers.parse(b"b 3\nx 6\na 4\n") == [4, 3]
    assert numbers.parse(b"x 0\ny 0\nb 5\na 6\n") == [6, 5]


def test_a_cut_last_line_is_not_believed() -> None:
    assert NamedNumbers(("a", "b", "c")).parse(b"a 1\nb 2\nc 41") == [1, 2, None]


@pytest.mark.parametrize("text", [b"", b"a", b"nothing 5\n"])
def test_a_file_without_the_names_is_refused(text: bytes) -> None:
    with pytest.raises(ValueError, match="empty or cut"):
        NamedNumbers(("a", "b")).parse(text)


def test_a_capture_of_meminfo_is_bytes() -> None:
    values = dict(
        zip(
            meminfo.COLUMNS,
            meminfo.Meminfo().parse((CAPTURE / "meminfo").read_bytes()),
            strict=True,
        )
    )
    assert values["total_bytes"] == 24682416 * 1024
    assert values["swap_used_bytes"] == 0
    assert None not in values.values()


def test_negative_dentries_that_are_not_counted_are_none() -> None:
    assert filesystem_caches.parse_dentry_state(b"261983\t260432\t45\t0\t4611\t0\n") == [
        261983,
        260432,
        4611,
    ]
    assert filesystem_caches.parse_dentry_state(b"87264\t72397\t45\t0\t0\t0\n") == [
        87264,
        72397,
        None,
    ]


def test_a_row_holds_events_since_and_amounts_now(tmp_path: Path) -> None:
    source = Memory(make_root(tmp_path, 2))
    first = source.read(at_second(0))
    assert (first.rows, first.gaps) == ({}, [])
    make_root(tmp_path, 2, step=2)
    (row,) = source.read(at_second(1)).rows["memory"]
    values = dict(zip(COLUMNS, row, strict=True))
    assert (values["pgfault"], values["allocstall"], values["workingset_refault"]) == (6, 24, 12)
    assert (values["free_bytes"], values["dentries_negative"], values["inodes"]) == (
        23849712 * 1024,
        4611,
        257195,
    )
    source.close()


def test_what_this_kernel_lacks_is_none_and_one_gap_for_each_file(tmp_path: Path) -> None:
    make_root(tmp_path, 2)
    text = (tmp_path / "proc/meminfo").read_text().replace("Percpu:              664 kB\n", "")
    write_files(
        tmp_path, {"proc/vmstat": (DATA / "vmstat-old-names").read_text(), "proc/meminfo": text}
    )
    source = Memory(tmp_path)
    assert [gap.cause for gap in source.read(at_second(0)).gaps] == [
        "this kernel's /proc/vmstat has no numa_pages_migrated",
        "this kernel's /proc/meminfo has no percpu_bytes",
    ]
    reading = source.read(at_second(1))
    assert reading.gaps == []
    assert reading.rows["memory"][0][COLUMNS.index("percpu_bytes")] is None
    source.close()


def test_counters_that_start_anew_give_no_row(tmp_path: Path) -> None:
    source = Memory(make_root(tmp_path, 2, step=9))
    source.read(at_second(0))
    make_root(tmp_path, 2, step=1)
    assert source.read(at_second(1)).rows == {}
    make_root(tmp_path, 2, step=2)
    assert len(source.read(at_second(2)).rows["memory"]) == 1
    source.close()


def test_an_empty_file_is_unavailable(tmp_path: Path) -> None:
    source = Memory(make_root(tmp_path, 2))
    write_files(tmp_path, {"proc/sys/fs/inode-nr": ""})
    with pytest.raises(SourceUnavailable, match="inode-nr"):
        source.read(at_second(0))
    source.close()
