"""Does the kernel hold far more memory cgroups than there are directories? A leak; a danger only
where something walks them.

So the count is only a notice: a walk that is expensive here, which `check --probe` times, is the
problem.
"""

from typing import Final

from necroscope.analysis.checkup.finding import Finding, Level, NamedRow, NodeSnapshot, number
from necroscope.model.definitions import LEAKED_DEAD_CGROUPS, LEAKED_TIMES_THE_LIVING

QUESTION: Final = "zombie-cgroups"
_CONTROLLERS: Final = ("memory", "unified")


def examine(node: NodeSnapshot) -> list[Finding]:
    row = _root(node)
    if row is None:
        return [
            Finding(
                QUESTION,
                Level.UNKNOWN,
                "dead cgroups could not be counted",
                (),
                "see the notices below",
            )
        ]
    dead, live = _count_dead(row) or 0, number(row["visible"])
    is_leak = dead >= LEAKED_DEAD_CGROUPS and dead >= LEAKED_TIMES_THE_LIVING * live
    return [_finding(dead, live, node.closer_look("10m"))] if is_leak else []


def held(node: NodeSnapshot) -> int | None:
    """Memory cgroups that the kernel holds, dead and alive; None if they could not be counted."""
    row = _root(node)
    return None if row is None else (_count_dead(row) or 0) + number(row["visible"])


def _root(node: NodeSnapshot) -> NamedRow | None:
    """The row of the whole hierarchy, if it counts dead cgroups."""
    roots = {str(row["controller"]): row for row in node.rows("cgroups") if row["path"] == "/"}
    return next(
        (
            roots[name]
            for name in _CONTROLLERS
            if name in roots and _count_dead(roots[name]) is not None
        ),
        None,
    )


def _count_dead(row: NamedRow) -> int | None:
    if isinstance(row["dying"], int):
        return row["dying"]
    tracked, visible = row["tracked"], row["visible"]
    return tracked - visible if isinstance(tracked, int) and isinstance(visible, int) else None


def _finding(dead: int, live: int, closer_look: str) -> Finding:
    walkers = (
        "reclaim, force_empty, and on kernels before 5.8 every read of a root memory statistic"
    )
    facts = (
        (
            "on its own this costs memory but no time; it starves a core when something walks"
            f" them all: {walkers}"
        ),
    )
    hint = f"to see who leaks them, {closer_look}; what a walk costs: necroscope check --probe"
    return Finding(
        QUESTION,
        Level.NOTICE,
        f"{dead:,} dead memory cgroups are held, {live:,} are alive",
        facts,
        hint,
    )
