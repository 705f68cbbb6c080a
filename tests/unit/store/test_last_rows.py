"""The last rows of a window: read backwards, and what was not read is reported."""

from collections.abc import Iterator
from pathlib import Path

import pytest
from tests.written_recording import WrittenSegment, at, new_recording, row

from necroscope.store import last_rows
from necroscope.store.last_rows import LastRows, read_last_rows
from necroscope.store.query import Store
from necroscope.store.time_limit import TimeLimit

WINDOW = at(0), at(1000)


@pytest.fixture
def store(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Store:
    """An event in each of three segments, which are read one by one."""
    monkeypatch.setattr(last_rows, "_SEGMENTS_AT_ONCE", 1)
    recording = new_recording(tmp_path / "r")
    for start in (0, 300, 600):
        WrittenSegment(recording, start).add(
            "events", row("events", start + 5, kind="nic_reset", message=f"at {start}")
        ).seal()
    return Store.open(recording)


def messages_of(last: LastRows) -> list[str]:
    return last.rows.column("message").to_pylist()


def test_all_rows_of_a_window_come_in_order(store: Store) -> None:
    last = read_last_rows(store, "events", *WINDOW, most=10, limit=TimeLimit())
    assert messages_of(last) == ["at 0", "at 300", "at 600"]
    assert last.left_out == []
    assert messages_of(
        read_last_rows(store, "events", *WINDOW, most=3, limit=TimeLimit())
    ) == messages_of(last)
    assert messages_of(
        read_last_rows(store, "events", at(6), at(605), most=10, limit=TimeLimit())
    ) == ["at 300"]


def test_of_many_rows_the_last_are_kept_and_older_ones_not_read(store: Store) -> None:
    last = read_last_rows(
        store, "events", *WINDOW, columns=["time", "message"], most=1, limit=TimeLimit()
    )
    assert messages_of(last) == ["at 600"]
    assert last.left_out == ["before 2025-10-09T09:04:05.000Z: only the last 1 are listed"]
    oldest = store.catalog.reader(store.catalog.segments[0])
    assert oldest.bytes_read == 0


def test_the_time_limit_leaves_out_the_oldest_and_says_so(store: Store) -> None:
    clock: Iterator[float] = iter([0, 0.5, 2])
    last = read_last_rows(
        store, "events", *WINDOW, most=10, limit=TimeLimit(1, lambda: next(clock))
    )
    assert messages_of(last) == ["at 600"]
    assert last.left_out == [
        "the time limit of 1 s: 2025-10-09T08:54:00.000Z to 2025-10-09T09:04:00.000Z was not read"
    ]


def test_a_window_without_rows_is_empty(store: Store) -> None:
    last = read_last_rows(store, "events", at(5000), at(6000), most=10, limit=TimeLimit())
    assert (last.rows.num_rows, last.left_out) == (0, [])
