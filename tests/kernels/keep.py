"""Keeps one incident of a guest's recording as test data: its window as an excerpt, with its truth
beside it.

`python -m tests.kernels.keep RUN STEP NUMBER NAME`, for example `6.1-reset reset 1
6.1-driver-reset`.
"""

import json
import sys

from tests.kernels.image import ROOT
from tests.kernels.sets import starving

from necroscope.store.excerpt import write_excerpt
from necroscope.store.query import Store

GUESTS = ROOT / "tests/data/guests"
# What the guest was booted for is nobody's business who reads the recording.
_RENAMES = {"job.service": "launch.service"}


def keep(run: str, step: str, number: int, name: str) -> None:
    place = ROOT / "build/kernels/runs" / run
    truth = json.loads((place / step / "truth.json").read_text())
    found = truth["runs"][number - 1]
    write_excerpt(
        Store.open(place / step / "recording"), found["from"], found["to"], GUESTS / name, _RENAMES
    )
    cause = (
        {"reset": "irq-core-collision", "blackout": "softirq-blackout"}[step]
        if found["timeouts"]
        else "unknown"
    )
    told = {
        "release": json.loads((place / "results.json").read_text())["release"],
        "resets": found["timeouts"],
        "agent_s": found["agent_s"],
        "verdict": {
            "core": starving.CORE,
            "cause": cause,
            "culprit": starving.AGENT,
            "unit": f"{starving.AGENT}.service",
        },
    }
    (GUESTS / name / "truth.json").write_text(json.dumps(told, indent=1) + "\n")


if __name__ == "__main__":
    keep(sys.argv[1], sys.argv[2], int(sys.argv[3]), sys.argv[4])
