"""Do all queues of a network device interrupt the same core? Then whatever holds that core stops
the whole device.
"""

from collections import defaultdict
from typing import Final

from necroscope.analysis.checkup.finding import Finding, Level, NodeSnapshot

QUESTION: Final = "irq-collision"
FEW_QUEUES: Final = 2


def examine(node: NodeSnapshot) -> list[Finding]:
    cores_of: dict[str, dict[str, str]] = defaultdict(dict)
    for row in node.newest("interrupts", "irq", "cpu"):
        if row["device"] is not None and row["queue"] is not None and row["affinity"] is not None:
            cores_of[str(row["device"])][str(row["irq"])] = str(row["affinity"])
    cores = len(node.newest("cores", "cpu"))
    return [
        _finding(device, queues)
        for device, queues in cores_of.items()
        if cores > 1 and _collide(queues)
    ]


def _collide(queues: dict[str, str]) -> bool:
    """All on the same single core: a list such as `0-3` leaves the choice to the interrupt
    controller.
    """
    affinities = set(queues.values())
    return len(queues) >= FEW_QUEUES and len(affinities) == 1 and affinities.pop().isdecimal()


def _finding(device: str, queues: dict[str, str]) -> Finding:
    core = next(iter(queues.values()))
    title = f"{device}: all {len(queues)} queues interrupt core {core}"
    hint = "run irqbalance, or spread them: /proc/irq/N/smp_affinity_list"
    return Finding(
        QUESTION,
        Level.NOTICE,
        title,
        ("a kernel section that holds this core stops the whole device",),
        hint,
    )
