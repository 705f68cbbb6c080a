"""Keeps one incident of a guest's recording as test data: its window as an excerpt, with its truth
beside it.

`python -m tests.kernels.keep RUN STEP WHICH NAME`, for example `6.1-reset reset 1 6.1-driver-reset`
for the first of a step's runs, `5.10-story story 1 5.10-story` for a death of the story's job, or `6.1-arm64-incidents incidents dentry-walk 6.1-arm64-dentry-walk`
for an incident of the lab.
"""

import json
import sys
from datetime import datetime
from pathlib import Path
from typing import Any

from tests.kernels.image import ROOT
from tests.kernels.sets import starving, story

from necroscope.store.excerpt import write_excerpt
from necroscope.store.query import Store

GUESTS = ROOT / "tests/data/guests"
# What the guest was booted for is nobody's business who reads the recording.
_RENAMES = {"job.service": "launch.service"}
# The lab's window is that of the incident alone; the verdict also compares with the time before.
_BEFORE_NS, _AFTER_NS = 10_000_000_000, 2_000_000_000


def keep(run: str, step: str, which: str, name: str) -> None:
    place = ROOT / "build/kernels/runs" / run
    if step == "incidents":
        found = _keep_lab(place / step / which, name)
    elif step == "story":
        found = _keep_story(place / step, int(which), name)
    else:
        found = _keep_reset(place, step, int(which), name)
    release = json.loads((place / "results.json").read_text())["release"]
    (GUESTS / name / "truth.json").write_text(
        json.dumps({"release": release, **found}, indent=1) + "\n"
    )


def _keep_reset(place: Path, step: str, number: int, name: str) -> dict[str, Any]:
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
    return {
        "resets": found["timeouts"],
        "agent_s": found["agent_s"],
        "verdict": {
            "core": starving.CORE,
            "cause": cause,
            "culprit": starving.AGENT,
            "unit": f"{starving.AGENT}.service",
        },
    }


def _keep_story(place: Path, number: int, name: str) -> dict[str, Any]:
    truth = json.loads((place / "truth.json").read_text())
    found = truth["runs"][number - 1]
    write_excerpt(
        Store.open(place / "recording"), found["from"], found["to"], GUESTS / name, _RENAMES
    )
    return {
        "resets": found["timeouts"],
        "zombies": truth["zombies"],
        "verdict": {
            "core": story.CORE,
            "cause": story.CAUSE,
            "culprit": story.READER,
            "unit": f"{story.READER}.service",
            "origin": f"{story.AGENT}.service",
        },
    }


def _keep_lab(recording: Path, name: str) -> dict[str, Any]:
    label = json.loads((recording / "label.json").read_text())
    start_ns, end_ns = (
        int(datetime.fromisoformat(label[end]).timestamp() * 1000) * 1_000_000
        for end in ("from", "to")
    )
    write_excerpt(
        Store.open(recording), start_ns - _BEFORE_NS, end_ns + _AFTER_NS, GUESTS / name, _RENAMES
    )
    return {
        "resets": 0,
        "verdict": {
            "core": label["core"],
            "cause": label["cause"],
            "culprit": label["culprit"]["comm"],
        },
    }


if __name__ == "__main__":
    keep(*sys.argv[1:5])
