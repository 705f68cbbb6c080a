"""Cgroups of the lab on both versions, on directories that look like them."""

from pathlib import Path

from necroscope.lab.cgroup import Cgroup, make


def test_on_v2_every_level_hands_the_controller_down(tmp_path: Path) -> None:
    (tmp_path / "cgroup.subtree_control").touch()
    (tmp_path / "a/b").mkdir(parents=True)
    for level in ("a", "a/b"):
        (tmp_path / level / "cgroup.subtree_control").touch()
    make(Cgroup("/a/b/c", {"memory": tmp_path / "a/b/c"}))
    handed = [
        (tmp_path / level / "cgroup.subtree_control").read_text() for level in ("", "a", "a/b")
    ]
    assert handed == ["+memory"] * 3
    assert (tmp_path / "a/b/c").is_dir()


def test_a_v1_cpuset_gets_what_its_parent_has(tmp_path: Path) -> None:
    for directory in (tmp_path, tmp_path / "a"):
        directory.mkdir(exist_ok=True)
        (directory / "cpuset.cpus").write_text("0-3" if directory == tmp_path else "")
        (directory / "cpuset.mems").write_text("0" if directory == tmp_path else "")
    make(Cgroup("/a", {"cpuset": tmp_path / "a"}))
    assert ((tmp_path / "a/cpuset.cpus").read_text(), (tmp_path / "a/cpuset.mems").read_text()) == (
        "0-3",
        "0",
    )


def test_a_file_is_found_by_its_controller(tmp_path: Path) -> None:
    cgroup = Cgroup("/a", {"memory": tmp_path / "memory", "cpu": tmp_path / "cpu"})
    for directory in cgroup.directories.values():
        directory.mkdir()
    cgroup.write("cpu.cfs_quota_us", 5000)
    assert cgroup.read("cpu.cfs_quota_us") == "5000"
    assert cgroup.file("memory.stat") == str(tmp_path / "memory/memory.stat")
    cgroup.add(7)
    assert (
        (tmp_path / "memory/cgroup.procs").read_text()
        == (tmp_path / "cpu/cgroup.procs").read_text()
        == "7"
    )
