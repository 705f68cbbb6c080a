"""A sweep on a real Ray cluster of three raylets on this machine, one of which is killed in the
middle.

`python -m tests.ray_sweep LAKE DEADLY_LAKE` prints what came of it. The second lake holds a bundle
that kills every worker that judges it. A process of its own, because Ray leaves threads and
handlers in the one it was used in.
"""

import json
import os
import signal
import sys
import time
from collections.abc import Callable
from pathlib import Path
from typing import Any

import ray
from ray.cluster_utils import Cluster

from necroscope.fleet import sweep_ray
from necroscope.fleet.judging import BundleJudgement, judge
from necroscope.fleet.lake import Lake
from necroscope.fleet.sweep import sweep

# Not 127.0.0.1: a driver that is given that one asks for the machine's address in the network
# instead.
LOOPBACK = "127.0.0.2"
RAYLETS = 2
KILL_WORKER_AFTER, KILL_RAYLET_AFTER = 2, 6
DEADLY = "deadly"


def main(lake_url: str, deadly_url: str) -> None:
    began_s = time.monotonic()
    cluster = Cluster(initialize_head=True, head_node_args=options(0))
    try:
        nodes = [cluster.add_node(**options(1)) for _ in range(RAYLETS)]
        cluster.wait_for_nodes()
        found: dict[str, Any] = {"start_s": round(time.monotonic() - began_s, 1)}
        killed: list[str] = []
        workers = sweep_ray.RayWorkers(cluster.address, lake_url)
        swept = sweep(Lake.open(lake_url), workers, progress=killer(cluster, nodes, killed))
        found |= {"swept": swept.as_json(), "killed": killed}
        found["deadly"] = sweep_deadly(cluster.address, deadly_url).as_json()
    finally:
        cluster.shutdown()
    found["all_s"] = round(time.monotonic() - began_s, 1)
    sys.stdout.write(json.dumps(found) + "\n")


def options(cores: int) -> dict[str, Any]:
    return {
        "num_cpus": cores,
        "node_ip_address": LOOPBACK,
        "include_dashboard": False,
        "object_store_memory": 80_000_000,
    }


def killer(cluster: Cluster, nodes: list[Any], killed: list[str]) -> Callable[[int, int], None]:
    """First a worker that is judging, then a raylet with all that it has."""

    def progress(done: int, _: int) -> None:
        if done >= KILL_WORKER_AFTER and not killed:
            pid = judging_worker(nodes[1:])
            if pid is not None:
                os.kill(pid, signal.SIGKILL)
                killed.append("worker")
        elif done >= KILL_RAYLET_AFTER and killed == ["worker"]:
            cluster.remove_node(nodes[0], allow_graceful=False)
            killed.append("raylet")

    return progress


def judging_worker(nodes: list[Any]) -> int | None:
    """A child of one of these raylets that has a chunk."""
    raylets = {node.all_processes["raylet"][0].process.pid for node in nodes}
    for stat in Path("/proc").glob("[0-9]*/stat"):
        try:
            parent = int(stat.read_text().rpartition(")")[2].split()[1])
            title = (stat.parent / "cmdline").read_bytes()
        except OSError:
            continue
        if parent in raylets and title.startswith(b"ray::") and b"_judge_chunk" in title:
            return int(stat.parent.name)
    return None


def sweep_deadly(address: str, lake_url: str) -> Any:
    def judge_or_die(_: str, items: list[Any], now_ns: int) -> list[BundleJudgement]:
        if any(evidence.node == DEADLY for evidence, _ in items):
            os.kill(os.getpid(), signal.SIGKILL)
        return [judge(evidence, content, now_ns) for evidence, content in items]

    sweep_ray._judge_chunk = ray.remote(num_cpus=1, max_retries=0)(judge_or_die)
    return sweep(Lake.open(lake_url), sweep_ray.RayWorkers(address, lake_url, 1))


if __name__ == "__main__":
    main(*sys.argv[1:])
