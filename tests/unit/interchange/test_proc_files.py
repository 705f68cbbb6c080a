"""Copies of /proc files become rows: with dates between them or without, whole or damaged."""

from pathlib import Path

import pytest

from necroscope.interchange.detect import FileKind, detect
from necroscope.interchange.imported_tables import read_tables
from necroscope.interchange.inputs import Input
from necroscope.interchange.proc_files import parse_stamp, read_snapshots
from necroscope.interchange.rolling import parse_name
from necroscope.model.tables import TABLES

S = 10**9
EVER = (0, 1 << 62)
START_S = 1_776_249_000  # 2026-04-15T10:30:00Z
CGROUPS = """#subsys_name\thierarchy\tnum_cgroups\tenabled
cpuset\t2\t238\t1
cpu\t3\t240\t1
memory\t5\t68680\t1
pids\t7\t240\t1
devices\t9\t235\t1
"""


def stat(second: int, system: int) -> str:
    """Two cores since boot, the second of them `system` ticks in system mode."""
    idle = 100 * second
    return (
        f"cpu  0 0 {system} {2 * idle} 0 0 0 0 0 0\n"
        f"cpu0 0 0 0 {idle} 0 0 0 0 0 0\n"
        f"cpu1 0 0 {system} {idle - system} 0 0 0 0 0 0\n"
        "intr 12345 0 9\nctxt 99\nbtime 1776000000\n"
    )


def interrupts(*counts: tuple[int, int]) -> str:
    lines = [
        f" {60 + n}: {a:10} {b:10}   PCI-MSI 524288-edge      eth0-Tx-Rx-{n}"
        for n, (a, b) in enumerate(counts)
    ]
    return "\n".join(["            CPU0       CPU1", *lines, "LOC:   99   98   Local timer", ""])


def read(tmp_path: Path, *texts: str) -> dict[str, list[dict[str, object]]]:
    inputs = []
    for number, text in enumerate(texts):
        path = tmp_path / f"copy{number}.txt"
        path.write_text(text)
        assert detect(path) is FileKind.PROC
        inputs.append(Input(path, FileKind.PROC, parse_name(path), 1, START_S * S + number * S))
    [(_, tables)] = read_tables(inputs, 0, EVER)
    return {
        table: [
            dict(zip([column.name for column in TABLES[table].columns], row, strict=True))
            for row in rows
        ]
        for table, rows in tables.rows.items()
    }


@pytest.mark.parametrize(
    "stamp",
    [
        "1776249000",
        "1776249000.500000000",
        "2026-04-15T10:30:00Z",
        "2026-04-15T12:30:00+02:00",
        "Wed Apr 15 10:30:00 UTC 2026",
        "zzz ***Wed Apr 15 10:30:00 UTC 2026",
        "Wed Apr 15 10:30:00 AM UTC 2026",
    ],
)
def test_every_form_of_a_date_is_read(stamp: str) -> None:
    assert (parse_stamp(stamp.encode()) or 0) // S == START_S


def test_copies_of_stat_with_dates_between_them_become_seconds_of_cores(tmp_path: Path) -> None:
    text = "".join(f"{START_S + n}\n{stat(1000 + n, 100 * max(0, n - 1))}" for n in range(4))
    cores = read(tmp_path, text)["cores"]
    assert [(row["cpu"], row["system_ns"]) for row in cores if row["cpu"] == 1] == [
        (1, 0),
        (1, S),
        (1, S),
    ]
    assert {row["elapsed_ns"] for row in cores} == {S}


def test_copies_without_a_date_end_when_the_file_was_written(tmp_path: Path) -> None:
    cores = read(tmp_path, stat(1000, 0) + stat(1001, 100) + stat(1003, 100))["cores"]
    assert [(row["time"], row["elapsed_ns"]) for row in cores if row["cpu"] == 1] == [
        ((START_S - 2) * S, S),
        (START_S * S, 2 * S),
    ]


