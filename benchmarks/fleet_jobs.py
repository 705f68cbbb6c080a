"""`fleet job` and `fleet jobs` over 30 days of 1,000 nodes and 20,000 jobs: seconds of each, in a
process that is up and as a command.
"""

import argparse
import statistics
import subprocess
import sys
import tempfile
import time
from pathlib import Path
from typing import Any

import numpy as np
import pyarrow as pa

from generated_lake import DAY_NS, START_NS, event_lake, names, texts, write_file
from necroscope.fleet.ask import LakeQuestions
from necroscope.fleet.lake import Lake
from necroscope.fleet.questions.answer import answer
from necroscope.model.units import NS_PER_S

MOST_SECONDS = 1.0
HOUR_NS = 3600 * NS_PER_S
PEER = "RuntimeError: [gloo/pair.cc:553] Connection closed by peer"
WORDS = (PEER, "ValueError: loss is not finite")
HOWS = ("starved", "waiting")


def add_arguments(parser: argparse.ArgumentParser) -> None:
    parser.add_argument("--nodes", type=int, default=1_000)
    parser.add_argument("--days", type=int, default=30)
    parser.add_argument("--jobs", type=int, default=20_000)
    parser.add_argument("--ranks", type=int, default=16, help="of a job, each on a node of its own")
    parser.add_argument("--events", type=int, default=20, help="of a node and day")
    parser.add_argument("--pulses", type=int, default=288, help="of a node and day")


def run(arguments: argparse.Namespace) -> list[list[str]]:
    with tempfile.TemporaryDirectory() as work:
        lake = Path(work)
        event_lake(lake, arguments.nodes, arguments.days, arguments.events, arguments.pulses)
        rows = job_lake(lake, arguments)
        questions = LakeQuestions(Lake.open(work), START_NS + arguments.days * DAY_NS)
        failed = next(
            one["job"]
            for one in answer("jobs", questions, {"since": "-30d", "limit": "10000"})["jobs"]
            if one["blame"] == "machine" and one["cause"]
        )
        asked = {
            "job ID": ("job", {"job": failed}),
            "job (the last that failed)": ("job", {}),
            "jobs of a day": ("jobs", {}),
            "jobs of 30 days by zone": ("jobs", {"since": "-30d", "by": "zone"}),
        }
        found = [["question", "median of 5", "slowest", "must be"]]
        for name, (question, words) in asked.items():
            seconds = [_seconds(questions, question, words) for _ in range(5)]
            must = f"< {MOST_SECONDS:g} s" if question == "job" else "-"
            found.append(
                [name, f"{statistics.median(seconds):.2f} s", f"{max(seconds):.2f} s", must]
            )
        found.append(_command(work, failed, arguments.days))
    print(f"{arguments.jobs:,} jobs, {rows:,} rows of their members")
    for row in found:
        print(" | ".join(row))
    return found


def _seconds(questions: LakeQuestions, name: str, words: dict[str, str]) -> float:
    started = time.monotonic()
    answer(name, questions, words)
    return time.monotonic() - started


def _command(lake: str, job: str, days: int) -> list[str]:
    """As a person asks, with Python's start."""
    until = f"2026-{4 + days // 30:02d}-01" if days % 30 == 0 else "2026-05-01"
    words = ["fleet", "job", job, "--lake", lake, "--since", "2026-04-01", "--until", until]
    seconds = []
    for _ in range(5):
        started = time.monotonic()
        subprocess.run(
            [sys.executable, "-m", "necroscope", *words], check=True, capture_output=True
        )
        seconds.append(time.monotonic() - started)
    median = statistics.median(seconds)
    return ["necroscope fleet job ID", f"{median:.2f} s", f"{max(seconds):.2f} s", "< 1 s"]


