"""Does a raised softirq wait for its handler: is a core blind to its network card right now?"""

from typing import Final

from necroscope.analysis.checkup.finding import Finding, Level, NamedRow, NodeSnapshot, number
from necroscope.model.definitions import STALL_NS
from necroscope.model.units import format_duration

QUESTION: Final = "softirq-stall"


def examine(node: NodeSnapshot) -> list[Finding]:
    stalled = [row for row in node.rows("softirq_delay") if _waited_ns(row) >= STALL_NS]
    worst = {number(row["cpu"]): row for row in sorted(stalled, key=_waited_ns)}
    return [_finding(cpu, row, node.closer_look("2m")) for cpu, row in sorted(worst.items())]


def _waited_ns(row: NamedRow) -> int:
    return max(number(row["worst_ns"]), number(row["pending_ns"]))


def _finding(cpu: int, row: NamedRow, look: str) -> Finding:
    title = (
        f"core {cpu}: a {row['vector']} softirq waited {format_duration(_waited_ns(row))} for its"
        " handler"
    )
    hint = f"a network driver's poll misses its deadline after 5 s of this; {look}"
    return Finding(QUESTION, Level.PROBLEM, title, (), hint)
