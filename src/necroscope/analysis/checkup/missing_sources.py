"""What could this look not read? A question without its source has no answer, least of all "well".

What only makes an answer finer (softirq delay, stacks, waits, the cgroup ledger) has a fallback and
is not asked for here: a user without rights gets the check-up that their rights allow.
"""

from typing import Final

from necroscope.analysis.checkup.finding import Finding, Level, NodeSnapshot

QUESTION: Final = "not-read"
# The table that answers, and what is unknown without it.
_NEEDED: Final = {
    "cores": "whether a core is held",
    "log": "whether the kernel logged a reset, a lockup or a stall",
    "units": "whether a unit crash-loops",
    "containers": "whether a container crash-loops",
    "cgroups": "how many cgroups are dead",
    "interrupts": "whether interrupts collide on a core",
}


def examine(node: NodeSnapshot) -> list[Finding]:
    causes = {
        str(row["table"]): str(row["cause"])
        for row in node.rows("gaps")
        if row["table"] in _NEEDED and row["cpu"] is None
    }
    causes |= dict.fromkeys(node.silent, "it had not answered when the look was over")
    # A source that failed and came back has rows after all.
    lacking = {table: cause for table, cause in causes.items() if not node.rows(table)}
    return [
        Finding(QUESTION, Level.UNKNOWN, f"cannot say {_NEEDED[table]}", (cause,))
        for table, cause in lacking.items()
    ]
