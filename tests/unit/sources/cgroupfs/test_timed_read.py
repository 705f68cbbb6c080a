"""The timed read asks small before large, and stops where it got slow."""

import os
from collections.abc import Callable
from pathlib import Path

import pytest

from necroscope.errors import SourceUnavailable
from necroscope.sources.cgroupfs import timed_read
from necroscope.sources.cgroupfs.timed_read import ProbeResult, TimedRead, probe


@pytest.fixture
def root(tmp_path: Path) -> Path:
    """A v1 memory hierarchy: /, /kubepods, /kubepods/pod1."""
    for path in ("", "kubepods", "kubepods/pod1"):
        directory = tmp_path / "sys/fs/cgroup/memory" / path
        directory.mkdir(parents=True, exist_ok=True)
        (directory / "memory.stat").write_text("cache 0\n")
    (tmp_path / "sys/fs/cgroup/memory/release_agent").write_text("")
    (tmp_path / "proc/1").mkdir(parents=True)
    line = "30 24 0:26 / /sys/fs/cgroup/memory rw - cgroup cgroup rw,memory\n"
    (tmp_path / "proc/1/mountinfo").write_text(line)
    return tmp_path


def test_the_smallest_is_read_first_and_the_root_last(root: Path) -> None:
    reads = probe(root, [0], [], 3).reads
    assert [Path(read.path).parent.name for read in reads] == ["pod1", "kubepods", "memory"]
    assert [read.is_root for read in reads] == [False, False, True]
    assert all(read.duration_ns is not None for read in reads)


def test_a_slow_read_is_the_last(root: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(
        timed_read, "_time_read", lambda path, core, is_root: TimedRead(str(path), 10**9, is_root)
    )
    assert len(probe(root, [0], [], 3).reads) == 1


def test_cores_with_network_interrupts_are_avoided(
    root: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    used = []
    monkeypatch.setattr(
        timed_read,
        "_time_read",
        lambda path, core, is_root: used.append(core) or TimedRead("", 1, is_root),
    )
    probe(root, [0, 1, 2], [1, 2], 3)
    assert set(used) == {0}


def test_a_read_that_dies_is_no_slow_read(root: Path) -> None:
    (root / "sys/fs/cgroup/memory/kubepods/pod1/memory.stat").unlink()
    (root / "sys/fs/cgroup/memory/kubepods/pod1/memory.stat").mkdir()
    with pytest.raises(SourceUnavailable, match=r"pod1/memory.stat ended with 1 and no answer"):
        probe(root, [0], [], 3)


def test_without_a_core_nothing_is_read(root: Path) -> None:
    with pytest.raises(SourceUnavailable, match="no core is known"):
        probe(root, [], [], 3)


def names(probed: ProbeResult) -> list[str]:
    return [Path(read.path).parent.name for read in probed.reads]


def timed(durations_ns: dict[str, int]) -> Callable[..., TimedRead]:
    """As if a read took this long in the cgroup of that name."""
    return lambda path, core, is_root: TimedRead(
        os.fsdecode(path), durations_ns[Path(os.fsdecode(path)).parent.name], is_root
    )


def test_without_a_core_that_is_free_of_network_interrupts_the_root_is_not_read(root: Path) -> None:
    probed = probe(root, [0], [0], 3)
    assert names(probed) == ["pod1", "kubepods"]
    assert "every core takes network interrupts" in probed.left_out


def test_a_root_over_too_many_dead_cgroups_is_not_read(
    root: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    # 40 us for the two cgroups of kubepods: 20 us for each.
    monkeypatch.setattr(
        timed_read, "_time_read", timed({"pod1": 30_000, "kubepods": 40_000, "memory": 1})
    )
    assert names(probe(root, [0], [], 999)) == ["pod1", "kubepods", "memory"]
    probed = probe(root, [0], [], 68_680)
    assert names(probed) == ["pod1", "kubepods"]
    assert probed.left_out == "over the 68,680 cgroups that are held it may take 1.37 s"


def test_where_nothing_smaller_could_be_timed_or_counted_a_large_root_is_not_read(
    root: Path,
) -> None:
    for path in ("kubepods/pod1", "kubepods"):
        (root / "sys/fs/cgroup/memory" / path / "memory.stat").unlink()
    assert names(probe(root, [0], [], 3)) == ["memory"]
    assert names(probe(root, [0], [], 300)) == []
    assert names(probe(root, [0], [], None)) == []
