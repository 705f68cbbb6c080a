"""A real-time task does not give up its core, and ordinary threads of that core starve.

Signature: one task of class FIFO, RR or deadline, or several in turn, have nearly all samples of a
core; ordinary threads
that must run there (threaded NAPI, ksoftirqd, kworkers), and ordinary programs bound to it or woken
there, are runnable and get no time; once a boot the log says `sched: RT throttling activated`.
Confirming signal: something waits behind the task, and its policy was captured and is a real-time
one, or the log tells that real-time tasks were throttled meanwhile. A long wait alone does not
tell: a nice value or a weight of cgroups does that too.
Without a wait it is a spinner that hurts nothing: softirqs still run at each interrupt's exit.
Source: Documentation/scheduler/sched-rt-group.rst; openshift performance-addon-operators #481;
corosync #520.
"""

from collections.abc import Sequence
from typing import Final

from necroscope.analysis.attribution import culprit_from
from necroscope.analysis.case import Case
from necroscope.analysis.cause import Assessment, Cause
from necroscope.analysis.episodes import SUFFERING
from necroscope.analysis.evidence import of_event, suffering, what_held_the_core
from necroscope.analysis.report import WillNotHelp
from necroscope.analysis.scheduling import FAIRNESS, behind, task_with_policy, unfair_wait, victims
from necroscope.analysis.stacks import TaskShare
from necroscope.analysis.task_origin import origin_of
from necroscope.analysis.task_waits import TaskWait
from necroscope.analysis.thresholds import Threshold, Thresholds
from necroscope.model.definitions import REAL_TIME
from necroscope.model.span import merge
from necroscope.model.units import NS_PER_S

# Kernel threads of class FIFO are the system's own: migration/N, the watchdogs, threaded
# interrupts.
_OF_THE_KERNEL: Final = ("migration/", "irq/", "watchdog/", "cpuhp/", "idle_inject/", "stop/")
_NAMED: Final = 4
LIMITS: Final = FAIRNESS | Thresholds(
    mostly=Threshold(0.5, "of the core's samples: the task that keeps the core for itself"),
    lasts=Threshold(0.15, "of the incident others waited behind them: else it is not about them"),
    part=Threshold(0.1, "of what real-time tasks had: less is not what kept the core"),
)


def assess(case: Case) -> Assessment | None:
    hogs, share = _hogs(case)
    if case.core is None or not hogs:
        return None
    hog = hogs[0]
    task = None if hog.comm.startswith(_OF_THE_KERNEL) else task_with_policy(case, hog)
    starved = [wait for one in hogs for wait in behind(case, one, is_real_time=True)]
    starved.sort(key=lambda wait: -wait.seconds)
    policy = task["policy"] if task is not None else None
    if starved and policy not in REAL_TIME and starved[0].by is not None:
        task, policy = None, starved[0].by.policy
    throttled, waited = case.events_of("rt_throttled"), unfair_wait(case)
    is_real_time = policy in REAL_TIME
    if not is_real_time and (policy is not None or not (throttled or waited)):
        return None
    rank = f"{policy}, priority {task['priority']}" if task is not None else policy
    culprit = culprit_from(hog, case.samples.now.of_task(hog.comm).path(), case.node)
    thread = hog.tid or (task["tid"] if task is not None else None)
    texts = [(f"its scheduling policy is {rank}", "tasks")] if rank is not None else []
    texts += [(waited, "runqueue")] if waited else []
    unseen = case.evidence("its scheduling policy was not captured", "tasks", case.core)
    lower = f"chrt --other -p 0 {thread}  # an ordinary priority, until it starts again"
    return Assessment(
        explains=share,
        is_confirmed=(is_real_time or bool(throttled))
        and (bool(starved) or _something_waits(case)),
        doubt=0.0 if is_real_time else 0.15,
        evidence=[
            *(case.evidence(text, table, case.core) for text, table in texts),
            *victims(case, starved),
            *(of_event(case, event) for event in throttled),
            *what_held_the_core(case)[:1],
            *suffering(case),
        ],
        against=() if is_real_time else (unseen,),
        summary=(
            f"{hog.comm} ({rank or 'policy not captured'}){_with(hogs)} kept core"
            f" {case.core} for {'themselves' if hogs[1:] else 'itself'}, and"
            f" {_who_waited(starved)} waited"
        ),
        culprit=culprit,
        origin=origin_of(culprit),
        fix=(lower,) if thread else (),
    )


def _hogs(case: Case) -> tuple[list[TaskShare], float]:
    """Real-time tasks that had the core, maybe in turn, while ordinary ones waited behind them, and
    their share of it; else the task that had most of the incident.
    """
    outranked = [
        wait
        for wait in case.waits
        if wait.is_for_a_core and wait.cpu == case.core and wait.by and wait.by.policy in REAL_TIME
    ]
    if outranked and case.core is not None:
        spans = merge(wait.span for wait in outranked)
        waited_s = sum(span.length_ns for span in spans) / NS_PER_S
        inside = case.samples.now.where([case.core], spans)
        found = inside.of_processes({wait.by.pid for wait in outranked if wait.by})
        share = found.total / inside.total if inside.total else 0.0
        if share >= case.limits.mostly and waited_s >= case.limits.lasts * case.seconds:
            tasks = found.tasks()
            return [task for task in tasks if task.share >= case.limits.part] or tasks[:1], share
    most = next(iter(case.samples.now.tasks()), None)
    is_most = most is not None and most.share >= case.limits.mostly
    return ([most], most.share) if most is not None and is_most else ([], 0.0)


def _with(hogs: Sequence[TaskShare]) -> str:
    return f" and {', '.join(one.comm for one in hogs[1:_NAMED])}" if len(hogs) > 1 else ""


def _who_waited(starved: Sequence[TaskWait]) -> str:
    if not starved:
        return "what must run there"
    names = list(dict.fromkeys(wait.task.comm for wait in starved))
    more = f" and {len(names) - 1} more" if len(names) > 1 else ""
    return f"{names[0]}{more}"


def _something_waits(case: Case) -> bool:
    return any(episode.kind in SUFFERING and episode.cpu == case.core for episode in case.episodes)


CAUSE = Cause(
    slug="rt-hog",
    title="a real-time task keeps its core for itself",
    confirming=(
        "the task on the core has a real-time policy, or the log shows RT throttling, and"
        " something waits behind it"
    ),
    would_confirm="its scheduling policy (chrt -p PID) and a thread that waits behind it",
    assess=assess,
    thresholds=LIMITS,
    fix=(
        (
            "for good: start the task with an ordinary priority, or make it wait for its work"
            " instead of spinning"
        ),
        "if it must be real-time: keep network queues and their threads off its core",
    ),
    verify=(
        (
            "nothing waits for that core any more (tables `waits` and, for the napi and ksoftirqd"
            " threads, `runqueue`)"
        ),
    ),
    will_not_help=(
        WillNotHelp(
            "sched_rt_runtime_us = -1",
            "it takes away the twentieth of each second that ordinary threads still get",
        ),
        WillNotHelp(
            "a lower nice value for the victims",
            "every real-time task goes before every ordinary one",
        ),
        WillNotHelp("more cores", "the victims are bound to this one"),
    ),
)
