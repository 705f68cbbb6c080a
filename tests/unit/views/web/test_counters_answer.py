"""The lane of counters: what moved comes first, as a rate or an amount; what did not is counted."""

from pathlib import Path
from typing import Any

import pytest
from tests.written_recording import WrittenSegment, at, new_recording, row

from necroscope.store.query import Store
from necroscope.store.time_limit import TimeLimit
from necroscope.views.web import counters_answer as module
from necroscope.views.web.counters_answer import counters_answer

NS = 1_000_000_000


def ask(recording: Path) -> dict[str, Any]:
    return counters_answer(Store.open(recording), at(0), at(1_000), TimeLimit())


def memory(second: int, **values: int) -> Any:
    return row("memory", second, elapsed_ns=2 * NS, **values)


def test_what_moved_most_comes_first_and_a_rate_is_per_second(tmp_path: Path) -> None:
    recording = new_recording(tmp_path / "r")
    rows = [
        memory(s, pgfault=200_000 if s == 5 else 400, free_bytes=1 << 30, compact_stall=0)
        for s in range(10)
    ]
    WrittenSegment(recording, 0).add("memory", *rows).leave()
    answer = ask(recording)
    [series] = answer["series"]
    assert series["name"] == "memory.pgfault"
    assert series["unit"] == "per second"
    assert series["value"][5] == 100_000.0
    assert series["value"][4] == 200.0
    assert answer["calm"] == 2


def test_amounts_are_not_divided_by_time(tmp_path: Path) -> None:
    recording = new_recording(tmp_path / "r")
    rows = [memory(s, dirty_bytes=s << 28, dentries_negative=s * 9_000) for s in range(6)]
    WrittenSegment(recording, 0).add("memory", *rows).leave()
    found = {one["name"]: one for one in ask(recording)["series"]}
    assert found["memory.dirty_bytes"]["value"][-1] == 5 << 28
    assert found["memory.dentries_negative"]["unit"] == "objects"


def test_stalls_of_each_resource_are_shares_of_time(tmp_path: Path) -> None:
    recording = new_recording(tmp_path / "r")
    rows = [
        row("pressure", s, resource=name, elapsed_ns=NS, some_ns=NS // 2 if s == 3 else 0)
        for s in range(6)
        for name in ("cpu", "io")
    ]
    WrittenSegment(recording, 0).add("pressure", *rows).leave()
    found = {one["name"]: one for one in ask(recording)["series"]}
    assert found["pressure.cpu.some"]["value"][3] == 0.5
    assert found["pressure.io.some"]["unit"] == "share"


def test_a_peak_survives_when_there_are_more_rows_than_points(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(module, "MOST_POINTS", 4)
    recording = new_recording(tmp_path / "r")
    rows = [memory(s, pgfault=2_000_000 if s == 6 else 0) for s in range(12)]
    WrittenSegment(recording, 0).add("memory", *rows).leave()
    [series] = ask(recording)["series"]
    assert len(series["time"]) == 4
    assert max(series["value"]) == 1_000_000.0


def test_a_recording_without_these_tables_has_no_series(tmp_path: Path) -> None:
    recording = new_recording(tmp_path / "r")
    WrittenSegment(recording, 0).ticks(0, 5).leave()
    assert ask(recording) == {"series": [], "calm": 0, "left_out": []}
