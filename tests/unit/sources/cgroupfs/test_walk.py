"""The directories of a cgroup hierarchy."""

import os
from pathlib import Path

import pytest

from necroscope.sources.cgroupfs import walk as walk_module
from necroscope.sources.cgroupfs.walk import walk

HOSTILE = [b" ", b"x" * 200, b"\xff\xfe", b"\x1b[31mred", b"a\\b", b"..."]


def _clock() -> int:
    return 0


def test_all_directories_are_found_and_files_are_not(tmp_path: Path) -> None:
    for name in ("a/b/c", "a/d", "e"):
        (tmp_path / name).mkdir(parents=True)
    (tmp_path / "a/cgroup.procs").write_text("")
    seen = walk(os.fsencode(tmp_path), _clock)
    assert sorted(seen.paths) == [b"/", b"/a", b"/a/b", b"/a/b/c", b"/a/d", b"/e"]
    assert not seen.is_cut


def test_hostile_names_are_kept_as_bytes(tmp_path: Path) -> None:
    for name in HOSTILE:
        os.makedirs(os.fsencode(tmp_path) + b"/" + name + b"/child")
    seen = walk(os.fsencode(tmp_path), _clock)
    assert set(seen.paths) == {
        b"/",
        *(b"/" + name for name in HOSTILE),
        *(b"/" + name + b"/child" for name in HOSTILE),
    }


def test_links_are_not_followed(tmp_path: Path) -> None:
    (tmp_path / "a").mkdir()
    (tmp_path / "loop").symlink_to(tmp_path)
    assert sorted(walk(os.fsencode(tmp_path), _clock).paths) == [b"/", b"/a"]


def test_too_many_directories_cut_the_walk(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(walk_module, "DIRECTORY_LIMIT", 3)
    for name in "abcd":
        (tmp_path / name).mkdir()
    seen = walk(os.fsencode(tmp_path), _clock)
    assert (len(seen.paths), seen.is_cut) == (3, True)


def test_too_much_time_cuts_the_walk(tmp_path: Path) -> None:
    for name in ("a/b", "c/d"):
        (tmp_path / name).mkdir(parents=True)
    ticks = iter(range(0, 10**9, 10**7))
    seen = walk(os.fsencode(tmp_path), lambda: next(ticks), time_limit_ns=5 * 10**6)
    assert (len(seen.paths), seen.is_cut) == (3, True)


@pytest.mark.root
@pytest.mark.kernel
def test_other_mounts_are_not_entered() -> None:
    seen = walk(b"/sys/fs", _clock)
    assert b"/cgroup" not in seen.paths
