"""The tables of docs/kernels.md, from what the guests answered and which checks held: `python -m tests.kernels.table`."""

# ruff: noqa: T201 - it prints a table

import json
import sys
from pathlib import Path

from tests.kernels.image import ROOT
from tests.kernels.kernels import KERNELS


def features(runs: Path) -> str:
    answers = {}
    for kernel in KERNELS:
        file = runs / f"{kernel.name}-v2/features/features.json"
        if file.exists():
            answers[kernel.name] = json.loads(file.read_text())
    names = list(dict.fromkeys(name for told in answers.values() for name in told["features"]))
    rows = [["feature", *(told["release"] for told in answers.values())]]
    rows += [[name, *("●" if told["features"].get(name) else "○" for told in answers.values())] for name in names]
    return _table(rows)


def checks(runs: Path) -> str:
    held: dict[str, dict[str, str]] = {}
    for kernel in KERNELS:
        for file in sorted(runs.glob(f"{kernel.name}-*/checks.json")):
            for result in json.loads(file.read_text()):
                if result["kernel"] == kernel.name:
                    held.setdefault(result["check"], {})[kernel.name] = "holds" if result["holds"] else "fails"
    names = [kernel.name for kernel in KERNELS if any(kernel.name in found for found in held.values())]
    return _table([["check", *names], *([check, *(found.get(name, "-") for name in names)] for check, found in held.items())])


def _table(rows: list[list[str]]) -> str:
    return "\n".join(f"| {' | '.join(row)} |" for row in [rows[0], ["---"] * len(rows[0]), *rows[1:]])


if __name__ == "__main__":
    place = Path(sys.argv[1]) if sys.argv[1:] else ROOT / "build/kernels/runs"
    print(features(place), checks(place), sep="\n\n")
