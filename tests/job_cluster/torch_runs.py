"""Runs of a torch process group over the nodes, each with a fault or a control, and what the
answers were.
"""

import contextlib
import random
import signal
import subprocess
import sys
import time
from collections.abc import Callable
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

from tests.job_cluster import faults
from tests.job_cluster.cluster import Cluster, Node, end_session

from necroscope.lab.ledger import state_directory
from necroscope.lab.safety import alone

LENGTH_S = 60.0
WARM_S = 8.0
DEATH_S = 45.0
ANSWER_S = 30.0
ROOT = Path(__file__).parents[2]


@dataclass
class Truth:
    """`blames` are the right answers; a machine also needs node, core and culprit."""

    name: str
    blames: tuple[str, ...]
    node: str = ""
    core: int | None = None
    culprit: str | None = None
    cause: str | None = None


@dataclass
class TorchRun:
    cluster: Cluster
    number: int
    seed: random.Random
    ranks: list[subprocess.Popen[bytes]] = field(default_factory=list)
    logs: list[Path] = field(default_factory=list)

    def __post_init__(self) -> None:
        self.victim = self.seed.randrange(len(self.cluster.nodes))
        self.core = self.seed.randrange(2)
        self.port = 20_000 + self.number

    @property
    def job(self) -> str:
        return f"torch/{self.cluster.nodes[0].address}:{self.port}"

    @property
    def node(self) -> Node:
        return self.cluster.nodes[self.victim]

    def start(self, deed: str = "", length_s: float = LENGTH_S, work_s: float = 0.4) -> None:
        """The victim has a core of its own; the others share the other."""
        for number, node in enumerate(self.cluster.nodes):
            is_victim = number == self.victim
            core = self.core if is_victim else 1 - self.core
            own = deed if is_victim else ""
            slow_s = 2.5 * work_s if own == "slow" else work_s / 2 if not is_victim else work_s
            script = str(ROOT / "tests/job_cluster/torch_rank.py")
            words = [sys.executable, script, str(core), str(length_s), str(slow_s), own]
            log = node.directory / f"rank-{self.number}.log"
            variables = {
                "RANK": str(number),
                "WORLD_SIZE": str(len(self.cluster.nodes)),
                "MASTER_ADDR": self.cluster.nodes[0].address,
                "MASTER_PORT": str(self.port),
                "GLOO_SOCKET_IFNAME": "eth0",
            }
            self.ranks.append(node.start(words, log, **variables))
            self.logs.append(log)

    def pid_of_victim(self) -> int:
        """unshare, sh and nsenter replace themselves by the rank."""
        return self.ranks[self.victim].pid

    def warm_up(self) -> None:
        end = time.monotonic() + 60
        while not all(b"ready" in log.read_bytes() for log in self.logs):
            if time.monotonic() > end or any(rank.poll() is not None for rank in self.ranks):
                raise RuntimeError(f"the ranks did not start: {self.logs[0]}")
            time.sleep(0.2)
        time.sleep(WARM_S)

    def await_death(self) -> float | None:
        """When the first of them ended; all have ended or been ended when this returns."""
        end, died = time.monotonic() + DEATH_S, None
        while time.monotonic() < end and any(rank.poll() is None for rank in self.ranks):
            if died is None and any(rank.poll() is not None for rank in self.ranks):
                died = time.monotonic()
            time.sleep(0.1)
        return died if died is not None or end > time.monotonic() else None

    def close(self) -> None:
        for rank in self.ranks:
            end_session(rank)


def _machine(run: TorchRun, context: Any, name: str, cause: str, *, is_named: bool) -> Truth:
    run.start()
    run.warm_up()
    with context(run) as culprit:
        run.await_death()
        time.sleep(1)
    told = culprit if is_named else None
    return Truth(name, ("machine",), run.node.name, run.core, told, cause)


def real_time(run: TorchRun) -> Truth:
    policy = run.seed.choice(("fifo", "rr"))

    def context(run: TorchRun) -> Any:
        return faults.real_time_hog(run.seed, run.core, policy)

    return _machine(run, context, "rt-hog", "rt-hog", is_named=True)


def neighbours(run: TorchRun) -> Truth:
    def context(run: TorchRun) -> Any:
        return faults.neighbours(run.seed, run.core)

    return _machine(run, context, "neighbours", "", is_named=True)


