"""`label.json`: the truth about a recording of the lab, in the shape that `lab run --json`
promises.
"""

import json
import platform
from pathlib import Path
from typing import Any, Final

from necroscope.errors import CorruptData, RecordingError
from necroscope.lab.measured import Window
from necroscope.lab.scenario import Scenario, Truth
from necroscope.model.units import format_moment

LABEL_FILE: Final = "label.json"
_KEYS: Final = ("scenario", "core", "mode", "cause", "culprit", "origin", "impact", "from", "to")


def label_of(
    scenario: Scenario, truth: Truth, incident: Window, seed: int, emulated: list[str]
) -> dict[str, Any]:
    """`also`: names that are as right; `tolerates`: causes that are not false namings; `emulated`:
    what the kernel did not do.
    """
    culprit, origin = truth.culprit, truth.origin
    return {
        "scenario": scenario.name,
        "core": truth.core,
        "mode": truth.mode,
        "cause": scenario.cause,
        "culprit": culprit
        and {
            "comm": culprit.comm,
            "pid": culprit.pid,
            "cgroup": culprit.cgroup,
            "also": list(culprit.also),
        },
        "origin": origin and {"kind": origin.kind, "name": origin.name, "also": list(origin.also)},
        "impact": truth.impact,
        "from": format_moment(incident[0]),
        "to": format_moment(incident[1]),
        "seed": seed,
        "twin": scenario.twin,
        "tolerates": list(scenario.tolerates),
        "emulated": emulated,
        "kernel": platform.release(),
        "population": list(truth.population),
        "handlers": list(truth.handlers),
    }


def read_label(directory: Path) -> dict[str, Any]:
    try:
        label: Any = json.loads((directory / LABEL_FILE).read_text("utf-8"))
    except OSError:
        raise RecordingError(
            f"{directory} has no {LABEL_FILE}", "only `necroscope lab run` writes one"
        ) from None
    except ValueError:
        raise CorruptData(f"{directory / LABEL_FILE} is not valid JSON") from None
    if not isinstance(label, dict) or any(key not in label for key in _KEYS):
        raise CorruptData(f"{directory / LABEL_FILE} lacks what every label has")
    found: dict[str, Any] = label
    return found
