"""`python -m tests.job_cluster DIR --kind torch --faults 6 --controls 5`: runs, one after the other,
and a line of JSON for each; at the end how many were right and how many accused a machine wrongly.
"""

import argparse
import json
import signal
import sys
import time
from contextlib import nullcontext
from pathlib import Path
from typing import Any

from tests.job_cluster.cluster import Cluster
from tests.job_cluster.ray_cluster import RayCluster, ray_run
from tests.job_cluster.torch_runs import CONTROLS, FAULTS, one_run

FAULT_NAMES = ("rt-hog", "neighbours", "quota")


def main() -> int:
    parser = argparse.ArgumentParser()
    parser.add_argument("directory", type=Path)
    parser.add_argument("--kind", choices=("torch", "ray"), default="torch")
    parser.add_argument("--faults", type=int, default=6)
    parser.add_argument("--controls", type=int, default=5)
    parser.add_argument("--first", type=int, default=1, help="number, and seed, of the first run")
    parser.add_argument("--within", type=float, default=7200, help="seconds: no run begins later")
    said = parser.parse_args()
    until_s = time.monotonic() + said.within
    # Whoever ends this also ends what it made.
    signal.signal(signal.SIGTERM, lambda *_: sys.exit(1))
    first = said.first
    deeds = [FAULTS[number % len(FAULTS)] for number in range(first, first + said.faults)]
    deeds += [CONTROLS[number % len(CONTROLS)] for number in range(first, first + said.controls)]
    results = []
    with (
        Cluster(said.directory) as cluster,
        RayCluster(cluster) if said.kind == "ray" else nullcontext() as ray,
    ):
        for number, deed in enumerate(deeds, said.first):
            if time.monotonic() > until_s:
                break
            try:
                result = ray_run(ray, number, deed) if ray else one_run(cluster, number, deed)
            except RuntimeError as error:
                result = {"run": number, "fault": deed.__name__, "why": str(error)}
            results.append(result)
            sys.stdout.write(json.dumps(result) + "\n")
            sys.stdout.flush()
    for place in ("recordings", "lake"):
        sys.stdout.write(f"{said.kind}, {place}: {_summary(results, place)}\n")
    return 0


def _summary(results: list[dict[str, Any]], place: str) -> str:
    counted = [one for one in results if place in one]
    faults = [one for one in counted if one["fault"] in FAULT_NAMES]
    controls = [one for one in counted if one["fault"] not in FAULT_NAMES]

    def right(ones: list[dict[str, Any]]) -> int:
        return sum(one[place]["is_right"] for one in ones)

    accused = sum(one[place]["is_accused"] for one in controls)
    return (
        f"{right(faults)} of {len(faults)} faults led to node, core and culprit;"
        f" {right(controls)} of {len(controls)} controls right, {accused} wrong accusations;"
        f" {len(results) - len(counted)} runs did not start"
    )


if __name__ == "__main__":
    sys.exit(main())
