"""Is a core held by the kernel, or stolen, right now? User time alone is what busy nodes do all
day: it is not a finding.

A second of it is nothing special on many nodes: it is reported, and a problem only where several
were looked at and all were so.
"""

from collections import Counter
from typing import Final

from necroscope.analysis.checkup.finding import Finding, Level, NamedRow, NodeSnapshot, number
from necroscope.model.definitions import SATURATED_RATIO

QUESTION: Final = "saturated-core"
SECONDS: Final = 3
_MODES: Final = ("system", "irq", "softirq", "steal")


def examine(node: NodeSnapshot) -> list[Finding]:
    by_core: dict[int, list[NamedRow]] = {}
    for row in node.rows("cores"):
        by_core.setdefault(number(row["cpu"]), []).append(row)
    if not by_core:
        return [
            Finding(
                QUESTION,
                Level.UNKNOWN,
                "how the cores spend their time could not be read",
                (),
                "is /proc mounted?",
            )
        ]
    return [
        _finding(rows, node)
        for rows in by_core.values()
        if all(_held_share(row) >= SATURATED_RATIO for row in rows)
    ]


def _held_share(row: NamedRow) -> float:
    return sum(number(row[f"{mode}_ns"]) for mode in _MODES) / max(number(row["elapsed_ns"]), 1)


def _finding(rows: list[NamedRow], node: NodeSnapshot) -> Finding:
    cpu = number(rows[0]["cpu"])
    mode = max(_MODES, key=lambda mode: sum(number(row[f"{mode}_ns"]) for row in rows))
    share = sum(_held_share(row) for row in rows) / len(rows)
    length = "the last second" if len(rows) == 1 else f"the last {len(rows)} seconds"
    title = f"core {cpu} is held: {share:.0%} of {length} outside user mode, most of it {mode}"
    level = Level.PROBLEM if len(rows) >= SECONDS else Level.NOTICE
    return Finding(
        QUESTION, level, title, tuple(_name_busiest_task(cpu, node)), node.closer_look("2m")
    )


def _name_busiest_task(cpu: int, node: NodeSnapshot) -> list[str]:
    """The task with the most samples on it, and the function it was most often in."""
    samples = [sample for sample in node.samples() if sample.cpu == cpu]
    if not samples:
        return []
    (comm, pid), times = Counter((sample.comm, sample.pid) for sample in samples).most_common(1)[0]
    functions = Counter(
        s.kernel_function for s in samples if s.pid == pid and s.kernel_function is not None
    )
    where = f", most often in {functions.most_common(1)[0][0]}" if functions else ""
    return [f"{comm} (pid {pid}) had {times} of {len(samples)} samples{where}"]
