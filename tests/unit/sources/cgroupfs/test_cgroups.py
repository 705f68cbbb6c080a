"""The `cgroups` table over v1, v2 and hybrid hierarchies."""

import itertools
import os
from pathlib import Path

import pytest
from tests.synthetic_root import at_second, make_root, write_files

from necroscope.errors import SourceUnavailable
from necroscope.model.tables import TABLES
from necroscope.sources.cgroupfs import limits
from necroscope.sources.cgroupfs import walk as walk_module
from necroscope.sources.cgroupfs.cgroups import Cgroups

DATA = Path(__file__).parents[3] / "data/cgroupfs"


def _clock() -> int:
    return 0


def _v2(root: Path) -> None:
    write_files(
        root,
        {
            "proc/1/mountinfo": (DATA / "mountinfo-v2-only").read_text(),
            "sys/fs/cgroup/cgroup.stat": (DATA / "cgroup.stat-6.12").read_text(),
            "sys/fs/cgroup/system.slice/cgroup.stat": (
                "nr_descendants 1\nnr_dying_descendants 68000\n"
            ),
            "sys/fs/cgroup/system.slice/memory.events": "low 0\nhigh 0\nmax 0\noom 0\noom_kill 0\n",
        },
    )


def test_v1_counts_the_dead_of_memory_alone(tmp_path: Path) -> None:
    source = Cgroups(make_root(tmp_path, 2, cgroups=8), _clock)
    reading = source.read(at_second(0))
    nones = (None,) * 5
    assert [row[1:] for row in reading.rows["cgroups"]] == [
        ("cpu", "/", 240, None, None, *nones),
        ("cpuacct", "/", 240, None, None, *nones),
        ("memory", "/", 68_680, 8, 68_672, *nones),
    ]
    assert reading.gaps == []
    assert all(len(row) == len(TABLES["cgroups"].columns) for row in reading.rows["cgroups"])
    source.close()


def test_v2_names_the_slice_and_needs_no_proc_cgroups(tmp_path: Path) -> None:
    _v2(tmp_path)
    source = Cgroups(tmp_path, _clock)
    reading = source.read(at_second(0))
    assert [row[1:6] for row in reading.rows["cgroups"]] == [
        ("unified", "/", 68_681, 241, 68_440),
        ("memory", "/", 68_669, 230, 68_439),
        ("unified", "/system.slice", 68_002, 2, 68_000),
    ]
    assert reading.gaps == []
    source.close()


def test_v2_lines_of_proc_cgroups_are_not_counted_twice(tmp_path: Path) -> None:
    _v2(tmp_path)
    write_files(
        tmp_path,
        {"proc/cgroups": "#subsys_name\thierarchy\tnum_cgroups\tenabled\nmemory\t0\t68681\t1\n"},
    )
    source = Cgroups(tmp_path, _clock)
    assert [row[1] for row in source.read(at_second(0)).rows["cgroups"]] == [
        "unified",
        "memory",
        "unified",
    ]
    source.close()


def test_limits_that_acted_have_rows_of_their_own(tmp_path: Path) -> None:
    _v2(tmp_path)
    source = Cgroups(tmp_path, _clock)
    source.read(at_second(0))
    write_files(
        tmp_path,
        {"sys/fs/cgroup/system.slice/memory.events": "low 0\nhigh 4\nmax 1\noom 1\noom_kill 1\n"},
    )
    rows = source.read(at_second(10)).rows["cgroups"]
    assert rows[-1][1:] == ("unified", "/system.slice", None, None, None, None, None, 4, 1, 1)
    source.close()


def test_hostile_names_reach_the_rows_harmless(tmp_path: Path) -> None:
    _v2(tmp_path)
    source = Cgroups(tmp_path, _clock)
    source.read(at_second(0))
    for name in (b"\x1b[31m\xff", b"y" * 200):
        folder = os.fsencode(tmp_path) + b"/sys/fs/cgroup/" + name
        os.mkdir(folder)
        with open(folder + b"/memory.events", "wb") as file:
            file.write(b"oom_kill 1\n")
    paths = {row[2] for row in source.read(at_second(10)).rows["cgroups"]}
    assert {"/\\x1b[31m\\xff", "/" + "y" * 200} <= paths
    source.close()


def test_a_walk_that_was_cut_counts_no_dead_and_leaves_a_gap(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(walk_module, "DIRECTORY_LIMIT", 4)
    source = Cgroups(make_root(tmp_path, 2), _clock)
    reading = source.read(at_second(0))
    assert reading.rows["cgroups"][2][1:6] == ("memory", "/", 68_680, None, None)
    assert [gap.cause for gap in reading.gaps] == ["more than 4 cgroups: not all were counted"] * 2
    source.close()


def test_limits_not_read_for_want_of_time_are_a_gap(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(limits, "READ_LIMIT", 3)
    source = Cgroups(make_root(tmp_path, 2), _clock)
    assert source.read(at_second(0)).gaps == []
    gaps = source.read(at_second(10)).gaps
    assert [(gap.cause, gap.lost) for gap in gaps] == [
        ("limits of 2 of 8 memory cgroups were not read twice in a row", 2),
        ("limits of 2 of 8 cpu cgroups were not read twice in a row", 2),
    ]
    source.close()


def test_a_part_of_the_hierarchy_counts_no_dead(tmp_path: Path) -> None:
    make_root(tmp_path, 2)
    (tmp_path / "sys/fs/cgroup/memory/release_agent").unlink()
    source = Cgroups(tmp_path, _clock)
    reading = source.read(at_second(0))
    assert reading.rows["cgroups"][2][1:6] == ("memory", "/", 68_680, None, None)
    assert [gap.cause for gap in reading.gaps] == [
        "only a part of the memory hierarchy can be seen, not that of the node"
    ]
    source.close()


def test_a_mount_that_vanished_is_unavailable_and_looked_for_again(tmp_path: Path) -> None:
    make_root(tmp_path, 2)
    source = Cgroups(tmp_path, _clock)
    source.read(at_second(0))
    (tmp_path / "sys/fs/cgroup/memory").rename(tmp_path / "away")
    with pytest.raises(SourceUnavailable, match="memory"):
        source.read(at_second(10))
    (tmp_path / "away").rename(tmp_path / "sys/fs/cgroup/memory")
    assert len(source.read(at_second(20)).rows["cgroups"]) == 3
    source.close()


@pytest.mark.kernel
def test_this_machine_can_be_read() -> None:
    source = Cgroups(Path("/"))
    rows = source.read(at_second(0)).rows["cgroups"]
    assert any(row[2] == "/" for row in rows)
    assert all(len(row) == len(TABLES["cgroups"].columns) for row in rows)
    source.close()


def test_a_walk_that_took_too_long_says_how_long(tmp_path: Path) -> None:
    seconds = itertools.count()
    source = Cgroups(make_root(tmp_path, 2), lambda: next(seconds) * 1_000_000_000)
    causes = [gap.cause for gap in source.read(at_second(0)).gaps if "counted" in gap.cause]
    assert causes
    assert all(cause.endswith("not all were counted within 50 ms") for cause in causes)
    source.close()
