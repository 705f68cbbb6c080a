"""The longest waits of a stretch, short or long."""

from pathlib import Path
from typing import Any

from tests.written_recording import START_NS, WrittenSegment, at, new_recording, row

from necroscope.model.span import Span
from necroscope.store import longest_waits
from necroscope.store.longest_waits import MOST, LongestWaits, WaitHistory
from necroscope.store.query import Store
from necroscope.store.time_limit import TimeLimit

MS = 1_000_000
HOUR_S = 3600


def waited(ends_s: float, lasted_ms: float, **rest: Any) -> Any:
    given = {"kind": "runnable", "comm": "raylet", "tid": 7, "pid": 7} | rest
    return row("waits", ends_s, waited_ns=round(lasted_ms * MS), **given)


def recorded(directory: Path, *segments: list[Any]) -> WaitHistory:
    """A segment for each list, an hour apart."""
    new_recording(directory)
    for number, rows in enumerate(segments):
        segment = WrittenSegment(directory, number * HOUR_S)
        segment.add("waits", *sorted(rows, key=lambda each: each[0]))
        segment.seal()
    return WaitHistory(Store.open(directory))


def ask(
    history: WaitHistory, from_s: float, to_s: float, limit: TimeLimit | None = None
) -> LongestWaits:
    return history.longest(Span(at(from_s), at(to_s)), limit or TimeLimit())


def lengths_ms(found: LongestWaits) -> list[float]:
    return [wait["waited_ns"] / MS for wait in found.rows]


def test_a_wait_that_was_seen_to_go_on_is_one_wait_with_what_its_first_rows_knew(
    tmp_path: Path,
) -> None:
    rows = [waited(1 + ms / 1000, ms, is_open=True, stack="a;b") for ms in (20, 40, 80)]
    history = recorded(tmp_path / "r", [*rows, waited(1.1, 100), waited(2, 30, tid=8)])
    found = ask(history, 0, 10)
    assert lengths_ms(found) == [100, 30]
    assert found.rows[0]["stack"] == "a;b"
    assert (found.count, found.groups[0].count, found.groups[0].worst_ns) == (2, 2, 100 * MS)


def test_a_wait_that_never_ended_is_counted(tmp_path: Path) -> None:
    found = ask(recorded(tmp_path / "r", [waited(3, 2000, is_open=True)]), 0, 10)
    assert [(group.comm, group.count, group.total_ns) for group in found.groups] == [
        ("raylet", 1, 2000 * MS)
    ]


def test_a_stretch_within_a_long_wait_shows_it(tmp_path: Path) -> None:
    history = recorded(tmp_path / "r", [waited(9, 5000), waited(9, 100, tid=8)])
    assert lengths_ms(ask(history, 6.0, 6.000001)) == [5000]
    assert lengths_ms(ask(history, 1, 3)) == []


def test_of_very_many_the_longest_of_every_part_are_kept_and_all_are_counted(
    tmp_path: Path,
) -> None:
    crowd = [waited(50 + n / 1000, 500 + n / 100, tid=n) for n in range(3 * MOST)]
    history = recorded(tmp_path / "r", [*crowd, waited(5, 21, comm="sshd", tid=1)])
    found = ask(history, 0, 60)
    assert len(found.rows) == MOST
    assert "sshd" in {wait["comm"] for wait in found.rows}
    assert max(lengths_ms(found)) == 500 + (3 * MOST - 1) / 100
    assert found.count == 3 * MOST + 1
    assert [group.comm for group in found.groups] == ["raylet", "sshd"]


def test_who_waited_and_behind_whom_are_summed_apart(tmp_path: Path) -> None:
    rows = [waited(n, 100 * n, tid=n, by_comm=name) for n, name in ((1, "a"), (2, "b"), (4, "a"))]
    found = ask(recorded(tmp_path / "r", rows), 0, 10)
    assert [(group.by_comm, group.total_ns // MS) for group in found.groups] == [
        ("a", 500),
        ("b", 200),
    ]


def test_whole_hours_are_read_once_and_edges_exactly(tmp_path: Path, monkeypatch: Any) -> None:
    segments = [
        [waited(hour * HOUR_S + second, 30, tid=second) for second in (10, 1800, 3590)]
        for hour in range(5)
    ]
    history = recorded(tmp_path / "r", *segments)
    assert ask(history, 0, 5 * HOUR_S).count == 15
    read: list[Span] = []
    reading = longest_waits.WindowReading
    monkeypatch.setattr(
        longest_waits,
        "WindowReading",
        lambda store, from_ns, to_ns, *rest: (
            read.append(Span(from_ns, to_ns)) or reading(store, from_ns, to_ns, *rest)
        ),
    )
    assert ask(history, 100, 5 * HOUR_S).count == 14
    assert sum(span.length_ns for span in read) < 2 * HOUR_S * 10**9


def test_what_the_time_limit_cut_off_is_reported_and_the_newest_is_there(tmp_path: Path) -> None:
    segments = [[waited(hour * HOUR_S + 1800, 30 + hour)] for hour in range(5)]
    history = recorded(tmp_path / "r", *segments)
    times = iter([0.0, 0.5, *[99.0] * 100])
    found = ask(history, 0, 5 * HOUR_S, TimeLimit(1, lambda: next(times)))
    assert lengths_ms(found) == [34]
    assert found.left_out[0].startswith("the time limit of 1 s: not all of ")
    assert lengths_ms(ask(history, 0, 5 * HOUR_S)) == [30, 31, 32, 33, 34]


def test_an_empty_recording_has_none(tmp_path: Path) -> None:
    found = WaitHistory(Store.open(new_recording(tmp_path / "r"))).longest(
        Span(START_NS, START_NS + 1), TimeLimit()
    )
    assert (found.rows, found.groups, found.count, found.left_out) == ([], [], 0, [])