def job_lake(lake: Path, arguments: argparse.Namespace) -> int:
    """Jobs of three hours on average; of each rank a row per hour and one at its end. One job in
    twenty fails, half of those by a starved rank on a node that had an incident at the time.
    """
    rng = np.random.default_rng(7)
    jobs, ranks = arguments.jobs, arguments.ranks
    ended = (
        START_NS
        + HOUR_NS
        + (rng.random(jobs) * (arguments.days * DAY_NS - 2 * HOUR_NS)).astype(np.int64)
    )
    length = (rng.exponential(3.0, jobs) * HOUR_NS).astype(np.int64) + 60 * NS_PER_S
    fails = rng.random(jobs) < 0.05
    nodes = np.argsort(rng.random((jobs, arguments.nodes)), axis=1)[:, :ranks].astype(np.int32)
    total = 0
    for day in range(arguments.days):
        chosen = np.flatnonzero((ended - START_NS) // DAY_NS == day)
        columns = _day(rng, chosen, ended, length, fails, nodes, arguments)
        write_file(lake, "job_members", day, columns)
        total += len(columns["node"])
        held = chosen[fails[chosen] & (chosen % 2 == 0)]
        verdicts = _verdicts(nodes[held, 3], ended[held], arguments.nodes)
        write_file(lake, "incidents", day, verdicts, number=1)
    return total


def _verdicts(node: np.ndarray, ended: np.ndarray, nodes: int) -> dict[str, Any]:
    count, begin = len(node), ended - 21 * NS_PER_S
    return {
        "node": texts(node, names(nodes)),
        "time": pa.array(begin),
        "end": pa.array(begin + 20 * NS_PER_S),
        "id": pa.array([f"held-{each}" for each in begin.tolist()], pa.string()),
        "core": pa.array(np.full(count, 3, np.int16)),
        "cause": texts(np.arange(count) % 3, ["rt-hog", "kswapd-reclaim", "vm-steal"]),
        "confidence": pa.array(np.full(count, 0.9, np.float32)),
        "culprit_comm": texts(np.zeros(count), ["hog"]),
        "culprit_pid": pa.array(np.full(count, 7, np.int32)),
        "report": pa.array(['{"id": "generated"}'] * count, pa.string()),
        "analysed_by": texts(np.zeros(count), ["1.0"]),
        "analysed_ns": pa.array(begin),
    }


def _day(
    rng: np.random.Generator,
    chosen: np.ndarray,
    ended: np.ndarray,
    length: np.ndarray,
    fails: np.ndarray,
    nodes: np.ndarray,
    arguments: argparse.Namespace,
) -> dict[str, Any]:
    """Rows of hours that lie on the day before are left out: a day's file holds its own day."""
    ranks = arguments.ranks
    job = np.repeat(chosen, ranks)
    rank = np.tile(np.arange(ranks, dtype=np.int32), len(chosen))
    hours = np.minimum(length[job] // HOUR_NS, (ended[job] - START_NS) % DAY_NS // HOUR_NS)
    repeats = hours + 1
    which = np.repeat(np.arange(len(job)), repeats)
    hour = np.arange(len(which)) - np.repeat(np.cumsum(repeats) - repeats, repeats)
    job, rank = job[which], rank[which]
    is_end = hour == 0
    time_ns = np.where(is_end, ended[job], (ended[job] // HOUR_NS - hour + 1) * HOUR_NS - HOUR_NS)
    count = len(job)
    return {
        "node": texts(nodes[job, rank], names(arguments.nodes)),
        "time": pa.array(time_ns),
        "job": texts(job, [f"slurm/{number}" for number in range(arguments.jobs)]),
        "kind": texts(np.zeros(count), ["torch"]),
        "role": texts(np.zeros(count), ["rank"]),
        "rank": pa.array(rank),
        "world_size": pa.array(np.full(count, ranks, np.int32)),
        "pid": pa.array((job % 30_000 + 100).astype(np.int32)),
        "comm": texts(np.zeros(count), ["python"]),
        "started_ns": pa.array(ended[job] - length[job]),
        "gpus": pa.array(np.full(count, 8, np.int32)),
        "analysed_ns": pa.array(time_ns),
        "clock_offset_ns": pa.array(rng.integers(-NS_PER_S, NS_PER_S, count)),
        "clock_error_ns": pa.array(np.full(count, 5_000_000)),
        **_ends(ended[job], is_end, fails[job] & is_end, job % 2 == 0, rank == 3),
    }


def _ends(
    ended: np.ndarray,
    is_end: np.ndarray,
    is_failed: np.ndarray,
    is_even: np.ndarray,
    is_third: np.ndarray,
) -> dict[str, Any]:
    """How members ended: every other job that fails is held by one of its ranks."""
    is_machine = is_failed & is_even
    is_starved = is_machine & is_third

    def only(values: np.ndarray, where: np.ndarray, kind: pa.DataType) -> pa.Array:
        return pa.array(values.astype(np.int64), pa.int64(), mask=~where).cast(kind)

    words = texts(np.where(is_machine, 0, 1), WORDS).cast(pa.string())
    hows = texts(np.where(is_starved, 0, 1), HOWS).cast(pa.string())
    none = pa.nulls(len(ended), pa.string())
    return {
        "ended_ns": only(ended, is_end, pa.int64()),
        "status": only(np.where(is_failed, 256, 0), is_end, pa.int32()),
        "words": pa.compute.if_else(pa.array(is_failed), words, none),
        "stop_how": pa.compute.if_else(pa.array(is_machine), hows, none),
        "stop_from": only(ended - 20 * NS_PER_S, is_machine, pa.int64()),
        "stop_to": only(ended, is_machine, pa.int64()),
        "stop_core": only(np.full(len(ended), 3), is_starved, pa.int16()),
    }
