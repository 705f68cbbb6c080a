"""No node hears that a batch is stored before it is, and one file serves many."""

import asyncio
import contextlib
from collections.abc import AsyncIterator, Iterable
from pathlib import Path
from threading import Event

import pytest

from necroscope.fleet.collector.group_commit import GroupCommit
from necroscope.fleet.collector.metrics import Metrics
from necroscope.fleet.inbox import Receipt, unpack
from necroscope.fleet.lake import Lake
from necroscope.fleet.lake_files import LakeError


class SlowLake(Lake):
    """Puts wait until they are let go, and can be made to fail."""

    def __init__(self, lake: Lake) -> None:
        super().__init__(lake._files, lake.url)
        self.asked = Event()
        self.let_go = Event()
        self.fails = False

    def put(self, path: str, data: bytes) -> None:
        self.asked.set()
        assert self.let_go.wait(10)
        if self.fails:
            raise LakeError("no space", "make some")
        super().put(path, data)


@pytest.fixture
def lake(tmp_path: Path) -> SlowLake:
    return SlowLake(Lake.open(str(tmp_path / "lake")))


@contextlib.asynccontextmanager
async def running(
    lake: Lake,
    *,
    every_s: float = 0.01,
    free_floor_bytes: int = 0,
    moments: Iterable[int] = range(1000),
) -> AsyncIterator[GroupCommit]:
    clock = iter(moments)
    commits = GroupCommit(
        lake,
        "me",
        Metrics(),
        every_s=every_s,
        free_floor_bytes=free_floor_bytes,
        clock_ns=lambda: next(clock),
    )
    task = asyncio.create_task(commits.run())
    yield commits
    commits.close()
    await asyncio.wait_for(task, 10)


def receipt(number: int) -> Receipt:
    return Receipt("eu-1", number, None, f"body {number}".encode())


def stored(lake: Lake) -> list[list[int]]:
    return [[found.received_ns for found in unpack(lake.read(path))] for path in lake.list("inbox")]


def test_nothing_is_acknowledged_before_it_is_durable(lake: SlowLake) -> None:
    async def push() -> None:
        async with running(lake) as commits:
            adding = asyncio.create_task(commits.add(receipt(1)))
            await asyncio.to_thread(lake.asked.wait, 10)
            assert not adding.done()
            assert lake.list("inbox") == []
            lake.let_go.set()
            await asyncio.wait_for(adding, 10)
            assert stored(lake) == [[1]]

    asyncio.run(push())


def test_what_comes_together_is_one_file_and_what_comes_meanwhile_the_next(lake: SlowLake) -> None:
    async def push() -> None:
        async with running(lake) as commits:
            first = [asyncio.create_task(commits.add(receipt(number))) for number in range(50)]
            await asyncio.to_thread(lake.asked.wait, 10)
            second = [asyncio.create_task(commits.add(receipt(number))) for number in range(50, 60)]
            await asyncio.sleep(0)
            lake.let_go.set()
            await asyncio.wait_for(asyncio.gather(*first, *second), 10)
        assert stored(lake) == [list(range(50)), list(range(50, 60))]

    asyncio.run(push())


def test_a_lake_that_refuses_is_told_to_all_of_the_group_and_the_next_is_tried(
    lake: SlowLake,
) -> None:
    async def push() -> None:
        lake.let_go.set()
        lake.fails = True
        async with running(lake) as commits:
            answers = await asyncio.gather(
                *(commits.add(receipt(number)) for number in range(3)), return_exceptions=True
            )
            assert [str(answer) for answer in answers] == ["no space"] * 3
            assert commits.failure is not None
            lake.fails = False
            await asyncio.wait_for(commits.add(receipt(9)), 10)
            assert commits.failure is None
        assert stored(lake) == [[9]]

    asyncio.run(push())


def test_a_lake_that_recovers_is_noticed_without_a_push(lake: SlowLake) -> None:
    async def push() -> None:
        lake.let_go.set()
        lake.fails = True
        async with running(lake) as commits:
            with pytest.raises(LakeError):
                await commits.add(receipt(1))
            await commits.probe()
            assert commits.failure is not None
            lake.fails = False
            await commits.probe()
            assert commits.failure is None
        assert lake.list("health") == []

    asyncio.run(push())


def test_a_full_disk_keeps_what_compaction_needs(lake: SlowLake) -> None:
    async def push() -> None:
        lake.let_go.set()
        async with running(lake, free_floor_bytes=1 << 62) as commits:
            with pytest.raises(LakeError, match="the lake is full"):
                await commits.add(receipt(1))
        assert lake.list("inbox") == []

    asyncio.run(push())


def test_who_goes_away_does_not_take_others_along(lake: SlowLake) -> None:
    async def push() -> None:
        async with running(lake) as commits:
            leaving = asyncio.create_task(commits.add(receipt(1)))
            staying = asyncio.create_task(commits.add(receipt(2)))
            await asyncio.to_thread(lake.asked.wait, 10)
            leaving.cancel()
            lake.let_go.set()
            await asyncio.wait_for(staying, 10)
        assert stored(lake) == [[1, 2]]

    asyncio.run(push())


def test_closing_stores_what_waits_at_once(lake: SlowLake) -> None:
    async def push() -> None:
        lake.let_go.set()
        async with running(lake, every_s=3600) as commits:
            adding = asyncio.create_task(commits.add(receipt(1)))
            await asyncio.sleep(0)
        await asyncio.wait_for(adding, 10)
        assert stored(lake) == [[1]]

    asyncio.run(push())


def test_a_clock_that_is_set_back_overwrites_nothing(lake: SlowLake) -> None:
    async def push() -> None:
        lake.let_go.set()
        async with running(lake, moments=[5, 5, 1]) as commits:
            for number in range(3):
                await asyncio.wait_for(commits.add(receipt(number)), 10)
        assert stored(lake) == [[0], [1], [2]]

    asyncio.run(push())


def test_a_group_that_is_large_does_not_wait(
    lake: SlowLake, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("necroscope.fleet.collector.group_commit._FULL_BYTES", 10)

    async def push() -> None:
        lake.let_go.set()
        async with running(lake, every_s=3600) as commits:
            await asyncio.wait_for(
                asyncio.gather(commits.add(receipt(1)), commits.add(receipt(2))), 10
            )

    asyncio.run(push())
