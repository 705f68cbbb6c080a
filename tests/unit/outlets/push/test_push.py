"""The push as a whole: a drawn node's recording through spool and HTTP into a real collector's
lake, and what can go wrong.
"""

import contextlib
import gzip
import json
import os
import shutil
from collections.abc import Callable, Iterator
from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest
from tests.drawn_node import at, drawn_node
from tests.fleet_batches import rows_in
from tests.growing_recording import GrowingRecording
from tests.ledger_entries import ledger_entry
from tests.receiving_server import receiving_server
from tests.served_collector import served

from necroscope.errors import RecordingError
from necroscope.fleet.ask import LakeQuestions
from necroscope.fleet.bundle import unpack
from necroscope.fleet.collector.app import create_app
from necroscope.fleet.lake import Lake
from necroscope.fleet.questions.incidents import incidents
from necroscope.fleet.tokens import Grant, Tokens, digest_of
from necroscope.model.span import Span
from necroscope.outlets.push import evidence
from necroscope.outlets.push.delivery import Delivery
from necroscope.outlets.push.push import Pusher
from necroscope.outlets.push.push_state import PushState
from necroscope.outlets.push.sender import Sender
from necroscope.outlets.push.spool import Spool
from necroscope.store.query import Store
from necroscope.verdicts.entry import IncidentState
from necroscope.verdicts.keeper import Keeper
from necroscope.verdicts.ledger import Ledger
from necroscope.verdicts.ledger_writer import LedgerWriter

TOKENS = Tokens({digest_of("push"): Grant("eu-1", "push")})
HELD = """
    core 0:  ....................................
    core 1:  ................kkkkkkkkkkkk........
    k: system  kubelet[1872]  /system.slice/kubelet.service  main, Read > ksys_read, vfs_read, memcg_stat_show, mem_cgroup_iter
"""


class Pushing:
    """A push of its own: state from the spool, as after a start."""

    def __init__(
        self,
        recording: Path,
        url: str,
        token: Path | None,
        clock: Callable[[], float],
        **options: Any,
    ) -> None:
        self.messages: list[str] = []
        self.spool = Spool(recording / ".push", **options)
        self.state = PushState(self.spool, url, self.messages.append, lambda: 1000.0)
        self.delivery = Delivery(
            self.state, Sender(url, token, timeout_s=5), self.messages.append, clock, lambda: 1.0
        )
        self.pusher = Pusher(
            recording, self.state, self.delivery, "node-a", {"zone": "a"}, clock, lambda _: None
        )

    def __enter__(self) -> "Pushing":
        return self

    def __exit__(self, *_: object) -> None:
        self.pusher.close()
        self.spool.close()


@pytest.fixture
def recording(tmp_path: Path) -> GrowingRecording:
    node = drawn_node(HELD).event(25, "nic_reset", "eth0: TX timeout", cpu=1, device="eth0")
    node.add("facts", 1, kind="sysctl", name="kernel.x", value="1")
    return GrowingRecording(tmp_path / "r", node)


@pytest.fixture
def token(tmp_path: Path) -> Path:
    (tmp_path / "token").write_text("push")
    return tmp_path / "token"


@pytest.fixture
def lake(tmp_path: Path) -> Lake:
    return Lake.open(str(tmp_path / "lake"))


@pytest.fixture
def collector(lake: Lake) -> Iterator[str]:
    with served(create_app(lake, TOKENS, commit_every_s=0.001)) as client:
        yield str(client.base_url)


