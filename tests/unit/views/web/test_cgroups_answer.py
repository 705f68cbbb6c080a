"""The lane of cgroups: one hierarchy's root, as many points as a screen has, and restarts."""

from pathlib import Path

import pytest

from necroscope.model.reading import Rows
from necroscope.segment.journal import JournalWriter, SegmentHeader
from necroscope.segment.recording import Identity, make_recording, new_segment_path
from necroscope.store.query import Store
from necroscope.store.time_limit import TimeLimit
from necroscope.views.web import cgroups_answer as module
from necroscope.views.web.cgroups_answer import cgroups_answer

START, S = 1_776_248_000 * 10**9, 10**9
NO_LIMITS = (None,) * 5


def store_of(directory: Path, **tables: Rows) -> Store:
    make_recording(directory, Identity("node-a", "boot-1", "drawn", {}))
    path = new_segment_path(directory, START)
    writer = JournalWriter(path, SegmentHeader(path.name, "node-a", "boot-1", START, 2))
    for table, rows in tables.items():
        writer.append(table, rows)
    writer.close()
    return Store.open(directory)


def ask(store: Store) -> dict:
    return cgroups_answer(store, START, START + 1000 * S, TimeLimit())


def test_the_memory_hierarchy_goes_before_the_unified_one(tmp_path: Path) -> None:
    rows = [
        (START, "unified", "/", 1, 1, None, *NO_LIMITS),
        (START, "memory", "/", 7, 5, None, *NO_LIMITS),
    ]
    rows += [(START, "memory", "/a", 3, 3, 3, *NO_LIMITS)]
    series = ask(store_of(tmp_path / "r", cgroups=rows))["series"]
    assert series == {"time": [str(START)], "tracked": [7], "visible": [5], "dying": [None]}


def test_unified_counts_where_there_is_no_other(tmp_path: Path) -> None:
    series = ask(store_of(tmp_path / "r", cgroups=[(START, "unified", "/", 9, 1, 8, *NO_LIMITS)]))[
        "series"
    ]
    assert series["dying"] == [8]


def test_of_points_that_fall_together_the_largest_is_shown(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(module, "MOST_POINTS", 3)
    rows = [
        (START + at * S, "memory", "/", at, None, 50 if at == 4 else None, *NO_LIMITS)
        for at in range(9)
    ]
    series = ask(store_of(tmp_path / "r", cgroups=rows))["series"]
    assert series["time"] == [str(START + at * S) for at in (0, 3, 6)]
    assert (series["tracked"], series["visible"], series["dying"]) == (
        [2, 5, 8],
        [None] * 3,
        [None, 50, None],
    )


def test_nothing_recorded_is_empty_and_restarts_have_their_fields(tmp_path: Path) -> None:
    event = (
        START,
        "unit_restart",
        None,
        None,
        None,
        None,
        None,
        None,
        4,
        False,
        None,
        "x restarted",
        None,
        '{"unit": "x"}',
    )
    answer = ask(store_of(tmp_path / "r", events=[event]))
    assert answer["series"] == {"time": [], "tracked": [], "visible": [], "dying": []}
    assert answer["restarts"] == [
        {
            "time": str(START),
            "kind": "unit_restart",
            "message": "x restarted",
            "fields": {"unit": "x"},
        }
    ]
