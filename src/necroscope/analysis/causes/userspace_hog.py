"""One thread computes without end on one core it is bound to, while other cores have nothing to do.

Signature: a core 100 % in user mode in one thread, the others mostly idle, the thread's affinity mask is that one core. What is
bound to the same core, or wakes up there, waits behind it. Softirqs still run at each interrupt's exit, so devices rarely notice.
Confirming signal: one thread has the core in user mode, and either something waits behind it or it may run nowhere else.
User time alone is what busy nodes do all day: a thread that merely happens to stay on its core is no incident.
Source: ENA Linux best practices, step 4; Documentation/admin-guide/cgroup-v1/cpusets.rst.
"""

from typing import Any, Final

from necroscope.analysis.case import Case
from necroscope.analysis.cause import Assessment, Cause
from necroscope.analysis.episodes import SUFFERING
from necroscope.analysis.evidence_texts import suffering, what_held_the_core
from necroscope.analysis.report import Evidence, WillNotHelp
from necroscope.analysis.scheduling import REAL_TIME, captured, outranked
from necroscope.analysis.task_origin import origin_of

_MOST: Final = 0.8
_USER: Final = 0.7
_LONG_S: Final = 4.0


def assess(case: Case) -> Assessment | None:
    user = case.share("user")
    tasks = case.now.tasks()
    if case.core is None or not tasks or tasks[0].share < _MOST or (user or 0.0) < _USER or case.seconds < _LONG_S:
        return None
    comm, share = tasks[0].comm, tasks[0].share
    described = captured(case, comm)
    is_bound = described is not None and described["cpus_allowed"] == str(case.core)
    is_one_thread = tasks[0].tid is not None
    waits = [e for e in case.episodes if e.kind in SUFFERING and e.cpu == case.core]
    evidence = [
        case.seen(f"core {case.core} was {user:.0%} in user mode, nearly all of it in {comm}", "samples", case.core),
        *what_held_the_core(case)[:1],
        *suffering(case),
    ]
    if is_bound:
        evidence.append(case.seen(f"{comm} may run on core {case.core} only", "tasks", case.core))
    against, doubt = _against(case, described, is_one_thread)
    culprit = case.culprit()
    return Assessment(
        # Nothing waits: it only takes what others left, and may be meant so.
        explains=share if waits else (0.45 if is_bound else 0.3) * share,
        is_confirmed=is_one_thread and (bool(waits) or is_bound),
        evidence=evidence,
        against=against,
        doubt=doubt,
        would_confirm="its affinity (taskset -p PID) is this one core, or something waits behind it",
        summary=f"{comm} computes on core {case.core} without end ({user:.0%} user for {case.seconds:.0f} s){_beside(case)}",
        culprit=culprit,
        origin=origin_of(culprit),
        fix=(f"taskset -pc 0-{max(case.node.cpus)} {tasks[0].tid}  # let it run elsewhere",) if tasks[0].tid and is_bound else (),
    )


def _beside(case: Case) -> str:
    """Other cores that had nothing to do, if they had not."""
    others = [idle for cpu in case.node.cpus if cpu != case.core and (idle := case.share("idle", cpu)) is not None]
    return f" while the other cores were {sum(others) / len(others):.0%} idle" if others else ""


def _against(case: Case, described: dict[str, Any] | None, is_one_thread: bool) -> tuple[list[Evidence], float]:
    if described is not None and described["policy"] in REAL_TIME:
        return [case.seen(f"its policy is {described['policy']}: it does not share the core by class", "tasks", case.core)], 0.6
    if described is None and outranked(case) is not None:
        text = "what waits behind it waits longer than an equal share allows, and its policy was not captured"
        return [case.seen(text, "runqueue", case.core)], 0.6
    if not is_one_thread:
        return [case.seen("several threads shared the core", "samples", case.core)], 0.3
    return [], 0.0


CAUSE = Cause(
    slug="userspace-hog",
    title="one thread computes without end on the one core it is bound to",
    confirming="one thread has the core in user mode, and it is bound to it or something waits behind it",
    assess=assess,
    fix=(
        "fix the loop, or let the thread run on other cores (its cpuset, taskset, the runtime's CPU pinning)",
        "if it must be bound: choose a core without network queues (`grep -i tx-rx /proc/interrupts`)",
    ),
    verify=("the core's user share falls, or the thread is seen on several cores",),
    will_not_help=(
        WillNotHelp("more cores", "the thread may not use them"),
        WillNotHelp("kernel tuning", "the time is spent in the program itself"),
    ),
)
