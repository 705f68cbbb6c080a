"""One thread computes without end on one core it is bound to, while other cores have nothing to do.

Signature: a core 100 % in user mode in one thread, the others mostly idle, the thread's affinity
mask is that one core. What is bound to the same core, or wakes up there, waits behind it. Softirqs
still run at each interrupt's exit, so devices rarely notice.
Confirming signal: one thread has the core in user mode, and something waits behind it: a softirq or
its thread on that core; or, if it may run nowhere else, other tasks for a third of the time (CPU
pressure, less what there was before) while the other cores have room. User time alone is what busy
nodes do all day; a worker bound on purpose, with nothing behind it, is not an incident.
Source: ENA Linux best practices, step 4; Documentation/admin-guide/cgroup-v1/cpusets.rst.
"""

from collections.abc import Callable
from typing import Any, Final

from necroscope.analysis.case import Case
from necroscope.analysis.cause import Assessment, Cause
from necroscope.analysis.episodes import SUFFERING, EpisodeKind, touches
from necroscope.analysis.evidence import suffering, what_held_the_core
from necroscope.analysis.report import Evidence, WillNotHelp
from necroscope.analysis.scheduling import FAIRNESS, behind, task_with_policy, unfair_wait, victims
from necroscope.analysis.stacks import TaskShare
from necroscope.analysis.task_origin import origin_of
from necroscope.analysis.thresholds import Threshold, Thresholds
from necroscope.model.definitions import REAL_TIME
from necroscope.model.units import NS_PER_S

LIMITS: Final = FAIRNESS | Thresholds(
    most=Threshold(0.8, "of the core's samples: one program computes there"),
    user=Threshold(0.7, "of the core's time in user mode: it is the program's own work"),
    long_s=Threshold(4.0, "shorter bursts of computing are what cores are for"),
    waited=Threshold(0.3, "of the time another task was runnable and had no core"),
    room=Threshold(0.5, "of the other cores idle: those who wait do not wait for them"),
)


def assess(case: Case) -> Assessment | None:
    user = case.counters.share("user") or 0.0
    hog = next(iter(case.samples.now.tasks()), None)
    if case.core is None or hog is None or not _is_hog(case, hog, user):
        return None
    described = task_with_policy(case, hog)
    is_bound = described is not None and described["cpus_allowed"] == str(case.core)
    waits = [e for e in case.episodes if e.kind in SUFFERING and e.cpu == case.core]
    waited = _waiting_cores(case) if is_bound else 0.0
    starved = behind(case, hog, is_real_time=False)
    is_felt = bool(waits) or bool(starved) or waited >= case.limits.waited
    against, doubt = _against(case, described, hog.tid is not None)
    culprit = case.culprit()
    elsewhere = f"taskset -pc 0-{max(case.node.cpus)} {hog.tid}  # let it run elsewhere"
    return Assessment(
        # Nothing waits: it only takes what others left, and may be meant so.
        explains=hog.share if is_felt else 0.3 * hog.share,
        is_confirmed=hog.tid is not None and is_felt,
        evidence=[*_evidence(case, hog, user, is_bound, waited), *victims(case, starved)],
        against=against,
        doubt=doubt,
        summary=(
            f"{hog.comm} computes on core {case.core} without a pause ({user:.0%} user for"
            f" {case.seconds:.0f} s){_describe_idle_cores(case)}"
        ),
        culprit=culprit,
        origin=origin_of(culprit),
        fix=(elsewhere,) if hog.tid and is_bound else (),
    )


def _is_hog(case: Case, hog: TaskShare, user: float) -> bool:
    limits = case.limits
    return hog.share >= limits.most and user >= limits.user and case.seconds >= limits.long_s


