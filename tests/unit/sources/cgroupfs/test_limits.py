"""What the limits of each cgroup did."""

import os
from pathlib import Path

import pytest
from tests.synthetic_root import write_files

from necroscope.sources.cgroupfs import limits
from necroscope.sources.cgroupfs.limits import (
    CgroupLimits,
    figures_v1_cpu,
    figures_v1_memory,
    figures_v2,
    rises,
)
from necroscope.sources.cgroupfs.walk import Walk

DATA = Path(__file__).parents[3] / "data/cgroupfs"


def _clock() -> int:
    return 0


def _events(high: int, most: int, kills: int) -> str:
    return f"low 0\nhigh {high}\nmax {most}\noom 0\noom_kill {kills}\noom_group_kill 0\n"


def test_v1_cpu_counts_nanoseconds(tmp_path: Path) -> None:
    write_files(tmp_path, {"cpu.stat": "nr_periods 50\nnr_throttled 5\nthrottled_time 1234\n"})
    assert figures_v1_cpu(os.fsencode(tmp_path)) == (5, 1234, None, None, None)
    write_files(tmp_path, {"cpu.stat": (DATA / "cpu.stat-6.18-v1").read_text()})
    assert figures_v1_cpu(os.fsencode(tmp_path)) == (0, 0, None, None, None)


def test_v1_memory_counts_refused_charges_and_kills(tmp_path: Path) -> None:
    write_files(
        tmp_path,
        {
            "memory.failcnt": "17\n",
            "memory.oom_control": (DATA / "memory.oom_control-6.18-v1").read_text(),
        },
    )
    assert figures_v1_memory(os.fsencode(tmp_path)) == (None, None, None, 17, 0)


def test_a_kernel_that_does_not_count_kills_has_none(tmp_path: Path) -> None:
    write_files(
        tmp_path,
        {"memory.failcnt": "17\n", "memory.oom_control": "oom_kill_disable 0\nunder_oom 0\n"},
    )
    assert figures_v1_memory(os.fsencode(tmp_path)) == (None, None, None, 17, None)


def test_v2_counts_microseconds_and_events(tmp_path: Path) -> None:
    cpu = (
        "usage_usec 9\nuser_usec 5\nsystem_usec 4\nnr_periods 3\nnr_throttled 2\nthrottled_usec 7\n"
    )
    write_files(
        tmp_path, {"cpu.max": "50000 100000\n", "cpu.stat": cpu, "memory.events": _events(1, 2, 3)}
    )
    assert figures_v2(os.fsencode(tmp_path)) == (2, 7000, 1, 2, 3)


def test_v2_cpu_figures_are_not_gathered_where_there_is_no_quota(tmp_path: Path) -> None:
    write_files(
        tmp_path, {"cpu.max": "max 100000\n", "cpu.stat": "nr_throttled 2\nthrottled_usec 7\n"}
    )
    assert figures_v2(os.fsencode(tmp_path))[:2] == (None, None)


def test_a_cgroup_without_files_has_no_figures(tmp_path: Path) -> None:
    assert (
        figures_v2(os.fsencode(tmp_path)) == figures_v1_memory(os.fsencode(tmp_path)) == (None,) * 5
    )


def test_a_figure_that_fell_is_a_cgroup_made_anew() -> None:
    assert rises((1, 10, None, 2, 0), (5, 50, None, 2, 0)) == (1, 10, None, 0, 0)
    assert rises((5, 50, None, 2, 0), (5, 50, None, 2, 0)) is None
    assert rises((5, 50, None, None, None), (None, None, None, None, None)) is None


def test_rows_are_of_cgroups_whose_figures_changed(tmp_path: Path) -> None:
    top = os.fsencode(tmp_path)
    reader = CgroupLimits("unified", figures_v2)
    seen = Walk([b"/", b"/a", b"/b"], is_cut=False)
    write_files(
        tmp_path, {"a/memory.events": _events(0, 4, 0), "b/memory.events": _events(0, 0, 0)}
    )
    assert reader.read(top, seen, 1, _clock) == ([], 0)
    write_files(tmp_path, {"a/memory.events": _events(0, 6, 1)})
    rows, left = reader.read(top, seen, 2, _clock)
    assert (rows, left) == ([(2, "unified", "/a", None, None, None, None, None, 0, 2, 1)], 0)


def test_a_cgroup_that_came_since_counts_from_nothing(tmp_path: Path) -> None:
    top = os.fsencode(tmp_path)
    reader = CgroupLimits("unified", figures_v2)
    reader.read(top, Walk([b"/"], is_cut=False), 1, _clock)
    write_files(tmp_path, {"new/memory.events": _events(0, 0, 1)})
    rows, _left = reader.read(top, Walk([b"/", b"/new"], is_cut=False), 2, _clock)
    assert [(row[2], row[10]) for row in rows] == [("/new", 1)]


def test_many_cgroups_are_read_in_turn(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(limits, "READ_LIMIT", 2)
    read: list[bytes] = []

    def figures_of(directory: bytes) -> limits.Figures:
        read.append(directory.rpartition(b"/")[2])
        return (0, 0, 0, 0, 0)

    reader = CgroupLimits("unified", figures_of)
    seen = Walk([b"/a", b"/b", b"/c", b"/d", b"/e"], is_cut=False)
    lates = [reader.read(b"/top", seen, second, _clock)[1] for second in range(3)]
    assert lates == [0, 1, 1], "of the three that were left two are read next"
    assert read == [b"a", b"b", b"c", b"d", b"e", b"a"]


def test_time_ends_a_read() -> None:
    ticks = iter(range(0, 10**12, 3 * 10**6))
    reader = CgroupLimits("unified", lambda _directory: (0, 0, 0, 0, 0))
    seen = Walk([b"/%d" % at for at in range(500)], is_cut=False)
    (_, first), (_, second) = (
        reader.read(b"/", seen, second, lambda: next(ticks)) for second in range(2)
    )
    assert first == 0
    assert 0 < second < 500
