"""Does a unit or a container start and die again and again? An unused one that does is easily overlooked for months."""

from typing import Final

from necroscope.analysis.checkup.finding import Finding, Level, NamedRow, Seen, number

QUESTION: Final = "crash-loop"
MANY_RESTARTS: Final = 5
_DEAD_STATES: Final = frozenset({"exited", "dead", "stopped", "created"})


def examine(seen: Seen) -> list[Finding]:
    units = [row for row in seen.newest("units", "unit") if _is_looping_unit(row)]
    containers = [row for row in seen.newest("containers", "container", "name") if _is_looping_container(row)]
    return [_of_unit(row) for row in units] + [_of_container(row) for row in containers]


def _is_looping_unit(row: NamedRow) -> bool:
    gave_up = row["result"] == "start-limit-hit"
    waits = row["sub_state"] == "auto-restart"
    return gave_up or (number(row["restarts"]) >= MANY_RESTARTS and (waits or row["result"] not in (None, "success")))


def _is_looping_container(row: NamedRow) -> bool:
    # One that came to rest after its restarts is no loop.
    ended_well = row["state"] in _DEAD_STATES and row["exit_code"] in (0, None)
    return number(row["restarts"]) >= MANY_RESTARTS and row["state"] != "gone" and not ended_well


def _of_unit(row: NamedRow) -> Finding:
    unit = row["unit"]
    result = f"result {row['result']}, status {row['main_status']}, unit file {row['file_state']}"
    title = f"{unit} crash-loops: {number(row['restarts']):,} restarts, now {row['sub_state']}"
    return Finding(QUESTION, Level.PROBLEM, title, (result,), f"journalctl -u {unit}; unused? systemctl disable --now {unit}")


def _of_container(row: NamedRow) -> Finding:
    name = "/".join(str(part) for part in (row["namespace"], row["pod"], row["name"] or row["container"]) if part)
    facts = f"exit code {row['exit_code']}, image {row['image']}, by {row['runtime']}"
    return Finding(QUESTION, Level.PROBLEM, f"container {name} crash-loops: {number(row['restarts']):,} restarts", (facts,), "")
