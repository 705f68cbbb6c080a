"""`python -m tests.job_cluster.summary FILE...`: what the lines of several batches of runs come to,
by kind of job and of fault, with Wilson's intervals.
"""

import json
import sys
from collections.abc import Iterable, Sequence
from pathlib import Path
from typing import Any

from necroscope.analysis.interval import wilson

PLACES = ("recordings", "lake")


def summary(results: Sequence[dict[str, Any]]) -> Iterable[str]:
    counted = [one for one in results if "is_fault" in one]
    yield f"{len(counted)} runs, {len(results) - len(counted)} more did not start"
    for place in PLACES:
        faults = [one for one in counted if one["is_fault"]]
        controls = [one for one in counted if not one["is_fault"]]
        accused = [one for one in controls if one[place]["is_accused"]]
        yield f"{place}: faults {_rate(faults, place)}; controls {_rate(controls, place)}"
        yield f"{place}: wrong accusations in controls: {len(accused)}"
        after_s = sorted(one[place]["after_s"] for one in counted)
        if after_s:
            median_s = after_s[len(after_s) // 2]
            yield f"{place}: answered after {median_s} s (median), {after_s[-1]} s at most"
    for name in sorted({(one["kind"], one["fault"]) for one in counted}):
        own = [one for one in counted if (one["kind"], one["fault"]) == name]
        text = "; ".join(f"{place} {_rate(own, place)}" for place in PLACES)
        yield f"{' '.join(name)}: {text}"


def _rate(runs: Sequence[dict[str, Any]], place: str) -> str:
    if not runs:
        return "none"
    right = sum(one[place]["is_right"] for one in runs)
    low, high = wilson(right, len(runs))
    return f"{right} of {len(runs)} right ({low:.0%} to {high:.0%})"


def read_results(paths: Iterable[Path]) -> list[dict[str, Any]]:
    lines = [line for path in paths for line in path.read_text().splitlines()]
    return [json.loads(line) for line in lines if line.startswith("{")]


if __name__ == "__main__":
    sys.stdout.write("\n".join(summary(read_results(map(Path, sys.argv[1:])))) + "\n")
