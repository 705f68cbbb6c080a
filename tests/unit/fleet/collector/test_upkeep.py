"""Rounds between pushes: they do their work, tell trouble once, and never stop."""

import asyncio
from pathlib import Path

import pytest
from tests.fleet_batches import START_NS, made_batch, put_in_inbox, sequences_in

from necroscope.fleet.collector.collector import Collector
from necroscope.fleet.collector.upkeep import Upkeep
from necroscope.fleet.compaction import Compactor
from necroscope.fleet.lake import Lake
from necroscope.fleet.lake_files import LakeError
from necroscope.fleet.tokens import Grant, TokenFile, entry_text


@pytest.fixture
def said() -> list[str]:
    return []


@pytest.fixture
def collector(tmp_path: Path, said: list[str]) -> Collector:
    tokens = tmp_path / "tokens.toml"
    tokens.write_text(entry_text("secret", Grant("eu-1", "push")), "utf-8")
    lake = Lake.open(str(tmp_path / "lake"))
    return Collector(
        lake,
        TokenFile(tokens),
        name="me",
        say=said.append,
        compact_every_s=0.001,
        clock_ns=lambda: START_NS,
    )


def run_rounds(collector: Collector, rounds: int) -> None:
    async def run() -> None:
        upkeep = Upkeep(collector)
        for _ in range(rounds):
            await asyncio.to_thread(upkeep.round)
        upkeep.close()
        await asyncio.wait_for(upkeep.run(), 10)

    asyncio.run(run())


def test_the_inbox_becomes_tables(collector: Collector) -> None:
    put_in_inbox(collector.lake, START_NS, "me", made_batch("n1", 5))
    run_rounds(collector, 1)
    assert sequences_in(collector.lake) == [("n1", 5)]
    assert 'rows_total{table="events"} 1\n' in collector.metrics_text()


def test_trouble_is_reported_once_and_its_end_too(
    collector: Collector, said: list[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    put_in_inbox(collector.lake, START_NS, "me", made_batch("n1", 5))
    real, calls = Compactor.compact, []

    def fails_twice(self: Compactor) -> object:
        calls.append(1)
        if len(calls) < 3:
            raise LakeError("no space", "")
        return real(self)

    monkeypatch.setattr(Compactor, "compact", fails_twice)
    run_rounds(collector, 4)
    assert said == ["compaction: no space", "compaction: goes on"]
    assert collector.metrics.count("upkeep_failures") == 2
    assert sequences_in(collector.lake) == [("n1", 5)]


def test_tokens_follow_their_file_and_a_broken_file_is_reported(
    collector: Collector, said: list[str], tmp_path: Path
) -> None:
    tokens = tmp_path / "tokens.toml"
    tokens.write_text(entry_text("another", Grant("eu-1", "push")), "utf-8")
    run_rounds(collector, 1)
    assert collector.tokens.grant_of("secret") is None
    assert said == ["tokens: read again"]
    tokens.write_text("broken", "utf-8")
    run_rounds(collector, 1)
    assert collector.tokens.grant_of("another") is not None
    assert said[1].startswith("tokens: cannot read tokens")


def test_old_days_go_when_told_to(collector: Collector, said: list[str]) -> None:
    put_in_inbox(
        collector.lake, START_NS, "me", made_batch("n1", 5), made_batch("n1", -10 * 24 * 60)
    )
    collector.keep_ns = 7 * 86_400 * 10**9
    run_rounds(collector, 1)
    assert sequences_in(collector.lake) == [("n1", 5)]
    assert "before 2025-10-02 removed" in said[0]


def test_unreadable_data_is_reported_with_its_place(collector: Collector, said: list[str]) -> None:
    collector.lake.put(f"inbox/{START_NS}-me.batches", b"no inbox")
    run_rounds(collector, 1)
    assert "refused/8-" in said[0]
    assert len(collector.lake.list("refused")) == 1
