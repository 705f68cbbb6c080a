"""Cursor, facts and spool survive a kill between any two writes: the same entries again, with the
same names.
"""

import contextlib
import json
import zlib
from pathlib import Path
from typing import Any

import pytest
from tests.written_recording import WrittenSegment, at, new_recording, row

from necroscope.fleet.protocol import Batch, decode
from necroscope.outlets.push.batches import BatchMaker, PreparedBatch
from necroscope.outlets.push.push_state import PushState
from necroscope.outlets.push.spool import Spool
from necroscope.store.query import Store


class Killed(BaseException):
    pass


def recording_of(tmp_path: Path) -> Path:
    recording = new_recording(tmp_path / "r")
    segment = WrittenSegment(recording, 0).ticks(0, 400)
    facts = [
        row("facts", 1, kind="sysctl", name=f"fact{number}", value="1") for number in range(20)
    ]
    segment.add("facts", *facts, row("facts", 200, kind="sysctl", name="fact0", value="2"))
    segment.add(
        "events",
        *(row("events", 20 * number, kind=f"kind{number}", message="x") for number in range(18)),
    )
    return recording


def opened(recording: Path, limit_bytes: int = 1 << 30) -> PushState:
    return PushState(Spool(recording / ".push", limit_bytes), "url", lambda _: None, lambda: 1000.0)


def push(recording: Path, state: PushState) -> None:
    maker, store = BatchMaker("node-a", {}, state.ledger, lambda: at(0)), Store.open(recording)
    while (made := maker.next(store, state.cursor, is_ended=True)) is not None:
        state.keep(made)


def batches(state: PushState) -> list[Batch]:
    return [decode(state.spool.read(entry)[1]) for entry in state.spool.entries]


def test_killed_between_any_two_writes_the_next_start_has_the_same_batches(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    recording = recording_of(tmp_path)
    state = opened(recording)
    push(recording, state)
    whole = batches(state)
    hashes = state.ledger.hashes
    state.spool.close()
    for survived in range(12):
        for path in (recording / ".push").iterdir():
            path.unlink()
        state = opened(recording)
        left = [survived]

        def mortal(write: Any, left: list[int] = left) -> Any:
            def written(self: Spool, *arguments: Any) -> Any:
                if not left[0]:
                    raise Killed
                left[0] -= 1
                return write(self, *arguments)

            return written

        with monkeypatch.context() as patch:
            for name in ("add", "write_cursor", "write_facts"):
                patch.setattr(Spool, name, mortal(getattr(Spool, name)))
            with contextlib.suppress(Killed):
                push(recording, state)
        state.spool.close()
        state = opened(recording)
        push(recording, state)
        assert batches(state) == whole, f"after {survived} writes"
        assert state.ledger.hashes == hashes
        state.spool.close()


def test_what_was_pushed_and_removed_is_not_made_again(tmp_path: Path) -> None:
    recording = recording_of(tmp_path)
    state = opened(recording)
    push(recording, state)
    for entry in list(state.spool.entries):
        state.spool.remove(entry)
    state.spool.close()
    state = opened(recording)
    push(recording, state)
    assert not state.spool.entries


def test_over_the_bound_the_oldest_go_and_a_gap_takes_their_place(tmp_path: Path) -> None:
    recording = new_recording(tmp_path / "r")
    segment = WrittenSegment(recording, 0).ticks(0, 890)
    state = opened(recording, limit_bytes=1)
    push(recording, state)
    assert state.dropped == 2
    for until in (950, 1010):
        segment.ticks(until - 60, until)
        push(recording, state)
    # Also the gaps that were in batches which were dropped themselves.
    (left,) = batches(state)
    gaps = left.tables["gaps"]
    assert (gaps["time"], gaps["end"], gaps["table"]) == ([at(0)], [at(890) + 1], ["*"])
    assert gaps["cause"] == ["the spool of the node was full"]
    state.spool.close()


def test_facts_of_a_batch_that_was_dropped_are_pushed_again(tmp_path: Path) -> None:
    recording = recording_of(tmp_path)
    state = opened(recording)
    push(recording, state)
    state.drop([state.spool.entries[0]], "gone")
    push(recording, state)
    names = [
        name for batch in batches(state) for name in batch.tables.get("facts", {}).get("name", [])
    ]
    assert set(names) == {f"fact{number}" for number in range(20)}
    state.spool.close()


def test_a_gap_in_a_batch_that_is_dropped_is_not_forgotten(tmp_path: Path) -> None:
    recording = recording_of(tmp_path)
    state = opened(recording)
    push(recording, state)
    state.drop([state.spool.entries[0]], "first")
    push(recording, state)
    state.drop(list(state.spool.entries), "second")
    assert {loss.cause for loss in state.cursor.losses} == {"first", "second"}
    state.spool.close()


def test_another_collector_gets_everything(tmp_path: Path) -> None:
    recording = recording_of(tmp_path)
    state = opened(recording)
    push(recording, state)
    count = len(state.spool.entries)
    state.spool.close()
    state = PushState(Spool(recording / ".push"), "other", lambda _: None, lambda: 2000.0)
    push(recording, state)
    assert len(state.spool.entries) == 2 * count
    assert len({batch.batch for batch in batches(state)}) == 2 * count
    state.spool.close()


@pytest.mark.parametrize("content", [b"", b"{}", b'{"crc32": "00000000",\n"content": {}}\n', None])
def test_a_damaged_cursor_pushes_everything_again_and_says_so(
    tmp_path: Path, content: bytes | None
) -> None:
    recording = recording_of(tmp_path)
    state = opened(recording)
    push(recording, state)
    for entry in list(state.spool.entries):
        state.spool.remove(entry)
    state.spool.close()
    if content is None:  # right bytes of something else
        body = json.dumps({"to": "url"}, separators=(",", ":")).encode()
        content = b'{"crc32": "%08x",\n"content": ' % zlib.crc32(body) + body + b"}\n"
    (recording / ".push" / "cursor.json").write_bytes(content)
    messages: list[str] = []
    state = PushState(Spool(recording / ".push"), "url", messages.append, lambda: 2000.0)
    push(recording, state)
    assert len(messages) == 1
    assert "pushed again" in messages[0]
    assert (
        len(
            [
                row
                for batch in batches(state)
                for row in batch.tables.get("facts", {}).get("name", [])
            ]
        )
        == 21
    )
    state.spool.close()


def test_a_write_that_fails_costs_no_fact(tmp_path: Path) -> None:
    recording = recording_of(tmp_path)
    state = opened(recording)
    maker = BatchMaker("node-a", {}, state.ledger, lambda: at(0))
    made = maker.next(Store.open(recording), state.cursor, is_ended=True)
    assert isinstance(made, PreparedBatch)
    assert made.has_facts
    state.undo()
    push(recording, state)
    assert len(batches(state)[0].tables["facts"]["name"]) == 21
    state.spool.close()