def quota(run: TorchRun) -> Truth:
    def context(run: TorchRun) -> Any:
        return faults.quota(run.pid_of_victim(), f"ncj-quota-{run.number}")

    return _machine(run, context, "quota", "cpu-quota-throttle", is_named=False)


def exception(run: TorchRun) -> Truth:
    run.start("exception", 24)
    run.warm_up()
    run.await_death()
    return Truth("exception", ("program",), run.node.name)


def memory(run: TorchRun) -> Truth:
    limit = run.node.memory / "memory.limit_in_bytes"
    run.start("memory", 24)
    run.warm_up()
    used = int((run.node.memory / "memory.usage_in_bytes").read_text())
    limit.write_text(str(used + (64 << 20)))
    try:
        run.await_death()
    finally:
        limit.write_text("-1")
    return Truth("memory", ("memory_limit",), run.node.name)


def kill(run: TorchRun) -> Truth:
    run.start()
    run.warm_up()
    run.ranks[run.victim].send_signal(signal.SIGKILL)
    run.await_death()
    return Truth("kill -9", ("killed",), run.node.name)


def preemption(run: TorchRun) -> Truth:
    run.start()
    run.warm_up()
    for rank in run.ranks:
        rank.send_signal(signal.SIGTERM)
    run.await_death()
    return Truth("preemption", ("stopped", "preempted"))


def slow(run: TorchRun) -> Truth:
    run.start("slow", 24)
    run.warm_up()
    run.await_death()
    return Truth("slow but healthy", ("none",))


FAULTS: tuple[Callable[[TorchRun], Truth], ...] = (real_time, neighbours, quota)
CONTROLS: tuple[Callable[[TorchRun], Truth], ...] = (exception, memory, kill, preemption, slow)


def judge(truth: Truth, answer: dict[str, Any]) -> tuple[bool, str]:
    """Whether it is right, and in what it is not."""
    if "error" in answer:
        return False, answer["error"]
    if answer["blame"] not in truth.blames:
        return False, f"blames {answer['blame']}: {answer['answer'][:200]}"
    if "machine" not in truth.blames:
        return True, ""
    wrong = []
    if answer["node"] != truth.node:
        wrong.append(f"node {answer['node']} instead of {truth.node}")
    if truth.core is not None and answer["core"] != truth.core:
        wrong.append(f"core {answer['core']} instead of {truth.core}")
    if truth.culprit and truth.culprit not in (answer["culprit"] or ""):
        wrong.append(f"culprit {answer['culprit']} instead of {truth.culprit}")
    if not truth.culprit and truth.cause != answer["cause"]:
        wrong.append(f"cause {answer['cause']} instead of {truth.cause}")
    return not wrong, ", ".join(wrong)


def one_run(cluster: Cluster, number: int, deed: Callable[[TorchRun], Truth]) -> dict[str, Any]:
    """With a torch process group of its own."""
    return judged_run(cluster, TorchRun(cluster, number, random.Random(number)), deed)


def judged_run(
    cluster: Cluster, run: TorchRun, deed: Callable[[TorchRun], Truth]
) -> dict[str, Any]:
    """Of the recordings and of the lake the first right answer within the time, or the last."""
    try:
        # The lab's own lock: two faults at once are neither.
        with alone(state_directory(), lambda _: None):
            truth = deed(run)
        ended = time.monotonic()
        told = {"run": run.number, "job": run.job, "fault": truth.name}
        told |= {"victim": run.node.name, "victim_core": run.core}
        asked = {"recordings": cluster.ask_recordings, "lake": cluster.ask_lake}
        while asked:
            for place, ask in list(asked.items()):
                answer = ask(run.job)
                is_right, why = judge(truth, answer)
                waited_s = time.monotonic() - ended
                if is_right or waited_s > ANSWER_S:
                    told[place] = {
                        "is_right": is_right,
                        "why": why,
                        "after_s": round(waited_s, 1),
                        "is_accused": answer.get("blame") == "machine",
                        "text": answer.get("answer", ""),
                    }
                    del asked[place]
            time.sleep(1)
    finally:
        with contextlib.suppress(Exception):
            run.close()
    return told
