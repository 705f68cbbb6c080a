"""The folded summary of a minute: bounded, by name and cgroup, and honest about what it leaves
out.
"""

from pathlib import Path

import pytest
from tests.drawn_recording import START_NS, at, draw

from necroscope.outlets.push import folded_samples, minute_stacks
from necroscope.outlets.push.minute_stacks import LEFT_OUT, stack_minutes
from necroscope.store.query import Store

MINUTE_NS = 60_000_000_000
FLOOR_NS = START_NS // MINUTE_NS * MINUTE_NS


def folded(found: dict[str, list]) -> dict[tuple[str, str | None, str], int]:
    keys = zip(found["comm"], found["cgroup"], found["path"], strict=True)
    return dict(zip(keys, found["samples"], strict=True))


def test_paths_are_outermost_first_with_their_weights(tmp_path: Path) -> None:
    picture = """
        time:    0.0   0.1   0.2              0.3
        comm:    sh    sh    worker           sh
        cgroup:  /a    /a    /b               /a
        weight:  1     2     1                1
                 main  main  main             main
                 read  read  run<int;float>   ?+77@/lib/x.so
                 .     .     vfs@kernel       .
    """
    found = stack_minutes(Store.open(draw(tmp_path / "r", picture)), FLOOR_NS, at(5))
    assert folded(found) == {
        ("sh", "/a", "main;read"): 3,
        ("worker", "/b", "main;run<int,float>;vfs"): 1,
        ("sh", "/a", "main;[x.so]"): 1,
    }
    assert set(found["time"]) == {FLOOR_NS}


def test_nameless_frames_that_differ_in_their_offset_are_one_path(tmp_path: Path) -> None:
    picture = """
        time:  0.0       0.1
               ?+1@/l/x  ?+2@/l/x
    """
    found = stack_minutes(Store.open(draw(tmp_path / "r", picture)), FLOOR_NS, at(5))
    assert folded(found) == {("sh", "/", "[x]"): 2}


def test_no_more_than_the_bound_and_the_rest_is_one_row(tmp_path: Path) -> None:
    names = [f"function{number}" for number in range(300)]
    times = [f"{0.01 * number:.2f}" for number in range(300)]
    picture = f"time:  {'  '.join(times)}\n  {'  '.join(names)}\n"
    found = stack_minutes(Store.open(draw(tmp_path / "r", picture)), FLOOR_NS, at(5))
    assert len(found["time"]) == 200
    assert (found["path"][-1], found["samples"][-1]) == (LEFT_OUT, 101)
    assert sum(found["samples"]) == 300


def test_a_minute_over_two_segments_is_one(tmp_path: Path) -> None:
    one = "time:  0.0   1.0\n main  main"
    two = "time:  2.0   3.0\n main  other"
    found = stack_minutes(Store.open(draw(tmp_path / "r", one, two, live=1)), FLOOR_NS, at(5))
    assert folded(found) == {("sh", "/", "main"): 3, ("sh", "/", "other"): 1}


def test_what_a_sample_stands_for_is_measured(tmp_path: Path) -> None:
    times = [f"{0.05 * number:.2f}" for number in range(1200)]
    picture = f"time:  {'  '.join(times)}\n  {'  '.join(['main'] * 1200)}\n"
    found = stack_minutes(Store.open(draw(tmp_path / "r", picture)), START_NS, at(20))
    assert found["period_ns"] == [50_000_000] * len(found["time"])


def test_very_many_paths_stay_in_bounds_and_none_is_forgotten(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(folded_samples, "_MOST_KEYS", 20)
    monkeypatch.setattr(minute_stacks, "_PIECE_NS", 100_000_000)
    names = ["heavy" if number % 3 == 0 else f"function{number}" for number in range(300)]
    times = [f"{0.01 * number:.2f}" for number in range(300)]
    picture = f"time:  {'  '.join(times)}\n  {'  '.join(names)}\n"
    found = stack_minutes(Store.open(draw(tmp_path / "r", picture)), FLOOR_NS, at(5))
    assert (found["path"][0], found["samples"][0]) == ("heavy", 100)
    assert sum(found["samples"]) == 300
    assert len(found["time"]) <= 21


def test_of_a_very_deep_path_the_inner_end_is_kept(tmp_path: Path) -> None:
    rows = "\n".join(f"    recursion_number_{number}_of_{'x' * 40}" for number in range(100))
    found = stack_minutes(
        Store.open(draw(tmp_path / "r", f"time:  0.0\n{rows}\n")), FLOOR_NS, at(5)
    )
    (path,) = found["path"]
    assert path.startswith("(cut);recursion_number_")
    assert path.endswith(f"recursion_number_99_of_{'x' * 40}")
    assert len(path) <= 4010
