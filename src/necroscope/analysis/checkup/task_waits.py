"""Does an ordinary task want a core and have none, or wait for a lock of the kernel, right now?"""

from typing import Final

from necroscope.analysis.checkup.finding import Finding, Level, NamedRow, NodeSnapshot, number
from necroscope.analysis.wait_channels import is_kernel_lock
from necroscope.model.definitions import ORDINARY, REAL_TIME, STARVED_NS
from necroscope.model.units import format_duration

QUESTION: Final = "task-waits"
_MOST: Final = 4


def examine(node: NodeSnapshot) -> list[Finding]:
    """The longest wait for each core, and for locks."""
    found: dict[object, NamedRow] = {}
    for row in sorted(node.rows("waits"), key=lambda row: number(row["waited_ns"])):
        is_ordinary = row["policy"] in ORDINARY and number(row["priority"]) <= 0
        if number(row["waited_ns"]) < STARVED_NS or not is_ordinary:
            continue
        if row["kind"] == "runnable":
            found[row["cpu"]] = row
        elif is_kernel_lock(tuple(str(row["by_stack"]).split(";"))):
            found["lock"] = row
    return [_finding(row, node.closer_look("2m")) for row in list(found.values())[-_MOST:]]


def _finding(row: NamedRow, closer_look: str) -> Finding:
    waited = format_duration(number(row["waited_ns"]))
    goes_on = ", and still waits" if row["is_open"] else ""
    who = f"{row['comm']} (pid {row['pid']}) waited {waited}"
    if row["kind"] != "runnable":
        title = f"{who} for a lock of the kernel{goes_on}"
        facts = (f"it slept in {str(row['stack']).replace(';', ' < ')}",)
        return Finding(QUESTION, Level.NOTICE, title, facts, closer_look)
    title = f"core {row['cpu']}: {who} for the core{goes_on}"
    if row["by_comm"] is None:
        return Finding(QUESTION, Level.NOTICE, title, (), closer_look)
    ran = format_duration(number(row["by_ran_ns"]))
    by = f"{row['by_comm']} (pid {row['by_pid']}, {row['by_policy']}) had it for {ran}"
    if row["by_policy"] not in REAL_TIME:
        return Finding(QUESTION, Level.NOTICE, title, (by,), closer_look)
    hint = f"give it an ordinary priority: chrt --other -p 0 {row['by_tid']}"
    return Finding(QUESTION, Level.PROBLEM, title, (by,), hint)
