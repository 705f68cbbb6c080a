"""A sweep on this machine: one process per core, one bundle at a time. A process that is killed
costs one bundle its verdict.
"""

import multiprocessing
import os
import signal
import tempfile
import threading
from collections.abc import Generator, Iterable, Iterator
from concurrent.futures import FIRST_COMPLETED, Future, ProcessPoolExecutor, wait
from concurrent.futures.process import BrokenProcessPool
from itertools import islice
from typing import Final

from necroscope.fleet.evidence import StoredBundle
from necroscope.fleet.judging import BundleJudgement, prepare_worker, read_and_judge, without_rows
from necroscope.fleet.lake import Lake

# Handed out beyond what is being judged, so that no process waits for its next bundle.
_AHEAD: Final = 2
_KILLED: Final = "the process that judged it was killed, twice: the machine may lack memory"
# The lake of a worker process.
_lakes: Final[dict[str, Lake]] = {}


class Processes:
    """Judges for `sweep`. Bundles travel by their path: each process reads its own."""

    def __init__(self, lake_url: str, count: int | None = None) -> None:
        self._lake_url = lake_url
        self._count = count or len(os.sched_getaffinity(0))

    def __call__(self, evidence: Iterable[StoredBundle], now_ns: int) -> Iterator[BundleJudgement]:
        waiting = iter(evidence)
        while True:
            suspects = yield from self._judge_all(waiting, self._count, now_ns)
            if not suspects:
                return
            for one in suspects:
                if (yield from self._judge_all(iter([one]), 1, now_ns)):
                    yield without_rows(one, unread=_KILLED)

    def _judge_all(
        self, waiting: Iterator[StoredBundle], count: int, now_ns: int
    ) -> Generator[BundleJudgement, None, list[StoredBundle]]:
        """Returns those that were under way when a process was killed: with it the executor loses
        all that it has.
        """
        # The parent has threads of Arrow's, so a fork could hang.
        context = multiprocessing.get_context("spawn")
        # What a killed process had unpacked goes with this directory.
        work = tempfile.TemporaryDirectory(prefix="necroscope-sweep-")
        executor = ProcessPoolExecutor(count, context, _begin, (work.name,))
        under_way: dict[str, StoredBundle] = {}
        running: set[Future[BundleJudgement]] = set()
        try:
            while True:
                for one in islice(waiting, _AHEAD * count - len(running)):
                    under_way[one.path] = one
                    running.add(executor.submit(_judge, self._lake_url, one, now_ns))
                if not running:
                    return []
                done, running = wait(running, return_when=FIRST_COMPLETED)
                for future in done:
                    judgement = future.result()
                    del under_way[judgement.evidence.path]
                    yield judgement
        except BrokenProcessPool:
            return list(under_way.values())
        finally:
            executor.shutdown(cancel_futures=True)
            work.cleanup()


def _begin(work: str) -> None:
    """Ctrl-C is for who started us, and ends us by not giving more; a death that gives no sign is
    watched for.
    """
    signal.signal(signal.SIGINT, signal.SIG_IGN)
    threading.Thread(target=_end_with_parent, daemon=True).start()
    tempfile.tempdir = work
    prepare_worker()


def _end_with_parent() -> None:
    parent = multiprocessing.parent_process()
    if parent is not None:
        parent.join()
        os._exit(1)


def _judge(lake_url: str, evidence: StoredBundle, now_ns: int) -> BundleJudgement:
    if lake_url not in _lakes:
        _lakes[lake_url] = Lake.open(lake_url)
    return read_and_judge(_lakes[lake_url], evidence, now_ns)