def test_a_finished_recording_is_in_the_lake_with_its_verdict_and_evidence(
    recording: GrowingRecording, token: Path, lake: Lake, tmp_path: Path
) -> None:
    recording.grow(36).pin(5, 36).seal()
    with served(create_app(lake, TOKENS, commit_every_s=0.001)) as client:
        for _ in range(2):
            with Pushing(recording.directory, str(client.base_url), token, lambda: 0.0) as push:
                assert push.pusher.push_all()
                assert push.messages == []
                assert push.delivery.waiting == 0
    assert push.delivery.delivered.batches == 0, "the second time there is nothing new"
    assert [(row["kind"], row["node"]) for row in rows_in(lake)] == [("nic_reset", "node-a")]
    assert {(row["kind"], row["value"]) for row in rows_in(lake, "facts")} == {
        ("sysctl", "1"),
        ("label", "a"),
    }
    assert sum(row["ticks"] for row in rows_in(lake, "core_minutes")) == 70
    assert any("memcg_stat_show" in row["path"] for row in rows_in(lake, "stack_minutes"))
    incident = max(rows_in(lake, "incidents"), key=lambda row: row["analysed_ns"])
    assert (incident["core"], incident["culprit_comm"]) == (1, "kubelet")
    assert any(row["kind"] == "saturated" for row in rows_in(lake, "episodes"))
    (bundle,) = [path for path in lake.list("bundles") if path.endswith(".bundle")]
    assert incident["bundle"] in bundle
    assert Store.open(unpack(lake.read(bundle), tmp_path / "evidence")).info().node == "drawn-node"


def test_a_finished_recording_without_ledger_and_pins_is_in_the_lake_with_its_verdict(
    recording: GrowingRecording, token: Path, lake: Lake
) -> None:
    recording.grow(36).seal()
    with served(create_app(lake, TOKENS, commit_every_s=0.001)) as client:
        for _ in range(2):
            with Pushing(recording.directory, str(client.base_url), token, lambda: 0.0) as push:
                assert push.pusher.push_all()
    (incident,) = rows_in(lake, "incidents")
    assert (incident["core"], incident["culprit_comm"]) == (1, "kubelet")


def test_a_live_recording_is_followed_minute_by_minute(
    recording: GrowingRecording, token: Path, lake: Lake
) -> None:
    now = [0.0]
    node = drawn_node(f"core 0:  {'.' * 200}")
    live = GrowingRecording(recording.directory.parent / "live", node).grow(30)
    with (
        served(create_app(lake, TOKENS, commit_every_s=0.001)) as client,
        Pushing(live.directory, str(client.base_url), token, lambda: now[0]) as push,
    ):
        assert push.pusher.turn() == 5
        live.grow(130)
        assert push.pusher.turn() == 5, "not before it is due"
        now[0] += 5
        assert push.pusher.turn() == 5
        assert push.delivery.delivered.batches == 1
        live.grow(135)
        now[0] += 60
        assert push.pusher.turn() == 5
        now[0] += 31
        push.pusher.turn()
    assert sum(row["ticks"] for row in rows_in(lake, "core_minutes")) == 134


def test_an_incident_of_the_ledger_is_with_the_collector_at_the_next_turn_pinned_or_not(
    recording: GrowingRecording, token: Path, lake: Lake
) -> None:
    keeper = Keeper(recording.directory, lambda _: None)
    with served(create_app(lake, TOKENS, commit_every_s=0.001)) as client:
        for until in (30, 36, 36):
            recording.grow(until)
            keeper.turn(is_live=until < 36)
            with Pushing(recording.directory, str(client.base_url), token, lambda: 0.0) as push:
                assert push.pusher.turn() <= 5
    rows = rows_in(lake, "incidents")
    (entry,) = Ledger.open(recording.directory).incidents()
    assert {row["id"] for row in rows} == {entry.id}
    assert len(rows) == 2, "once while it went on, once when it was over"
    assert max(row["end"] for row in rows) == entry.incident.to_ns
    assert any(row["kind"] == "saturated" for row in rows_in(lake, "episodes"))


def test_an_incident_that_became_part_of_another_is_taken_back(
    recording: GrowingRecording, token: Path, lake: Lake
) -> None:
    recording.grow(36)
    writer = LedgerWriter(recording.directory)
    opened, other = ledger_entry("rt-hog", 10, 20, state="open"), ledger_entry("rt-hog", 9, 30, 2)
    merged = replace(opened, state=IncidentState.MERGED, merged_into=other.id, revision=at(50))
    with served(create_app(lake, TOKENS, commit_every_s=0.001)) as client:
        for entries in ([opened], [other, merged]):
            writer.append(entries)
            with Pushing(recording.directory, str(client.base_url), token, lambda: 0.0) as push:
                push.pusher.turn()
    assert len(rows_in(lake, "incidents")) == 3
    answer = incidents(LakeQuestions(lake, at(60)), Span(at(0), at(60)))
    assert [one["id"] for one in answer.incidents] == [other.id]


