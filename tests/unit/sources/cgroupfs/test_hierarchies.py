"""Which cgroup hierarchies there are: v1, v2 and hybrid."""

from pathlib import Path

import pytest
from tests.synthetic_root import write_files

from necroscope.errors import SourceUnavailable
from necroscope.sources.cgroupfs import hierarchies
from necroscope.sources.cgroupfs.hierarchies import (
    Controller,
    Hierarchy,
    parse_cgroups,
    parse_mountinfo,
)

DATA = Path(__file__).parents[3] / "data/cgroupfs"


def test_a_hybrid_machine_has_both_versions() -> None:
    found = parse_mountinfo((DATA / "mountinfo-6.18-hybrid").read_bytes())
    assert Hierarchy(1, ("memory",), b"/sys/fs/cgroup/memory", is_whole=True) in found
    assert [h.mount_point for h in found if h.version == 2] == [b"/sys/fs/cgroup/unified"]


def test_v1_mounts_may_carry_several_controllers_and_options() -> None:
    found = parse_mountinfo((DATA / "mountinfo-v1-only").read_bytes())
    assert [h.controllers for h in found] == [("name=systemd",), ("cpu", "cpuacct"), ("memory",)]


def test_the_mount_of_the_whole_beats_that_of_a_part_whatever_their_order() -> None:
    lines = (DATA / "mountinfo-v1-only").read_bytes().splitlines(keepends=True)
    for order in (lines, lines[::-1]):
        (memory,) = [h for h in parse_mountinfo(b"".join(order)) if h.controllers == ("memory",)]
        assert memory == Hierarchy(1, ("memory",), b"/sys/fs/cgroup/memory", is_whole=True)


def test_a_part_in_a_path_with_a_space_is_found() -> None:
    part = (DATA / "mountinfo-v1-only").read_bytes().splitlines(keepends=True)[-1]
    assert parse_mountinfo(part) == [
        Hierarchy(1, ("memory",), b"/var/lib/my app/memory", is_whole=False)
    ]


def test_the_root_seen_from_a_cgroup_namespace_is_whole() -> None:
    (found,) = parse_mountinfo(
        b"30 24 0:26 /../../.. /host/sys/fs/cgroup rw - cgroup2 cgroup2 rw\n"
    )
    assert found.is_whole


@pytest.mark.parametrize(
    "text",
    [b"", b"\n", b"garbage\n", b"30 24 0:26 / / rw - ext4 /dev/vda rw\n", b"30 24 - cgroup2"],
)
def test_texts_without_cgroups_have_none(text: bytes) -> None:
    assert parse_mountinfo(text) == []


def test_a_capture_of_proc_cgroups_is_read() -> None:
    controllers = {c.name: c for c in parse_cgroups((DATA / "cgroups-6.18-hybrid").read_bytes())}
    assert controllers["memory"].hierarchy == 4
    assert controllers["memory"].cgroups > 1
    assert controllers["hugetlb"] == Controller("hugetlb", 0, 1, is_enabled=True)


def test_mount_points_lie_below_the_host_root_of_the_first_process(tmp_path: Path) -> None:
    write_files(
        tmp_path,
        {
            "proc/1/mountinfo": (DATA / "mountinfo-v2-only").read_text(),
            "proc/self/mountinfo": "nothing\n",
        },
    )
    (found,) = hierarchies.read(tmp_path)
    assert found.mount_point == str(tmp_path / "sys/fs/cgroup").encode()
    assert found.is_whole


def test_a_namespace_that_hides_the_rest_is_noticed_by_the_files_of_the_root(
    tmp_path: Path,
) -> None:
    write_files(
        tmp_path,
        {
            "proc/1/mountinfo": (DATA / "mountinfo-v2-only").read_text(),
            "sys/fs/cgroup/cgroup.events": "",
        },
    )
    assert [h.is_whole for h in hierarchies.read(tmp_path)] == [False]


def test_without_cgroups_it_is_unavailable(tmp_path: Path) -> None:
    write_files(tmp_path, {"proc/1/mountinfo": "", "proc/self/mountinfo": ""})
    with pytest.raises(SourceUnavailable, match="no cgroup hierarchy"):
        hierarchies.read(tmp_path)
