"""A real Ray cluster over the nodes, and runs of a driver on the first of them with an actor on each:
the fault is on a node where the driver is not.
"""

import json
import os
import random
import subprocess
import sys
import time
from collections.abc import Callable
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any, Self

from tests.job_cluster.cluster import Cluster, end_session
from tests.job_cluster.torch_runs import LENGTH_S, WARM_S, TorchRun, Truth, judged_run

ROOT = Path(__file__).parents[2]
RAY = Path(sys.executable).parent / "ray"
RAY_PORT = 6379
START_S = 90.0


@dataclass
class RayCluster:
    """Three raylets; what they wrote is in `directory`, whose path must be short for their
    sockets.
    """

    cluster: Cluster
    raylets: list[subprocess.Popen[bytes]] = field(default_factory=list)

    @property
    def directory(self) -> Path:
        return Path("/tmp/ncj-ray")

    def __enter__(self) -> Self:
        try:
            self._start()
        except BaseException:
            self.__exit__()
            raise
        return self

    def __exit__(self, *_: object) -> None:
        for raylet in self.raylets:
            raylet.terminate()
        for raylet in reversed(self.raylets):
            end_session(raylet)
        for node in self.cluster.nodes:
            for pid in (node.memory / "cgroup.procs").read_text().split():
                os.kill(int(pid), 9)
        subprocess.run(["rm", "-rf", str(self.directory)], check=False)

    def _start(self) -> None:
        head = self.cluster.nodes[0]
        for node in self.cluster.nodes:
            words = [str(RAY), "start", "--block", "--num-cpus", "2", "--disable-usage-stats"]
            words += ["--node-ip-address", node.address, "--object-store-memory", str(128 << 20)]
            words += ["--resources", json.dumps({node.name: 1})]
            if node is head:
                words += ["--head", "--port", str(RAY_PORT), "--include-dashboard", "false"]
                words += ["--temp-dir", str(self.directory)]
            else:
                words += ["--address", f"{head.address}:{RAY_PORT}"]
            log = node.directory / "ray.log"
            self.raylets.append(node.start(words, log, RAY_ENABLE_UV_RUN_RUNTIME_ENV="0"))
            end_s = time.monotonic() + START_S
            while b"Ray runtime started" not in log.read_bytes():
                if time.monotonic() > end_s or self.raylets[-1].poll() is not None:
                    raise RuntimeError(f"ray did not start: {log.read_text()[-500:]}")
                time.sleep(0.2)


@dataclass
class Actor:
    """A worker process, with the verbs of a child."""

    pid: int

    def poll(self) -> int | None:
        try:
            state = Path(f"/proc/{self.pid}/stat").read_text().rpartition(")")[2].split()[0]
        except OSError:
            return 0
        return 0 if state in "ZX" else None

    def send_signal(self, number: int) -> None:
        os.kill(self.pid, number)


class RayRun(TorchRun):
    """`ranks` are the actors, one per node, and the driver."""

    def __post_init__(self) -> None:
        self.victim = self.seed.randrange(1, len(self.cluster.nodes))
        self.core = self.seed.randrange(2)
        self.told: dict[str, Any] = {}
        self.driver: subprocess.Popen[bytes] | None = None

    @property
    def job(self) -> str:
        return f"ray/{self.told['session']}/{self.told['job']}"

    def start(self, deed: str = "", length_s: float = LENGTH_S, work_s: float = 0.4) -> None:
        head = self.cluster.nodes[0]
        actors = []
        for number, node in enumerate(self.cluster.nodes):
            is_victim = number == self.victim
            own = deed if is_victim else ""
            slow_s = 2.5 * work_s if own == "slow" else work_s if is_victim else work_s / 2
            core = self.core if is_victim else 1 - self.core
            actors.append({"node": node.name, "core": core, "work_s": slow_s, "deed": own})
        script = str(ROOT / "tests/job_cluster/ray_driver.py")
        log = head.directory / f"driver-{self.number}.log"
        address = f"{head.address}:{RAY_PORT}"
        words = [sys.executable, script, address, str(length_s), json.dumps(actors)]
        self.driver = head.start(words, log)
        self.logs.append(log)

    def warm_up(self) -> None:
        assert self.driver is not None
        end = time.monotonic() + 60
        while b"ready" not in self.logs[0].read_bytes():
            if time.monotonic() > end or self.driver.poll() is not None:
                raise RuntimeError(f"the driver did not start: {self.logs[0].read_text()[-300:]}")
            time.sleep(0.2)
        line = next(text for text in self.logs[0].read_text().splitlines() if "ready" in text)
        self.told = json.loads(line)
        self.ranks = [*(Actor(pid) for pid in self.told["ready"]), self.driver]  # type: ignore[list-item]
        time.sleep(WARM_S)

    def close(self) -> None:
        if self.driver is not None:
            end_session(self.driver)


def ray_run(ray: RayCluster, number: int, deed: Callable[[TorchRun], Truth]) -> dict[str, Any]:
    return judged_run(ray.cluster, RayRun(ray.cluster, number, random.Random(number)), deed)