def test_a_collector_that_was_away_gets_everything_later(
    recording: GrowingRecording, token: Path, lake: Lake
) -> None:
    recording.grow(36).seal()
    now = [0.0]
    with receiving_server() as away:
        away.reply = lambda _: (503, {"Retry-After": "30"}, b"")
        url = away.url
        with Pushing(recording.directory, url, token, lambda: now[0]) as push:
            push.pusher.turn()
            now[0] = 40.0
            assert push.pusher.turn() == 5
            assert push.delivery.waiting == 1
            assert len(push.messages) == 1
            assert "503" in push.messages[0]
    with (
        served(create_app(lake, TOKENS, commit_every_s=0.001)) as client,
        Pushing(recording.directory, url, token, lambda: 0.0) as push,
    ):
        push.delivery._sender = Sender(str(client.base_url), token)
        push.pusher.finish(10)
        assert push.delivery.waiting == 0
    assert len(rows_in(lake)) == 1


def test_a_push_without_follow_gives_up_after_a_while_and_keeps_what_it_made(
    recording: GrowingRecording,
) -> None:
    recording.grow(36).seal()
    now = [0.0]

    def sleep(seconds: float) -> None:
        now[0] += seconds

    with receiving_server() as away:
        away.reply = lambda _: (500, {}, b"")
        with Pushing(recording.directory, away.url, None, lambda: now[0]) as push:
            push.pusher._sleep = sleep
            assert not push.pusher.push_all()
            assert push.delivery.waiting == 1
            assert 30 < now[0] <= 61


def test_a_wrong_token_ends_a_push_without_follow_at_once(
    recording: GrowingRecording, collector: str, tmp_path: Path
) -> None:
    recording.grow(36).seal()
    (tmp_path / "wrong").write_text("wrong")
    with Pushing(recording.directory, collector, tmp_path / "wrong", lambda: 0.0) as push:
        assert not push.pusher.push_all()
        assert push.delivery.waiting == 1
        assert push.delivery.last_answer is not None
        assert "401" in push.delivery.last_answer.text


def test_what_is_refused_is_a_gap_in_the_lake(
    recording: GrowingRecording, token: Path, lake: Lake
) -> None:
    recording.grow(36).seal()
    with receiving_server() as picky:
        picky.replies = [(400, {}, b'{"error": "no"}')]
        with Pushing(recording.directory, picky.url, token, lambda: 0.0) as push:
            assert push.pusher.push_all()
            assert push.delivery.delivered.refused == 1
            assert push.delivery.delivered.batches == 1
    gaps = json.loads(gzip.decompress(picky.received[1].body))["tables"]["gaps"]
    assert gaps["cause"] == ["refused: the collector answered 400: no"]


def test_evidence_that_fails_is_a_gap_and_nothing_else_is_lost(
    recording: GrowingRecording, token: Path, lake: Lake, monkeypatch: pytest.MonkeyPatch
) -> None:
    recording.grow(36).pin(5, 36).seal()
    monkeypatch.setattr(evidence.sys, "executable", "/bin/false")
    with (
        served(create_app(lake, TOKENS, commit_every_s=0.001)) as client,
        Pushing(recording.directory, str(client.base_url), token, lambda: 0.0) as push,
    ):
        assert push.pusher.push_all()
        assert push.messages == ["packing the evidence ended with 1"]
    assert len(rows_in(lake)) == 1
    (gap,) = rows_in(lake, "gaps")
    assert (gap["table"], gap["cause"]) == ("incidents", "packing the evidence ended with 1")


