"""Does a unit or a container start and die again and again? An unused one that does is easily
overlooked for months.

The count of restarts is of a container's whole life: one that has been running since is well.
"""

from typing import Final

from necroscope.analysis.checkup.finding import Finding, Level, NamedRow, Seen, number
from necroscope.model.units import NS_PER_S

QUESTION: Final = "crash-loop"
MANY_RESTARTS: Final = 5
# Twice the longest that a kubelet waits before it starts a container anew.
RECENT_NS: Final = 600 * NS_PER_S
_DEAD_STATES: Final = frozenset({"exited", "dead", "stopped", "created"})


def examine(seen: Seen) -> list[Finding]:
    units = [row for row in seen.newest("units", "unit") if _is_looping_unit(row)]
    containers = [
        row
        for row in seen.newest("containers", "container", "name")
        if _is_looping_container(row, seen.now_ns)
    ]
    return [_of_unit(row) for row in units] + [_of_container(row) for row in containers]


def _is_looping_unit(row: NamedRow) -> bool:
    gave_up = row["result"] == "start-limit-hit"
    waits = row["sub_state"] == "auto-restart"
    return gave_up or (
        number(row["restarts"]) >= MANY_RESTARTS
        and (waits or row["result"] not in (None, "success"))
    )


def _is_looping_container(row: NamedRow, now_ns: int) -> bool:
    if number(row["restarts"]) < MANY_RESTARTS or row["state"] == "gone":
        return False
    if row["state"] == "restarting":
        return True
    if row["state"] in _DEAD_STATES and row["exit_code"] is not None:
        return row["exit_code"] != 0
    # It runs, or nobody told how it ended.
    return row["started_ns"] is not None and now_ns - number(row["started_ns"]) <= RECENT_NS


def _of_unit(row: NamedRow) -> Finding:
    unit = row["unit"]
    result = f"result {row['result']}, status {row['main_status']}, unit file {row['file_state']}"
    title = f"{unit} crash-loops: {number(row['restarts']):,} restarts, now {row['sub_state']}"
    return Finding(
        QUESTION,
        Level.PROBLEM,
        title,
        (result,),
        f"journalctl -u {unit}; unused? systemctl disable --now {unit}",
    )


def _of_container(row: NamedRow) -> Finding:
    name = "/".join(
        str(part)
        for part in (row["namespace"], row["pod"], row["name"] or row["container"])
        if part
    )
    facts = f"exit code {row['exit_code']}, image {row['image']}, by {row['runtime']}"
    return Finding(
        QUESTION,
        Level.PROBLEM,
        f"container {name} crash-loops: {number(row['restarts']):,} restarts",
        (facts,),
        "",
    )
