"""Ends of jobs that can succeed or fail: runs of systemd's services, and of a job under `necroscope
stakeout`.
"""

import json
from collections.abc import Iterator
from pathlib import Path
from typing import Any, Final

from necroscope.errors import UsageError
from necroscope.model.names import clean
from necroscope.model.units import NS_PER_S, parse_moment_ns
from necroscope.segment.reader import SegmentReader

_COLUMNS: Final = (
    "time",
    "unit",
    "active_state",
    "result",
    "main_code",
    "main_status",
    "started_ns",
    "changed_ns",
)
_ENDED: Final = frozenset({"inactive", "failed"})
# Units are looked at every ten seconds: an end just before a segment may be seen in it only.
_BEFORE_NS: Final = 60 * NS_PER_S
# waitid(2): the main process ended by itself.
_EXITED: Final = 1
_STAKEOUT_FILE: Final = "stakeout.json"
_LARGEST_BYTES: Final = 16 << 20


def unit_ends(reader: SegmentReader) -> Iterator[dict[str, Any]]:
    """Services that ended while the segment was recorded, each once; those that were ended before
    were reported before.
    """
    since_ns = reader.span[0] - _BEFORE_NS
    reported = set()
    for row in reader.read("units", -(1 << 63), (1 << 63) - 1, _COLUMNS).to_pylist():
        ended_ns = row["changed_ns"]
        is_end = (
            row["active_state"] in _ENDED and row["started_ns"] is not None and ended_ns is not None
        )
        if (
            not is_end
            or ended_ns < since_ns
            or not row["unit"].endswith(".service")
            or (row["unit"], ended_ns) in reported
        ):
            continue
        reported.add((row["unit"], ended_ns))
        is_well = row["active_state"] != "failed" and row["result"] in (None, "success")
        outcome = "success" if is_well else "failure"
        yield {
            "time": ended_ns,
            "kind": "unit",
            "name": row["unit"],
            "outcome": outcome,
            "detail": _detail(row),
        }


def stakeout_ends(recording: Path, after_run: int) -> list[tuple[int, dict[str, Any]]]:
    """Runs with a larger number, as the summary next to the recording lists them; one that was
    stopped has no outcome.
    """
    try:
        with (recording.parent / _STAKEOUT_FILE).open("rb") as file:
            summary = json.loads(file.read(_LARGEST_BYTES))
        name = clean(str(summary["command"][0]))
        found = [
            (int(run["run"]), _run(name, run))
            for run in summary["runs"]
            if run["outcome"] in ("succeeded", "failed")
        ]
    except (OSError, ValueError, KeyError, TypeError, IndexError, UsageError):
        return []
    return [(number, row) for number, row in found if number > after_run]


def _run(name: str, run: dict[str, Any]) -> dict[str, Any]:
    outcome = "success" if run["outcome"] == "succeeded" else "failure"
    detail = f"run {int(run['run'])}, exit code {int(run['exit_code'])}"
    return {
        "time": parse_moment_ns(str(run["to"]), 0),
        "kind": "stakeout",
        "name": name,
        "outcome": outcome,
        "detail": detail,
    }


def _detail(row: dict[str, Any]) -> str | None:
    if row["result"] in (None, "success"):
        return None
    how = "status" if row["main_code"] == _EXITED else "signal"
    return (
        f"{row['result']}, {how} {row['main_status']}"
        if row["main_status"] is not None
        else str(row["result"])
    )
