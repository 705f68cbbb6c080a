"""Incidents of the lab on another kernel: its functions have other names, and the verdict must be
the same.

Those that need no more than the kernel; most have a function for a signature. An emulated processor
may be too slow for one to reach its impact: then the lab says so, there is no label, and nothing is
judged.
"""

import json
import subprocess
import sys
from collections.abc import Sequence
from pathlib import Path

from tests.kernels.recorder import COMMAND
from tests.kernels.sets.looking import check, say

CORE = 1
NAMES = (
    "dentry-walk",
    "mountinfo-reparse",
    "page-fault-storm",
    "path-lookup-contention",
    "proc-net-scan",
    "rt-hog",
    "tlb-shootdown",
    "userspace-hog",
)
_LEAST = 3
_WORDS = ("--seconds", "12", "--baseline", "8", "--seed", "1", "--core", str(CORE))


def inside(out: Path, names: Sequence[str] = NAMES) -> None:
    for name in names:
        command = [*COMMAND, "lab", "run", name, "--dir", str(out / name), *_WORDS]
        done = subprocess.run(
            command, stdout=subprocess.PIPE, stderr=subprocess.STDOUT, text=True, check=False
        )
        (out / f"{name}.said").write_text(done.stdout)
        say(f"{name}: exit code {done.returncode}: {done.stdout.strip().splitlines()[-1:]}")


def verify(out: Path) -> str:
    from necroscope.analysis.engine import diagnose
    from necroscope.store.query import Store

    right, wrong = [], []
    for name in NAMES:
        label = out / name / "label.json"
        if not label.exists():
            continue
        truth = json.loads(label.read_text())
        found = [
            (one.verdict.cause, one.core) for one in diagnose(Store.open(label.parent)).incidents
        ]
        (right if (truth["cause"], truth["core"]) in found else wrong).append(f"{name}: {found}")
    check(not wrong, f"the verdict is the lab's; not so: {wrong}")
    result = [one.partition(":")[0] for one in right]
    check(len(result) >= _LEAST, f"enough could be provoked: {result}")
    return f"{', '.join(result)}; too slow here: {', '.join(set(NAMES) - set(result)) or 'none'}"


if __name__ == "__main__":
    inside(Path(sys.argv[1]), sys.argv[2:] or NAMES)
