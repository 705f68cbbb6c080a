"""A real Ray cluster over the nodes, and runs of a driver on the first of them with an actor on each:
the fault is on a node where the driver is not.
"""

import json
import os
import subprocess
import sys
import time
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any, Self

from tests.job_cluster.cluster import Cluster, end_session
from tests.job_cluster.torch_runs import LENGTH_S, ROOT, WARM_S, TorchRun

RAY = Path(sys.executable).parent / "ray"
RAY_PORT = 6379
START_S = 90.0
VARIABLES = {"RAY_ENABLE_UV_RUN_RUNTIME_ENV": "0", "PYTHONPATH": str(ROOT)}


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
            self.raylets.append(node.start(words, log, **VARIABLES))
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
    """`members` are the actors, one per node, and the driver."""

    def __post_init__(self) -> None:
        self.victim = self.seed.randrange(1, len(self.cluster.nodes))
        self.core = self.seed.randrange(2)
        self.said: dict[str, Any] = {}
        self.driver: subprocess.Popen[bytes] | None = None

    @property
    def job(self) -> str:
        return f"ray/{self.said['session']}/{self.said['job']}"

    def start(self, deed: str = "", length_s: float = LENGTH_S, data: str = "") -> None:
        head = self.cluster.nodes[0]
        plans = [
            self.plan(number, deed, length_s, data) for number in range(len(self.cluster.nodes))
        ]
        log = head.directory / f"driver-{self.number}.log"
        words = [sys.executable, "-m", "tests.job_cluster.ray_driver"]
        words += [f"{head.address}:{RAY_PORT}", str(length_s), json.dumps(plans)]
        self.driver = head.start(words, log, PYTHONPATH=str(ROOT))
        self.logs.append(log)

    def warm_up(self) -> None:
        assert self.driver is not None
        end = time.monotonic() + 90
        while b"ready" not in self.logs[0].read_bytes():
            if time.monotonic() > end or self.driver.poll() is not None:
                raise RuntimeError(f"the driver did not start: {self.logs[0].read_text()[-300:]}")
            time.sleep(0.1)
        line = next(text for text in self.logs[0].read_text().splitlines() if "ready" in text)
        self.said = json.loads(line)
        self.members = [*(Actor(pid) for pid in self.said["ready"]), self.driver]
        time.sleep(WARM_S)

    def close(self) -> None:
        if self.driver is not None:
            end_session(self.driver)
        self.lock.unlink(missing_ok=True)
