"""The inbox becomes tables: nothing lost by a kill at any moment, nothing counted twice, nobody's
work taken.
"""

import contextlib
from pathlib import Path
from typing import Any

import pytest
from tests.fleet_batches import NS, START_NS, made_batch, put_in_inbox, rows_in, sequences_in

from necroscope.fleet.batch_rows import rows_of
from necroscope.fleet.compaction import ABANDONED_NS, Compactor
from necroscope.fleet.inbox import Receipt, inbox_path, pack
from necroscope.fleet.lake import Lake
from necroscope.fleet.lake_files import LakeError
from necroscope.fleet.protocol import Batch, encode


class Killed(Exception):  # noqa: N818 - it is what happened
    pass


@pytest.fixture
def lake(tmp_path: Path) -> Lake:
    return Lake.open(str(tmp_path / "lake"))


def compactor(lake: Lake, name: str = "me", now_ns: int = START_NS) -> Compactor:
    return Compactor(lake, name, lambda: now_ns)


def test_batches_become_rows_and_leave_the_inbox(lake: Lake) -> None:
    put_in_inbox(
        lake, START_NS, "me", made_batch("n1", 0), made_batch("n2", 0, labels={"zone": "a"})
    )
    put_in_inbox(lake, START_NS + 1, "me", made_batch("n1", 1))
    done = compactor(lake).compact()
    assert (done.files, done.batches, done.rows["events"], done.refused) == (2, 3, 3, [])
    assert sequences_in(lake) == [("n1", 0), ("n1", 1), ("n2", 0)]
    assert [row["value"] for row in rows_in(lake, "facts")] == ["a"]
    assert lake.list("inbox") == []
    assert compactor(lake).compact().files == 0


def test_duplicate_and_reordered_batches_give_each_row_once(lake: Lake) -> None:
    put_in_inbox(
        lake, START_NS, "me", made_batch("n1", 2), made_batch("n1", 0), made_batch("n1", 2)
    )
    compactor(lake).compact()
    put_in_inbox(lake, START_NS + 1, "me", made_batch("n1", 1), made_batch("n1", 0))
    compactor(lake, now_ns=START_NS + 1).compact()
    assert sequences_in(lake) == [("n1", 0), ("n1", 1), ("n1", 2)]
    assert len(rows_in(lake, "pulses")) == 3


@pytest.mark.parametrize("verb", ["put", "delete"])
@pytest.mark.parametrize("calls_before", range(8))
def test_a_kill_at_any_step_loses_and_repeats_nothing(
    lake: Lake, monkeypatch: pytest.MonkeyPatch, verb: str, calls_before: int
) -> None:
    put_in_inbox(
        lake, START_NS, "me", made_batch("n1", 0, labels={"zone": "a"}), made_batch("n2", 1)
    )
    put_in_inbox(lake, START_NS + 1, "me", made_batch("n1", 2))
    left = calls_before
    real = getattr(Lake, verb)

    def until_killed(self: Lake, *arguments: Any) -> None:
        nonlocal left
        if left == 0:
            raise Killed
        left -= 1
        real(self, *arguments)

    with monkeypatch.context() as patched:
        patched.setattr(Lake, verb, until_killed)
        with contextlib.suppress(Killed):
            compactor(lake).compact()
    compactor(lake, "next", START_NS + ABANDONED_NS + 2).compact()
    assert sequences_in(lake) == [("n1", 0), ("n1", 2), ("n2", 1)]
    assert len(rows_in(lake, "facts")) == 1
    assert lake.list("inbox") == []


def test_another_collector_s_files_are_its_own_until_it_must_be_dead(lake: Lake) -> None:
    put_in_inbox(lake, START_NS, "other", made_batch())
    assert compactor(lake, now_ns=START_NS + ABANDONED_NS).compact().files == 0
    assert compactor(lake, now_ns=START_NS + ABANDONED_NS + 1).compact().files == 1


def test_two_collectors_that_take_the_same_files_make_only_duplicates(
    lake: Lake, monkeypatch: pytest.MonkeyPatch
) -> None:
    put_in_inbox(lake, START_NS, "dead", made_batch("n1", 0), made_batch("n2", 1))
    late_ns = START_NS + 10 * ABANDONED_NS
    second = compactor(lake, "second", late_ns)
    real = Lake.delete

    def first_is_slow(self: Lake, path: str) -> None:
        monkeypatch.setattr(Lake, "delete", real)
        assert second.compact().files == 1
        real(self, path)

    monkeypatch.setattr(Lake, "delete", first_is_slow)
    compactor(lake, "first", late_ns).compact()
    assert lake.dataset("events").count_rows() == 4
    assert sequences_in(lake) == [("n1", 0), ("n2", 1)]


def test_a_file_that_another_collector_took_meanwhile_is_no_error(
    lake: Lake, monkeypatch: pytest.MonkeyPatch
) -> None:
    put_in_inbox(lake, START_NS, "me", made_batch())
    monkeypatch.setattr(
        Lake, "list", lambda *_: [inbox_path(START_NS - 1, "me"), inbox_path(START_NS, "me")]
    )
    assert compactor(lake).compact().batches == 1


