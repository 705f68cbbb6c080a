"""How tasks of a core are scheduled: policies that a trigger captured, and waits that equal shares
do not explain.
"""

from collections.abc import Sequence
from typing import Any, Final

from necroscope.analysis.case import Case
from necroscope.analysis.report import Evidence
from necroscope.analysis.stacks import TaskShare
from necroscope.analysis.task_waits import TaskWait
from necroscope.analysis.thresholds import Threshold, Thresholds
from necroscope.model.definitions import REAL_TIME

# Of every cause that asks who waited behind a task.
FAIRNESS: Final = Thresholds(
    behind_user=Threshold(0.6, "of the core in user mode, which any tick may interrupt"),
    unfair=Threshold(0.65, "of the time a thread waited: of two equals each waits half of it"),
    behind_s=Threshold(0.2, "one wait for the core: equals take turns every few milliseconds"),
)
_NAMED: Final = 3


def task_with_policy(case: Case, hog: TaskShare) -> dict[str, Any] | None:
    """The row of `tasks` of a program, one of a real-time policy first; None if no trigger captured
    its policy. Another process may bear the same name: that one's policy is not this one's.
    """
    own = [
        row
        for row in case.tasks
        if row["comm"] == hog.comm and row["policy"] is not None and _is_same(row["pid"], hog)
    ]
    return next((row for row in own if row["policy"] in REAL_TIME), own[0] if own else None)


def _is_same(pid: int | None, hog: TaskShare) -> bool:
    return pid is None or hog.pid is None or pid == hog.pid


def waits_for_the_core(case: Case, at_least_s: float) -> list[TaskWait]:
    """Of ordinary tasks, longest first."""
    found = [
        wait
        for wait in case.waits
        if wait.is_for_a_core
        and wait.cpu == case.core
        and wait.is_ordinary
        and wait.seconds >= at_least_s
    ]
    return sorted(found, key=lambda wait: -wait.seconds)


def behind(case: Case, hog: TaskShare, *, is_real_time: bool) -> list[TaskWait]:
    """Ordinary tasks that waited for the core while this program had it, longest first."""
    return [
        wait
        for wait in waits_for_the_core(case, case.limits.behind_s)
        if wait.by is not None
        and wait.by.comm == hog.comm
        and _is_same(wait.by.pid, hog)
        and wait.by.pid != wait.task.pid
        and (wait.by.policy in REAL_TIME) == is_real_time
    ]


def victims(case: Case, waits: Sequence[TaskWait]) -> list[Evidence]:
    """In words who waited: how long in all, and the longest wait of each."""
    if not waits:
        return []
    tasks = {wait.task.tid: wait for wait in reversed(waits)}
    total_s = sum(wait.seconds for wait in waits)
    named = ", ".join(wait.words() for wait in list(reversed(tasks.values()))[:_NAMED])
    many = "an ordinary task" if len(tasks) == 1 else f"{len(tasks)} ordinary tasks"
    text = f"{many} waited {total_s:.1f} s in all behind it: {named}"
    return [case.evidence(text, "waits", case.core)]


def unfair_wait(case: Case) -> str | None:
    """In words: a thread of the core waited this much behind user code that it had not an equal
    share; None if not so.
    """
    user = case.counters.share("user") or 0.0
    share = max(
        (case.counters.thread_wait_share(prefix) or 0.0) for prefix in ("napi/", "ksoftirqd/")
    )
    if user < case.limits.behind_user or share < case.limits.unfair:
        return None
    return (
        f"a thread of core {case.core} waited {share:.0%} of the time behind code in user mode,"
        " which any tick may interrupt"
    )