def test_one_file_each_second_is_one_series(tmp_path: Path) -> None:
    cores = read(tmp_path, stat(1000, 0), stat(1001, 100))["cores"]
    assert [(row["cpu"], row["system_ns"]) for row in cores] == [(0, 0), (1, S)]


def test_the_dead_are_those_the_kernel_holds_without_a_directory(tmp_path: Path) -> None:
    found = "".join(f"/sys/fs/cgroup/memory/kubepods/pod{n}\n" for n in range(239))
    rows = read(tmp_path, CGROUPS, f"/sys/fs/cgroup/memory\n{found}")["cgroups"]
    [memory] = [row for row in rows if row["controller"] == "memory"]
    assert (memory["tracked"], memory["visible"], memory["dying"]) == (68680, 240, 68440)


def test_other_hierarchies_say_how_many_live_where_no_directories_are_given(tmp_path: Path) -> None:
    [memory] = [row for row in read(tmp_path, CGROUPS)["cgroups"] if row["controller"] == "memory"]
    assert (memory["visible"], memory["dying"]) == (240, 68440)


def test_the_one_line_that_grep_leaves_says_only_how_many_are_held(tmp_path: Path) -> None:
    [memory] = read(tmp_path, "memory\t5\t68680\t1\n")["cgroups"]
    assert (memory["tracked"], memory["visible"], memory["dying"]) == (68680, None, None)


def test_cgroup_v2_counts_its_dead_itself(tmp_path: Path) -> None:
    [row] = read(tmp_path, "nr_descendants 239\nnr_dying_descendants 68440\n")["cgroups"]
    assert (row["controller"], row["visible"], row["dying"]) == ("unified", 240, 68440)


def test_interrupts_say_which_core_takes_a_queue(tmp_path: Path) -> None:
    [first, second, third] = [
        row
        for row in read(tmp_path, interrupts((70, 0), (5, 9)))["interrupts"]
        if row["device"] == "eth0"
    ]
    assert (first["queue"], first["affinity"], first["count"]) == (0, "0", 0)
    # One that went to both cores is sent where nobody knows.
    assert {(row["queue"], row["affinity"]) for row in (second, third)} == {(1, None)}


def test_two_copies_of_interrupts_say_how_many_came(tmp_path: Path) -> None:
    text = f"{START_S}\n{interrupts((70, 0))}{START_S + 10}\n{interrupts((90, 0))}"
    rows = [row for row in read(tmp_path, text)["interrupts"] if row["count"]]
    assert [(row["cpu"], row["count"], row["elapsed_ns"]) for row in rows] == [(0, 20, 10 * S)]


@pytest.mark.parametrize(
    "text",
    [
        "cpu  1 2\ncpu0 1 2\n",
        "cpu  0 0 0 0 0 0 0 0 0 0\ncpu0 x\n",
        "memory\t5\t99999999999999999999\t1\n",
        "  CPU0 CPU1\n  9: 1\n",
        f"{START_S}\ncpu  9 9 9 9 9 9 9 9 9 9\n" * 3,
        "nr_descendants 5\n",
        "/sys/fs/cgroup\n",
    ],
)
def test_damaged_copies_are_left_out_and_break_nothing(tmp_path: Path, text: str) -> None:
    path = tmp_path / "copy"
    path.write_text(text)
    given = Input(path, FileKind.PROC, parse_name(path), 1, START_S * S)
    for _, tables in read_tables([given], 0, EVER):
        for table, rows in tables.rows.items():
            assert all(len(row) == len(TABLES[table].columns) for row in rows)


def test_what_follows_a_date_is_of_that_moment(tmp_path: Path) -> None:
    path = tmp_path / "mixed"
    path.write_text(f"{START_S}\n{stat(9, 0)}{CGROUPS}\n{START_S + 5}\nmemory\t5\t7\t1\n")
    found = [(snapshot.kind, snapshot.time_ns) for snapshot in read_snapshots(path)]
    assert found == [
        ("stat", START_S * S),
        ("cgroups", START_S * S),
        ("cgroups", (START_S + 5) * S),
    ]
