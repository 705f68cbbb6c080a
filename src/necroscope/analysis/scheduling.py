"""How tasks of a core are scheduled: policies that a trigger captured, and waits that equal shares
do not explain.
"""

from typing import Any, Final

from necroscope.analysis.case import Case

REAL_TIME: Final = frozenset({"fifo", "rr", "deadline"})
_USER: Final = 0.6
_UNFAIR: Final = 0.65


def captured(case: Case, comm: str) -> dict[str, Any] | None:
    """The row of `tasks` of a program, one of a real-time policy first; None if no trigger captured
    its policy.
    """
    own = [row for row in case.tasks if row["comm"] == comm and row["policy"] is not None]
    return next((row for row in own if row["policy"] in REAL_TIME), own[0] if own else None)


def outranked(case: Case) -> str | None:
    """In words: a thread of the core waited so much behind user code that it had not an equal
    share; None if not so.
    """
    user = case.counters.share("user") or 0.0
    share = max(
        (case.counters.thread_wait_share(prefix) or 0.0) for prefix in ("napi/", "ksoftirqd/")
    )
    if user < _USER or share < _UNFAIR:
        return None
    return (
        f"a thread of core {case.core} waited {share:.0%} of the time behind code in user mode,"
        " which any tick may interrupt"
    )