def test_a_full_disk_costs_nothing_but_time(
    recording: GrowingRecording, monkeypatch: pytest.MonkeyPatch
) -> None:
    recording.grow(36).seal()
    with (
        receiving_server() as server,
        Pushing(recording.directory, server.url, None, lambda: 0.0) as push,
    ):
        with monkeypatch.context() as patch:

            def full(*_: object) -> None:
                raise OSError(28, "No space left on device")

            patch.setattr(os, "fsync", full)
            assert push.pusher.make(is_ended=True, most=5) == 0
        assert push.messages == [
            f"cannot write to the spool {push.spool.directory}: No space left on device"
        ]
        assert push.pusher.make(is_ended=True, most=5) == 1
        assert push.pusher.rows["facts"] == 1


def test_a_recording_that_is_deleted_ends_the_push_with_a_word(recording: GrowingRecording) -> None:
    recording.grow(36)
    with (
        receiving_server() as server,
        Pushing(recording.directory, server.url, None, lambda: 0.0) as push,
    ):
        push.pusher.turn()
        shutil.rmtree(recording.directory)
        push.pusher._next_make_s = -1.0
        with pytest.raises(RecordingError, match="No such file"):
            push.pusher.turn()
        recording.directory.mkdir()
        (recording.directory / ".push").mkdir()


def test_a_batch_damaged_in_the_spool_is_a_gap_in_the_lake(
    recording: GrowingRecording, token: Path, lake: Lake
) -> None:
    recording.grow(36).seal()
    with (
        served(create_app(lake, TOKENS, commit_every_s=0.001)) as client,
        Pushing(recording.directory, str(client.base_url), token, lambda: 0.0) as push,
    ):
        push.pusher.make(is_ended=True, most=5)
        (entry,) = push.spool.entries
        file = push.spool.directory / entry.name
        data = bytearray(file.read_bytes())
        data[len(data) // 2] ^= 1
        file.write_bytes(data)
        assert push.pusher.push_all()
    (gap,) = rows_in(lake, "gaps")
    assert (gap["time"], gap["end"], gap["cause"]) == (
        entry.from_ns,
        entry.to_ns,
        "damaged in the spool of the node",
    )
    assert {row["kind"] for row in rows_in(lake, "facts")} == {
        "sysctl",
        "label",
    }, "facts are told again"


def test_long_away_the_oldest_go_and_the_collector_hears_of_it(
    recording: GrowingRecording, token: Path, lake: Lake
) -> None:
    live = GrowingRecording(
        recording.directory.parent / "live", drawn_node(f"core 0:  {'.' * 1300}")
    )
    with (
        served(create_app(lake, TOKENS, commit_every_s=0.001)) as client,
        Pushing(live.directory, str(client.base_url), token, lambda: 0.0, limit_bytes=6000) as push,
    ):
        for until in range(70, 1300, 60):
            live.grow(until)
            push.pusher.make(is_ended=False, most=5)
        assert push.state.dropped > 0
        assert "the spool is full" in push.messages[0]
        assert sum(entry.size_bytes for entry in push.spool.entries) <= 6000
        left = len(push.spool.entries)
        live.seal()
        assert push.pusher.push_all()
    assert left < 20
    gaps = rows_in(lake, "gaps")
    minutes = {row["time"] for row in rows_in(lake, "core_minutes")}
    first_ns = at(0) // 60_000_000_000 * 60_000_000_000
    covered = {
        minute
        for minute in range(first_ns, at(1270), 60_000_000_000)
        for gap in gaps
        if gap["time"] <= minute < gap["end"]
    }
    assert minutes | covered == set(range(first_ns, at(1270), 60_000_000_000))


def test_nothing_is_left_open(recording: GrowingRecording, collector: str, token: Path) -> None:
    recording.grow(36).seal()
    before = set(os.listdir("/proc/self/fd"))
    with contextlib.ExitStack() as stack:
        push = stack.enter_context(Pushing(recording.directory, collector, token, lambda: 0.0))
        push.pusher.push_all()
    assert len(set(os.listdir("/proc/self/fd")) - before) <= 1
