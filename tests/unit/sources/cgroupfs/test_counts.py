"""How many cgroups live and how many are dead but held."""

import os
from pathlib import Path

from tests.synthetic_root import write_files

from necroscope.sources.cgroupfs.counts import Count, count_v1, count_v2, parse_cgroup_stat, read_v2

DATA = Path(__file__).parents[3] / "data/cgroupfs"


def _stat(living: int, dying: int) -> str:
    return f"nr_descendants {living}\nnr_dying_descendants {dying}\n"


def test_the_dead_of_v1_are_those_without_a_directory() -> None:
    assert count_v1("memory", tracked=68_680, visible=240) == Count(
        "memory", b"/", 68_680, 240, 68_440
    )
    assert count_v1("cpu", tracked=240, visible=None) == Count("cpu", b"/", 240, None, None)


def test_a_cgroup_made_between_the_counts_is_not_a_negative_death() -> None:
    assert count_v1("memory", tracked=5, visible=6).dying == 0


def test_v2_counts_memory_apart_since_6_12() -> None:
    stat = parse_cgroup_stat((DATA / "cgroup.stat-6.12").read_bytes())
    assert count_v2(b"/", stat) == [
        Count("unified", b"/", 68_681, 241, 68_440),
        Count("memory", b"/", 68_669, 230, 68_439),
    ]


def test_v2_before_6_12_counts_all_controllers_together() -> None:
    stat = parse_cgroup_stat((DATA / "cgroup.stat-5.15").read_bytes())
    assert count_v2(b"/", stat) == [Count("unified", b"/", 68_681, 241, 68_440)]


def test_a_capture_without_the_memory_controller_has_no_memory_count() -> None:
    assert [
        c.controller
        for c in count_v2(b"/", parse_cgroup_stat((DATA / "cgroup.stat-6.18").read_bytes()))
    ] == ["unified"]


def test_the_slice_that_leaks_is_named_to_the_second_level(tmp_path: Path) -> None:
    files = {
        "cgroup.stat": _stat(5, 100),
        "system.slice/cgroup.stat": _stat(2, 99),
        "system.slice/ecs.service/cgroup.stat": _stat(1, 98),
        "system.slice/ecs.service/deep/cgroup.stat": _stat(0, 90),
        "system.slice/ssh.service/cgroup.stat": _stat(0, 0),
        "user.slice/cgroup.stat": _stat(0, 0),
    }
    write_files(tmp_path, files)
    paths = [b"/" + os.fsencode(name.removesuffix("cgroup.stat").rstrip("/")) for name in files]
    counts = list(read_v2(os.fsencode(tmp_path), paths))
    assert [(c.path, c.dying) for c in counts] == [
        (b"/", 100),
        (b"/system.slice", 99),
        (b"/system.slice/ecs.service", 98),
    ]


def test_a_kernel_without_cgroup_stat_has_no_counts(tmp_path: Path) -> None:
    assert list(read_v2(os.fsencode(tmp_path), [b"/"])) == []


def test_paths_are_made_harmless_in_rows() -> None:
    assert Count("unified", b"/\x1b[31m\xff", 1, 1, 0).row(5)[2] == "/\\x1b[31m\\xff"
