"""Runs of a torch process group over the nodes: one rank per node, the one in trouble on a core that
no other member has.
"""

import json
import random
import subprocess
import sys
import time
from collections.abc import Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

from tests.job_cluster.cluster import Cluster, Node, end_session

ROOT = Path(__file__).parents[2]
LENGTH_S = 60.0
# Until the recorders know the members: they let a process settle, and look every two seconds.
WARM_S = 6.0
DEATH_S = 40.0
LET_GO_S = 6.0
WORK_S, PAUSE_S = 0.4, 0.1
SLOWER = 3.0


@dataclass
class TorchRun:
    cluster: Cluster
    number: int
    seed: random.Random
    members: list[Any] = field(default_factory=list)
    logs: list[Path] = field(default_factory=list)
    died_s: float | None = None

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

    @property
    def lock(self) -> Path:
        return self.node.directory / f"lock-{self.number}"

    def plan(self, number: int, deed: str, length_s: float, data: str) -> dict[str, Any]:
        is_victim = number == self.victim
        work_s = WORK_S if is_victim else WORK_S / 2
        return {
            "node": self.cluster.nodes[number].name,
            "core": self.core if is_victim else 1 - self.core,
            "length_s": length_s,
            "work_s": work_s * (SLOWER if is_victim and deed == "slow" else 1),
            "pause_s": PAUSE_S,
            "deed": deed if is_victim else "",
            "lock": str(self.lock) if is_victim else "",
            "data": data if is_victim else "",
        }

    def start(self, deed: str = "", length_s: float = LENGTH_S, data: str = "") -> None:
        for number, node in enumerate(self.cluster.nodes):
            plan = json.dumps(self.plan(number, deed, length_s, data))
            words = [sys.executable, "-m", "tests.job_cluster.torch_rank", plan]
            log = node.directory / f"rank-{self.number}.log"
            variables = {
                "RANK": str(number),
                "WORLD_SIZE": str(len(self.cluster.nodes)),
                "MASTER_ADDR": self.cluster.nodes[0].address,
                "MASTER_PORT": str(self.port),
                "GLOO_SOCKET_IFNAME": "eth0",
                "PYTHONPATH": str(ROOT),
            }
            # unshare, sh and nsenter replace themselves by the rank.
            self.members.append(node.start(words, log, **variables))
            self.logs.append(log)

    def warm_up(self) -> None:
        end = time.monotonic() + 90
        while not all(b"ready" in log.read_bytes() for log in self.logs):
            if time.monotonic() > end or any(one.poll() is not None for one in self.members):
                raise RuntimeError(f"the ranks did not start: {self.logs[0].read_text()[-300:]}")
            time.sleep(0.1)
        time.sleep(WARM_S)

    def await_death(self) -> None:
        """Until all have ended, or for so long; `died_s` is when the first of them had."""
        end = time.monotonic() + DEATH_S
        while time.monotonic() < end and self._alive(self.members):
            if self.died_s is None and len(self._alive(self.members)) < len(self.members):
                self.died_s = time.monotonic()
                # Its time-out is over for the others as well.
                end = min(end, self.died_s + 3)
            time.sleep(0.05)
        self.died_s = self.died_s or time.monotonic()

    def await_ends(self) -> None:
        """What has been let go finds out by itself that the others are gone."""
        end = time.monotonic() + LET_GO_S
        while time.monotonic() < end and self._alive(self.members):
            time.sleep(0.05)

    def _alive(self, members: Sequence[Any]) -> list[subprocess.Popen[bytes]]:
        return [one for one in members if one.poll() is None]

    def close(self) -> None:
        for member in self.members:
            end_session(member)
        self.lock.unlink(missing_ok=True)
