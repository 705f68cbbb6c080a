"""`python -m tests.job_cluster DIR --kind torch --faults 8 --controls 5`: runs, one after the other,
and a line of JSON for each; at the end how many were right and how many accused a machine wrongly.
While the answers about one run are waited for, the next begins.
"""

import argparse
import json
import random
import signal
import sys
import time
from concurrent.futures import ThreadPoolExecutor
from contextlib import nullcontext
from pathlib import Path
from typing import Any

from tests.job_cluster.cluster import Cluster
from tests.job_cluster.deeds import CONTROLS, FAULTS, Deed
from tests.job_cluster.judging import Truth, judge_answers
from tests.job_cluster.ray_cluster import RayCluster, RayRun
from tests.job_cluster.summary import summary
from tests.job_cluster.torch_runs import TorchRun

from necroscope.lab.ledger import state_directory
from necroscope.lab.safety import alone


def main() -> int:
    said = _arguments()
    # Whoever ends this also ends what it made.
    signal.signal(signal.SIGTERM, lambda *_: sys.exit(1))
    first = said.first
    deeds = [FAULTS[number % len(FAULTS)] for number in range(first, first + said.faults)]
    deeds += [CONTROLS[number % len(CONTROLS)] for number in range(first, first + said.controls)]
    offsets_s = [int(text) for text in said.clocks.split(",")]
    with (
        Cluster(said.directory, offsets_s=offsets_s) as cluster,
        RayCluster(cluster) if said.kind == "ray" else nullcontext() as ray,
        ThreadPoolExecutor(2) as asking,
        # The lab's own lock: two faults at once are neither.
        alone(state_directory(), lambda _: None),
    ):
        asked = []
        until_s = time.monotonic() + said.within
        for number, deed in enumerate(deeds, first):
            if time.monotonic() > until_s:
                break
            run = (RayRun if ray else TorchRun)(cluster, number, random.Random(number))
            truth = _do(run, deed)
            asked.append(asking.submit(_judge, said, run, truth))
        results = [one.result() for one in asked]
    sys.stdout.write("\n".join(summary(results)) + "\n")
    return 0


def _arguments() -> argparse.Namespace:
    parser = argparse.ArgumentParser()
    parser.add_argument("directory", type=Path)
    parser.add_argument("--kind", choices=("torch", "ray"), default="torch")
    parser.add_argument("--faults", type=int, default=8)
    parser.add_argument("--controls", type=int, default=5)
    parser.add_argument("--first", type=int, default=0, help="number, and seed, of the first run")
    parser.add_argument("--within", type=float, default=7200, help="seconds: no run begins later")
    parser.add_argument(
        "--clocks", default="0,0,0", help="seconds by which the clock of each recorder is off"
    )
    return parser.parse_args()


def _do(run: TorchRun, deed: Deed) -> Truth | str:
    """A text says why there is no truth."""
    try:
        return deed(run)
    except RuntimeError as error:
        return str(error)
    finally:
        run.close()


def _judge(said: argparse.Namespace, run: TorchRun, truth: Truth | str) -> dict[str, Any]:
    result: dict[str, Any] = {"run": run.number, "kind": said.kind, "clocks": said.clocks}
    if isinstance(truth, str):
        result["wrong"] = truth
    else:
        result |= {"job": run.job, "fault": truth.name, "is_fault": truth.is_fault}
        result |= {"victim": run.node.name, "victim_core": run.core}
        result |= judge_answers(run.cluster, run.job, truth, run.died_s or 0.0)
    sys.stdout.write(json.dumps(result) + "\n")
    sys.stdout.flush()
    return result


if __name__ == "__main__":
    sys.exit(main())
