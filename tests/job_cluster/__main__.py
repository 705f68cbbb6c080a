"""`python -m tests.job_cluster DIR --faults 6 --controls 5`: runs, one after the other, and a line
of JSON for each; at the end how many were right and how many accused a machine wrongly.
"""

import argparse
import json
import sys
from pathlib import Path

from tests.job_cluster.cluster import Cluster
from tests.job_cluster.torch_runs import CONTROLS, FAULTS, one_run


def main() -> int:
    parser = argparse.ArgumentParser()
    parser.add_argument("directory", type=Path)
    parser.add_argument("--faults", type=int, default=6)
    parser.add_argument("--controls", type=int, default=5)
    parser.add_argument("--first", type=int, default=1, help="number, and seed, of the first run")
    said = parser.parse_args()
    deeds = [FAULTS[number % len(FAULTS)] for number in range(said.faults)]
    deeds += [CONTROLS[number % len(CONTROLS)] for number in range(said.controls)]
    results = []
    with Cluster(said.directory) as cluster:
        for number, deed in enumerate(deeds, said.first):
            try:
                result = one_run(cluster, number, deed)
            except RuntimeError as error:
                result = {
                    "run": number,
                    "fault": deed.__name__,
                    "is_right": None,
                    "why": str(error),
                }
            results.append(result)
            sys.stdout.write(json.dumps(result) + "\n")
            sys.stdout.flush()
    counted = [one for one in results if one["is_right"] is not None]
    faults = [one for one in counted if one["fault"] in ("rt-hog", "neighbours", "quota")]
    controls = [one for one in counted if one not in faults]
    accused = [one for one in controls if one["answer"]["blame"] == "machine"]
    right = sum(one["is_right"] for one in faults)
    sys.stdout.write(
        f"{right} of {len(faults)} faults led to node, core and culprit;"
        f" {sum(one['is_right'] for one in controls)} of {len(controls)} controls right,"
        f" {len(accused)} wrong accusations; {len(results) - len(counted)} runs did not start\n"
    )
    return 0


if __name__ == "__main__":
    sys.exit(main())
