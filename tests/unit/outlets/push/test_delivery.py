"""Delivery: oldest first, past what is refused, a pause when there is reason to, and a word to
people once.
"""

from pathlib import Path

import pytest

from necroscope.outlets.push.delivery import Delivery
from necroscope.outlets.push.push_state import PushState
from necroscope.outlets.push.sender import PushAnswer, PushOutcome
from necroscope.outlets.push.spool import BATCH, BUNDLE, Spool

NS = 10**9
TAKEN = PushAnswer(PushOutcome.TAKEN)


class FakeSender:
    """Answers as it is told to, then takes everything."""

    def __init__(self) -> None:
        self.answers: list[PushAnswer] = []
        self.sent: list[bytes] = []
        self.clocks: list[str | None] = []

    def send_batch(self, body: bytes, now_ns: int, clock: str | None = None) -> PushAnswer:
        assert now_ns > 0
        self.clocks.append(clock)
        self.sent.append(body)
        return self.answers.pop(0) if self.answers else TAKEN

    def send_bundle(self, name: str, node: str, time_ns: int, body: bytes) -> PushAnswer:
        self.sent.append(f"{name} {node} {time_ns}".encode())
        return self.answers.pop(0) if self.answers else TAKEN

    def close(self) -> None:
        pass


class Bench:
    def __init__(self, tmp_path: Path) -> None:
        self.now_s = 100.0
        self.messages: list[str] = []
        self.sender = FakeSender()
        self.spool = Spool(tmp_path / "spool")
        self.state = PushState(self.spool, "url", self.messages.append, lambda: 1.0)
        self.delivery = Delivery(
            self.state,
            self.sender,  # type: ignore[arg-type]
            self.messages.append,
            lambda: self.now_s,
            lambda: 1.0,
            lambda: round(self.now_s * NS),
        )

    def add(self, *numbers: int) -> None:
        for number in numbers:
            self.spool.add(number, (number, number + 1), BATCH, {}, b"%d" % number)


@pytest.fixture
def bench(tmp_path: Path) -> Bench:
    return Bench(tmp_path)


def test_oldest_first_and_gone_when_taken(bench: Bench) -> None:
    bench.add(3, 4, 5)
    assert bench.delivery.send(2)
    assert bench.sender.sent == [b"3", b"4"]
    assert [entry.number for entry in bench.spool.entries] == [5]
    assert bench.delivery.delivered.batches == 2


def test_the_clock_is_measured_by_one_batch_and_told_with_the_next(bench: Bench) -> None:
    """The collector is two seconds ahead; deaths that it tells of are put on our clock."""
    ahead_ns = round(bench.now_s * NS) + 2 * NS
    death = {"job": "slurm/1", "time_ns": ahead_ns - 30 * NS}
    found = {"arrived_ns": ahead_ns, "answered_ns": ahead_ns, "job_deaths": [death, "x", {}]}
    bench.sender.answers = [PushAnswer(PushOutcome.TAKEN, body=found)]
    bench.add(1, 2)
    assert bench.delivery.send(2)
    assert bench.sender.clocks == [None, f"{2 * NS} 0"]
    assert bench.delivery.take_deaths() == {"slurm/1": round(bench.now_s * NS) - 30 * NS}
    assert bench.delivery.take_deaths() == {}


@pytest.mark.parametrize("body", [{}, {"arrived_ns": "1", "answered_ns": 2, "job_deaths": {}}])
def test_a_collector_that_tells_nothing_or_nonsense_is_no_trouble(
    bench: Bench, body: dict[str, object]
) -> None:
    bench.sender.answers = [PushAnswer(PushOutcome.TAKEN, body=body)]
    bench.add(1, 2)
    assert bench.delivery.send(2)
    assert bench.sender.clocks == [None, None]
    assert bench.delivery.take_deaths() == {}


def test_a_bundle_goes_to_its_own_place(bench: Bench) -> None:
    bench.spool.add(1, (17, 18), BUNDLE, {"bundle": "x", "node": "node-a"}, b"content")
    assert bench.delivery.send(5)
    assert bench.sender.sent == [b"x node-a 17"]
    assert bench.delivery.delivered.bundles == 1


def test_a_collector_that_is_away_is_tried_again_ever_more_seldom(bench: Bench) -> None:
    bench.add(1)
    bench.sender.answers = [PushAnswer(PushOutcome.LATER, "away")] * 12
    pauses = []
    for _ in range(12):
        assert not bench.delivery.send(5)
        pauses.append(bench.delivery.pause_s)
        assert not bench.delivery.send(5)
        bench.now_s += bench.delivery.pause_s + 0.001
    assert len(bench.sender.sent) == 12
    assert [round(pause) for pause in pauses] == [1, 2, 4, 8, 16, 32, 64, 128, 256, 300, 300, 300]
    assert bench.messages == ["cannot push: away; 1 wait in the spool, trying again"]
    assert bench.delivery.send(5)
    assert bench.messages[1:] == ["pushing again"]
    bench.add(2)
    bench.sender.answers = [PushAnswer(PushOutcome.LATER, "away")]
    bench.delivery.send(5)
    assert round(bench.delivery.pause_s) == 1, "it begins anew"


def test_what_the_collector_asks_for_is_heard(bench: Bench) -> None:
    bench.add(1)
    bench.sender.answers = [PushAnswer(PushOutcome.LATER, "too fast", 77.0)]
    assert not bench.delivery.send(5)
    assert round(bench.delivery.pause_s) == 77


def test_a_wrong_token_costs_nothing_but_time(bench: Bench) -> None:
    bench.add(1)
    bench.sender.answers = [PushAnswer(PushOutcome.DENIED, "no")]
    assert not bench.delivery.send(5)
    assert bench.delivery.pause_s >= 59
    assert bench.delivery.waiting == 1


def test_what_is_refused_is_put_aside_told_and_a_gap(bench: Bench) -> None:
    bench.add(1, 2)
    bench.sender.answers = [PushAnswer(PushOutcome.REFUSED, "no batch")]
    assert bench.delivery.send(5)
    assert bench.sender.sent == [b"1", b"2"]
    assert bench.delivery.delivered.refused == 1
    assert [path.name for path in bench.spool.refused.iterdir()] == [f"{1:020d}.1.2.batch"]
    assert "no batch" in bench.messages[0]
    assert [(loss.from_ns, loss.to_ns, loss.cause) for loss in bench.state.cursor.losses] == [
        (1, 2, "refused: no batch")
    ]


def test_a_flipped_byte_costs_one_batch_and_leaves_a_gap(bench: Bench) -> None:
    bench.add(1, 2)
    file = bench.spool.directory / bench.spool.entries[0].name
    file.write_bytes(file.read_bytes()[:-1] + b"x")
    assert bench.delivery.send(5)
    assert bench.sender.sent == [b"2"]
    assert [(loss.from_ns, loss.to_ns, loss.cause) for loss in bench.state.cursor.losses] == [
        (1, 2, "damaged in the spool of the node")
    ]
    assert "checksum" in bench.messages[0]


def test_trouble_that_lasts_is_reported_once_an_hour(bench: Bench) -> None:
    for _ in range(100):
        bench.delivery.trouble("disk full")
        bench.now_s += 60
    assert bench.messages == ["disk full"] * 2
