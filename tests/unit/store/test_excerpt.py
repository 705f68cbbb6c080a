"""A window as a recording of its own: the same answers within it, nothing outside, states from
before.
"""

from pathlib import Path

import pytest
from tests.drawn_recording import NS, at, draw, folded

from necroscope.errors import RecordingError, UsageError
from necroscope.model.reading import Gap
from necroscope.store.excerpt import write_excerpt
from necroscope.store.flame import read_flame
from necroscope.store.query import Store

ONE = """
    time:  0.0   1.0        2.0
    comm:  sh    worker 12  sh
           main  main       main
           read  run        read
           .     .          vfs_read@kernel
"""
TWO = """
    time:  3.0   4.0   5.0
           main  main  other
           read  run   .
"""


@pytest.fixture
def whole(tmp_path: Path) -> Store:
    return Store.open(
        draw(tmp_path / "whole", ONE, TWO, gaps=[Gap("nics", at(4), at(5), "no answer")], until=6)
    )


def test_the_window_gives_the_same_flame_graph_as_in_the_whole(
    whole: Store, tmp_path: Path
) -> None:
    write_excerpt(whole, at(1), at(5), tmp_path / "part")
    part = Store.open(tmp_path / "part")
    assert folded(read_flame(part, at(0), at(9))) == folded(read_flame(whole, at(1), at(5)))
    assert part.samples(at(0), at(9)).samples.num_rows == 4


def test_gaps_and_identity_go_with_it(whole: Store, tmp_path: Path) -> None:
    write_excerpt(whole, at(1), at(5), tmp_path / "part")
    info = Store.open(tmp_path / "part").info()
    assert info.node == "node-a"
    assert [gap.cause for gap in info.gaps] == ["no answer"]
    assert (info.from_ns, info.to_ns) == (at(1), at(5))


def test_a_directory_that_holds_something_is_not_touched(whole: Store, tmp_path: Path) -> None:
    (tmp_path / "part").mkdir()
    (tmp_path / "part" / "mine").touch()
    with pytest.raises(RecordingError, match="not empty"):
        write_excerpt(whole, at(1), at(5), tmp_path / "part")
    assert [path.name for path in (tmp_path / "part").iterdir()] == ["mine"]


def test_a_day_is_no_excerpt(whole: Store, tmp_path: Path) -> None:
    with pytest.raises(UsageError, match="too long"):
        write_excerpt(whole, at(0), at(0) + 86400 * NS, tmp_path / "part")


def test_names_can_be_replaced_everywhere(whole: Store, tmp_path: Path) -> None:
    renames = {
        "worker": "job",
        "node-a": "node-x",
        "vfs_": "",
        "no answer": "none",
        "/bin/program": "/opt/app",
    }
    write_excerpt(whole, at(0), at(9), tmp_path / "part", renames)
    part = Store.open(tmp_path / "part")
    sampled = part.samples(at(0), at(9))
    assert set(sampled.samples.column("comm").to_pylist()) == {"sh", "job 12"}
    assert "read" in sampled.frames.column("function").to_pylist()
    assert set(sampled.frames.column("module").to_pylist()) == {"/opt/app", "[kernel]"}
    assert (part.info().node, [gap.cause for gap in part.info().gaps]) == ("node-x", ["none"])
