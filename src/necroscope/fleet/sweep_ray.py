"""A sweep on a Ray cluster: bundles in chunks, so that what Ray adds to each is small against
judging it. Only this needs Ray.

Ray runs a chunk again when its worker or node dies. A chunk that keeps killing its workers is taken
apart: only the bundle that does it goes without a verdict.
"""

import logging
import socket
from collections import deque
from collections.abc import Iterable, Iterator, Sequence
from contextlib import contextmanager
from importlib.metadata import version
from typing import Any, Final
from urllib.parse import urlsplit

import ray
from ray.exceptions import GetTimeoutError, RayError, RayTaskError

from necroscope import __version__
from necroscope.errors import NecroscopeError, UsageError
from necroscope.fleet.evidence import StoredBundle
from necroscope.fleet.judging import (
    BundleJudgement,
    judge,
    prepare_worker,
    read_and_judge,
    without_rows,
)
from necroscope.fleet.lake import Lake
from necroscope.fleet.lake_files import LakeError

# Ray's own cost is a few milliseconds a task; a bundle takes some hundred to judge.
MOST_IN_CHUNK: Final = 16
# This many chunks for each worker, so that no worker has much left to do when the others are done.
_CHUNKS_PER_WORKER: Final = 4
_AHEAD: Final = 2
_RETRIES: Final = 3
_REACHABLE_S: Final = 10.0
_FIRST_ANSWER_S: Final = 120.0
_KILLED: Final = "every worker that judged it died: they may lack memory"

# A bundle, and its content where the workers cannot read it themselves.
Item = tuple[StoredBundle, bytes | None]


class RayWorkers:
    """Judges for `sweep`. `count` is how many workers at most; else the cluster's cores.

    Of a lake on a directory the contents travel with the tasks: the cluster's machines need not see
    it.
    """

    def __init__(self, address: str, lake_url: str, count: int | None = None) -> None:
        self._address = address
        self._lake_url = lake_url
        self._count = count
        self._lake = Lake.open(lake_url) if urlsplit(lake_url).scheme in {"", "file"} else None

    def __call__(self, evidence: Iterable[StoredBundle], now_ns: int) -> Iterator[BundleJudgement]:
        bundles = list(evidence)
        with _connect(self._address):
            workers = self._count or max(1, int(ray.cluster_resources().get("CPU", 1)))
            waiting = deque(_chunks(bundles, _chunk_size(len(bundles), workers)))
            yield from self._judge_all(
                waiting, workers if self._count else _AHEAD * workers, now_ns
            )

    def _judge_all(
        self, waiting: deque[list[StoredBundle]], most: int, now_ns: int
    ) -> Iterator[BundleJudgement]:
        running: dict[ray.ObjectRef[list[BundleJudgement]], list[StoredBundle]] = {}
        while waiting or running:
            while waiting and len(running) < most:
                chunk = waiting.popleft()
                items, unread = self._items(chunk)
                yield from unread
                if items:
                    running[_JUDGE_CHUNK.remote(self._lake_url, items, now_ns)] = [
                        one for one, _ in items
                    ]
            if running:
                (ended, *_), _ = ray.wait(list(running))
                yield from self._result(ended, running.pop(ended), waiting)

    def _result(
        self, ended: Any, chunk: list[StoredBundle], waiting: deque[list[StoredBundle]]
    ) -> list[BundleJudgement]:
        try:
            judged: list[BundleJudgement] = ray.get(ended)
            return judged
        except RayTaskError as error:
            raise _cannot(error) from None
        except RayError:
            if len(chunk) == 1:
                return [without_rows(chunk[0], unread=_KILLED)]
            waiting.extendleft([one] for one in chunk)
            return []

    def _items(self, chunk: Sequence[StoredBundle]) -> tuple[list[Item], list[BundleJudgement]]:
        if self._lake is None:
            return [(one, None) for one in chunk], []
        items: list[Item] = []
        unread: list[BundleJudgement] = []
        for one in chunk:
            try:
                items.append((one, self._lake.read(one.path)))
            except LakeError as error:
                unread.append(without_rows(one, unread=error.facts))
        return items, unread


def _judge_chunk(lake_url: str, items: list[Item], now_ns: int) -> list[BundleJudgement]:
    prepare_worker()
    lake = Lake.open(lake_url) if any(content is None for _, content in items) else None
    judged = []
    for evidence, content in items:
        if content is not None:
            judged.append(judge(evidence, content, now_ns))
        elif lake is not None:
            judged.append(read_and_judge(lake, evidence, now_ns))
    return judged


def _version_there() -> str:
    return __version__


_JUDGE_CHUNK: Final = ray.remote(num_cpus=1, max_retries=_RETRIES)(_judge_chunk)
_VERSION_THERE: Final = ray.remote(num_cpus=0)(_version_there)


def _chunk_size(bundles: int, workers: int) -> int:
    return max(1, min(MOST_IN_CHUNK, bundles // (workers * _CHUNKS_PER_WORKER)))


def _chunks(bundles: Sequence[StoredBundle], size: int) -> Iterator[list[StoredBundle]]:
    for start in range(0, len(bundles), size):
        yield list(bundles[start : start + size])


@contextmanager
def _connect(address: str) -> Iterator[None]:
    """Connected, and sure that the cluster's workers are of our version: their verdicts count as
    ours.
    """
    try:
        _check_reachable(address)
        ray.init(address, log_to_driver=False, logging_level=logging.ERROR)
    except (OSError, RuntimeError, ValueError, RayError) as error:
        reason = (
            error.strerror
            if isinstance(error, OSError) and error.strerror
            else str(error).strip().splitlines()[0][:300]
        )
        hint = f"is it there, and of Ray {version('ray')}? see: ray status --address {address}"
        raise UsageError(f"cannot use the Ray cluster at {address}: {reason}", hint) from None
    try:
        _check_version()
        yield
    finally:
        ray.shutdown()


def _check_reachable(address: str) -> None:
    """Ray itself tries for a minute, and says little."""
    place = urlsplit(address if "://" in address else f"//{address}")
    if place.hostname and place.port:
        socket.create_connection((place.hostname, place.port), _REACHABLE_S).close()


def _check_version() -> None:
    try:
        there = ray.get(_VERSION_THERE.remote(), timeout=_FIRST_ANSWER_S)
    except GetTimeoutError:
        raise NecroscopeError(
            f"the Ray cluster gave no worker in {_FIRST_ANSWER_S:.0f} s", "see: ray status"
        ) from None
    except RayError as error:
        raise _cannot(error) from None
    if there != __version__:
        hint = f"install necroscope {__version__} on all of the cluster, also for its workers"
        raise UsageError(
            f"the cluster's workers have necroscope {there}, this is {__version__}", hint
        )


def _cannot(error: RayError) -> NecroscopeError:
    last = str(error).strip().splitlines()[-1][:300]
    return NecroscopeError(
        f"the Ray workers cannot judge: {last}",
        f"install necroscope {__version__} on all of the cluster, also for its workers",
    )
