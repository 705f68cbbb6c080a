"""DuckDB over a lake: every row once, only what the span and the clusters hold, and no way out of
the lake.
"""

from concurrent.futures import ThreadPoolExecutor
from pathlib import Path

import pyarrow.parquet as pq
import pytest
from tests.fleet_lakes import DrawnLake, moment

from necroscope.errors import NecroscopeError
from necroscope.fleet.ask import LakeQuestions, View
from necroscope.model.span import Span

KIND = ("boot_id", "source_sequence", "kind")
ALL = Span(0, moment(100))


def test_a_batch_that_is_stored_twice_counts_once(tmp_path: Path) -> None:
    drawn = DrawnLake(tmp_path)
    for writer in ("w1", "w2"):
        drawn.add("events", "n1", moment(1), boot_id="b", source_sequence=1, kind="nic_reset")
        drawn.add("events", "n1", moment(1), boot_id="b", source_sequence=2, kind="nic_reset")
        drawn.write(writer)
    questions = LakeQuestions(drawn.lake, moment(10))
    assert questions.rows("SELECT count(*) FROM events", {"events": View(ALL, KIND)}) == [(2,)]


def test_only_rows_of_the_span_and_of_clusters_that_may_be_seen_are_there(tmp_path: Path) -> None:
    drawn = DrawnLake(tmp_path)
    for cluster in ("eu", "us"):
        for day in (1, 2, 3):
            drawn.event("n1", "nic_reset", day, cluster=cluster)
    questions = LakeQuestions(drawn.write(), moment(10), ("eu",))
    query = "SELECT DISTINCT cluster, time FROM events"
    assert questions.rows(query, {"events": View(Span(moment(2), moment(3)), KIND)}) == [
        ("eu", moment(2))
    ]


@pytest.mark.parametrize("name", ["lake", "it's", "odd [x]*"])
@pytest.mark.parametrize("is_local", [True, False])
def test_files_of_a_directory_and_of_a_store_give_the_same_rows(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, name: str, is_local: bool
) -> None:
    """Of an object store pyarrow reads them; and a collector of before knew fewer columns."""
    drawn = DrawnLake(tmp_path / name)
    drawn.event("n1", "nic_reset", 1)
    lake = drawn.write()
    [file] = (tmp_path / name).rglob("*.parquet")
    pq.write_table(pq.read_table(file, partitioning=None).drop_columns(["device", "message"]), file)
    drawn.add(
        "events", "n2", moment(2), boot_id="b", source_sequence=2, kind="oom_kill", device="eth0"
    )
    drawn.write()
    if not is_local:
        monkeypatch.setattr(lake, "local_place", lambda _path: None)
    questions = LakeQuestions(lake, moment(10))
    query = "SELECT cluster, node, kind, device FROM events ORDER BY node"
    view = View(ALL, (*KIND, "device"))
    expected = [("eu-1", "n1", "nic_reset", None), ("eu-1", "n2", "oom_kill", "eth0")]
    assert questions.rows(query, {"events": view}) == expected
    early = View(Span(0, moment(1.5)), (*KIND, "device"))
    assert questions.rows(query, {"events": early}) == expected[:1]


def test_questions_that_are_asked_at_once_do_not_meet(tmp_path: Path) -> None:
    drawn = DrawnLake(tmp_path)
    for day in range(1, 9):
        drawn.event("n1", "nic_reset", day)
    questions = LakeQuestions(drawn.write(), moment(10))

    def count(day: int) -> list[tuple[int]]:
        view = View(Span(0, moment(day + 0.5)), KIND)
        return questions.rows("SELECT count(*) FROM events", {"events": view})

    with ThreadPoolExecutor(4) as pool:
        assert list(pool.map(count, range(9))) == [[(day,)] for day in range(9)]


def test_a_table_without_files_is_empty(tmp_path: Path) -> None:
    questions = LakeQuestions(DrawnLake(tmp_path).lake, moment(10))
    assert questions.rows("SELECT count(*) FROM jobs", {"jobs": View(ALL)}) == [(0,)]


def test_a_question_that_takes_too_long_is_ended(tmp_path: Path) -> None:
    questions = LakeQuestions(DrawnLake(tmp_path).lake, moment(10), longest_s=0.05)
    with pytest.raises(NecroscopeError, match="took longer"):
        questions.rows(
            "SELECT count(*) FROM range(1000000) a, range(1000000) b WHERE hash(a.range +"
            " b.range) = 7",
            {},
        )


def test_a_question_of_too_much_memory_is_reported_and_writes_nothing(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("necroscope.fleet.ask.question_bytes", lambda: 64 << 20)
    monkeypatch.chdir(tmp_path)
    questions = LakeQuestions(DrawnLake(tmp_path / "lake").lake, moment(10))
    with pytest.raises(NecroscopeError, match="more than 64 MiB of memory"):
        questions.rows(
            "SELECT range FROM range(20000000) ORDER BY hash(range) LIMIT 3 OFFSET 15000000", {}
        )
    assert not list(tmp_path.iterdir())


def test_a_file_that_is_merged_away_meanwhile_is_looked_for_again(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    drawn = DrawnLake(tmp_path)
    drawn.event("n1", "nic_reset", 1)
    lake = drawn.write()
    table_files, asked = lake.table_files, []

    def gone_at_first(*words: object) -> object:
        asked.append(words)
        for path in tmp_path.rglob("*.away"):
            path.rename(path.with_suffix(""))
        found = table_files(*words)  # type: ignore[arg-type]
        if len(asked) == 1:
            for path in found:
                (tmp_path / path).rename(tmp_path / f"{path}.away")
        return found

    monkeypatch.setattr(lake, "table_files", gone_at_first)
    monkeypatch.setattr("necroscope.fleet.ask._BEFORE_NEXT_TRY_S", 0)
    assert LakeQuestions(lake, moment(10)).rows(
        "SELECT count(*) FROM events", {"events": View(ALL, KIND)}
    ) == [(1,)]


def test_a_lake_that_cannot_be_read_is_reported_and_no_traceback(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    drawn = DrawnLake(tmp_path)
    drawn.event("n1", "nic_reset", 1)
    lake = drawn.write()
    for path in tmp_path.rglob("*.parquet"):
        path.write_bytes(b"PAR1 no more")
    monkeypatch.setattr("necroscope.fleet.ask._BEFORE_NEXT_TRY_S", 0)
    with pytest.raises(NecroscopeError, match="cannot be read"):
        LakeQuestions(lake, moment(10)).rows(
            "SELECT count(*) FROM events", {"events": View(ALL, KIND)}
        )