def _evidence(
    case: Case, hog: TaskShare, user: float, is_bound: bool, waited: float
) -> list[Evidence]:
    mode = f"core {case.core} was {user:.0%} in user mode, nearly all of it in {hog.comm}"
    bound = case.evidence(f"{hog.comm} may run only on core {case.core}", "tasks", case.core)
    wait = f"other tasks waited for a core {min(1.0, waited):.0%} of the time"
    return [
        case.evidence(mode, "samples", case.core),
        *what_held_the_core(case)[:1],
        *suffering(case),
        *([bound] if is_bound else []),
        *([case.evidence(wait, "pressure")] if waited >= case.limits.waited else []),
    ]


def _waiting_cores(case: Case) -> float:
    """Cores' worth of time in which tasks were runnable and waited, more than before; 0 where it
    may be for another reason.

    The kernel's pressure is the mean over cores, each weighed by how busy it is
    (kernel/sched/psi.c, collect_percpu_times): times the cores that are busy it is what waits. A
    cgroup without quota left counts as waiting too, however many cores are idle.
    """
    idle = _idle_elsewhere(case)
    is_throttled = any(
        e.kind is EpisodeKind.THROTTLED and touches(e.span, case.window) for e in case.node.episodes
    )
    if idle is None or idle < case.limits.room or is_throttled:
        return 0.0
    rows = case.counters.columns("pressure")
    before = (
        rows.at(rows["resource"] == "cpu").within(case.times.quiet).per_second("some_ns")
        if len(rows)
        else None
    )
    now, usual = (
        _busy_cores(case, case.counters.share),
        _busy_cores(case, case.counters.share_before),
    )
    return max(
        0.0, (case.counters.pressure("cpu") or 0.0) * now - (before or 0.0) / NS_PER_S * usual
    )


def _busy_cores(case: Case, share: Callable[[str, int], float | None]) -> float:
    return sum(1.0 - idle for cpu in case.node.cpus if (idle := share("idle", cpu)) is not None)


def _describe_idle_cores(case: Case) -> str:
    """Other cores that had nothing to do, if they had not."""
    idle = _idle_elsewhere(case)
    return f" while the other cores were {idle:.0%} idle" if idle is not None else ""


def _idle_elsewhere(case: Case) -> float | None:
    others = [
        idle
        for cpu in case.node.cpus
        if cpu != case.core and (idle := case.counters.share("idle", cpu)) is not None
    ]
    return sum(others) / len(others) if others else None


def _against(
    case: Case, described: dict[str, Any] | None, is_one_thread: bool
) -> tuple[list[Evidence], float]:
    if described is not None and described["policy"] in REAL_TIME:
        return [
            case.evidence(
                f"its policy is {described['policy']}, which does not share the core",
                "tasks",
                case.core,
            )
        ], 0.6
    if described is None and unfair_wait(case) is not None:
        text = (
            "what waits behind it waits longer than an equal share allows, and its policy was not"
            " captured"
        )
        return [case.evidence(text, "runqueue", case.core)], 0.6
    if not is_one_thread:
        return [case.evidence("several threads shared the core", "samples", case.core)], 0.3
    return [], 0.0


CAUSE = Cause(
    slug="userspace-hog",
    title="one thread computes without a pause on the one core it is bound to",
    confirming=(
        "one thread keeps the core in user mode, and something waits behind it: a softirq's"
        " thread, or, if it is bound, other tasks (CPU pressure) while other cores have room"
    ),
    would_confirm=(
        "something that waits behind it: the run delay of a thread of that core, or CPU"
        " pressure if it is bound"
    ),
    assess=assess,
    thresholds=LIMITS,
    fix=(
        (
            "fix the loop, or let the thread run on other cores (its cpuset, taskset, the runtime's"
            " CPU pinning)"
        ),
        (
            "if it must be bound: choose a core without network queues (`grep -i tx-rx"
            " /proc/interrupts`)"
        ),
    ),
    verify=("the core's user share falls, or the thread is seen on several cores",),
    will_not_help=(
        WillNotHelp("more cores", "the thread may not use them"),
        WillNotHelp("kernel tuning", "the time is spent in the program itself"),
    ),
)