def test_what_cannot_be_read_any_more_is_kept_aside_and_stops_nobody(lake: Lake) -> None:
    good = Receipt("eu-1", START_NS, None, encode(made_batch("n1", 0)))
    bad = Receipt("eu-1", START_NS, None, b"no batch")
    lake.put(inbox_path(START_NS, "me"), pack([good, bad]))
    lake.put(
        inbox_path(START_NS + 1, "me"),
        pack([Receipt("eu-1", START_NS, None, encode(made_batch("n1", 1))), good])[:-3],
    )
    done = compactor(lake).compact()
    assert (done.batches, len(done.refused)) == (2, 2)
    assert sequences_in(lake) == [("n1", 0), ("n1", 1)]
    assert lake.read(done.refused[0]) == b"no batch"
    assert lake.list("inbox") == []


def test_what_was_accepted_once_is_taken_whatever_the_limits_are_now(lake: Lake) -> None:
    labels = {f"label-{number}": "x" for number in range(1000)}
    put_in_inbox(lake, START_NS, "me", made_batch(labels=labels))
    assert compactor(lake).compact().refused == []
    assert len(rows_in(lake, "facts")) == 1000


def test_much_is_taken_in_rounds_that_fit_into_memory(
    lake: Lake, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("necroscope.fleet.compaction._ROUND_BYTES", 1000)
    for number in range(12):
        put_in_inbox(lake, START_NS + number, "me", made_batch("n1", number))
    moments = iter(range(START_NS, START_NS + 10**6))
    done = Compactor(lake, "me", lambda: next(moments)).compact()
    assert done.files == 12
    assert len(lake.list("tables/events")) > 1
    assert sequences_in(lake) == [("n1", number) for number in range(12)]


def test_a_node_whose_clock_is_a_day_off_is_stored_under_its_own_time(lake: Lake) -> None:
    batch = made_batch()
    lake.put(
        inbox_path(START_NS, "me"),
        pack([Receipt("eu-1", START_NS + 86_400 * NS, None, encode(batch))]),
    )
    compactor(lake).compact()
    assert [row["clock_offset_ns"] for row in rows_in(lake, "pulses")] == [86_400 * NS]
    assert rows_in(lake)[0]["time"] == START_NS


def stacks_of(node: str, path_length: int) -> Batch:
    rows = {
        "time": [START_NS] * 100,
        "comm": [f"c{row}" for row in range(100)],
        "path": ["a" * path_length] * 100,
    }
    return made_batch(node, stack_minutes={**rows, "samples": [1] * 100, "period_ns": [1] * 100})


def test_a_body_that_inflates_a_thousandfold_is_measured_by_its_rows(
    lake: Lake, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("necroscope.fleet.compaction._ROUND_BYTES", 1 << 20)
    put_in_inbox(lake, START_NS, "me", *(stacks_of(f"n{number}", 16_000) for number in range(4)))
    assert len(lake.read(inbox_path(START_NS, "me"))) < 50_000
    moments = iter(range(START_NS, START_NS + 10**6))
    done = Compactor(lake, "me", lambda: next(moments)).compact()
    assert (done.files, done.rows["stack_minutes"]) == (1, 400)
    assert len(lake.list("tables/stack_minutes")) == 4


class FatalNode:
    """Whoever makes rows of this node's batches is killed."""

    def __init__(self, monkeypatch: pytest.MonkeyPatch, node: str) -> None:
        real = rows_of

        def rows_or_death(batch: Batch, *rest: Any) -> Any:
            if batch.node == node:
                raise Killed
            return real(batch, *rest)

        monkeypatch.setattr("necroscope.fleet.compaction.rows_of", rows_or_death)


def test_a_file_that_ends_its_collector_twice_is_kept_aside_and_the_others_go_on(
    lake: Lake, monkeypatch: pytest.MonkeyPatch
) -> None:
    FatalNode(monkeypatch, "bad")
    put_in_inbox(lake, START_NS, "first", made_batch("bad", 0))
    put_in_inbox(lake, START_NS + 1, "first", made_batch("good", 1))
    fatal = lake.read(inbox_path(START_NS, "first"))
    with pytest.raises(Killed):
        compactor(lake, "first").compact()
    put_in_inbox(lake, START_NS + 2, "second", made_batch("new", 2))
    for name, minutes in (("second", 2), ("third", 2.5)):
        with pytest.raises(Killed):
            compactor(lake, name, START_NS + int(minutes * ABANDONED_NS)).compact()
    assert sequences_in(lake) == [("new", 2)]
    done = compactor(lake, "fourth", START_NS + 4 * ABANDONED_NS).compact()
    assert [lake.read(path) for path in done.refused] == [fatal]
    assert sequences_in(lake) == [("good", 1), ("new", 2)]
    assert lake.list("inbox") == []
    compactor(lake, "fourth", START_NS + 4 * ABANDONED_NS).compact()
    assert lake.list("compacting") == []


def test_a_kill_by_chance_and_a_lake_that_refuses_are_no_file_s_fault(
    lake: Lake, monkeypatch: pytest.MonkeyPatch
) -> None:
    put_in_inbox(lake, START_NS, "me", made_batch("n1", 0))
    with monkeypatch.context() as patched:
        FatalNode(patched, "n1")
        with pytest.raises(Killed):
            compactor(lake).compact()
    for _ in range(3):
        with monkeypatch.context() as patched:
            patched.setattr("necroscope.fleet.compaction.write_file", refusing)
            with pytest.raises(LakeError):
                compactor(lake).compact()
    assert compactor(lake).compact().refused == []
    assert sequences_in(lake) == [("n1", 0)]
    assert lake.list("compacting") == []


def refusing(*_: object) -> None:
    raise LakeError("no space", "")
