"""Many tasks may run on one core only, and wait for each other there while other cores are idle.

Signature: several tasks whose affinity or cpuset allows one core (or a few) take turns on it and
wait for tens of milliseconds and more each time; the core is full, the others have nothing to do.
Confirming signal: waits recorded for tasks that may run on few of the machine's cores, two tasks
or more, half of each second and more added up, while that core is busy and the other cores are
mostly idle. A cgroup without quota left waits for that, not for the core.
Source: Documentation/admin-guide/cgroup-v1/cpusets.rst; sched_setaffinity(2).
"""

from typing import Final

from necroscope.analysis.case import Case
from necroscope.analysis.cause import Assessment, Cause
from necroscope.analysis.core_queue import core_queue
from necroscope.analysis.episodes import was_throttled
from necroscope.analysis.evidence import suffering, what_held_the_core
from necroscope.analysis.report import WillNotHelp
from necroscope.analysis.task_origin import cgroup_or_process
from necroscope.analysis.thresholds import Threshold, Thresholds

LIMITS: Final = Thresholds(
    few=Threshold(0.5, "of the machine's cores: who may use more of them is not squeezed"),
    room=Threshold(0.5, "of the other cores idle: there is room that they may not use"),
    busy=Threshold(0.5, "of the core's time: an idle core squeezes no task"),
    per_s=Threshold(0.5, "waited per second, over all tasks: the core's queue is never empty"),
)


def assess(case: Case) -> Assessment | None:
    queue = core_queue(case)
    if queue is None or case.node.cores < 2:
        return None
    limits = case.limits
    idle = [
        share
        for cpu in case.node.cpus
        if cpu != case.core and (share := case.counters.share("idle", cpu)) is not None
    ]
    room = sum(idle) / len(idle) if idle else 0.0
    is_squeezed = queue.least_allowed <= limits.few * case.node.cores
    if not is_squeezed or room < limits.room:
        return None
    core_idle = case.counters.share("idle", case.core) or 0.0
    victim = next(iter(queue.waited_s))
    is_free = not was_throttled(case.node.episodes, victim, case.window)
    is_crowd = queue.tasks > 1 and queue.total_s >= limits.per_s * case.seconds
    culprit = case.culprit()
    allowed = f"{queue.least_allowed} of {case.node.cores} cores"
    squeezed = f"{queue.tasks} tasks that may run on {allowed}"
    waited = f"waited {queue.total_s:.1f} s in all for core {case.core}"
    return Assessment(
        explains=0.9,
        is_confirmed=is_crowd and is_free and core_idle <= 1 - limits.busy,
        evidence=[
            case.evidence(
                f"{squeezed} {waited}, the longest {queue.longest_s:.2f} s", "waits", case.core
            ),
            case.evidence(f"the other cores were {room:.0%} idle", "cores"),
            *what_held_the_core(case)[:1],
            *suffering(case),
        ],
        summary=(
            f"{queue.tasks} tasks ({', '.join(queue.programs[:3])}) may run on"
            f" {queue.least_allowed} of {case.node.cores} cores and waited for each other on core"
            f" {case.core}, while the others were {room:.0%} idle"
        ),
        culprit=culprit,
        origin=cgroup_or_process(culprit) if culprit else None,
        fix=("allow them the idle cores: taskset -pc, or the cpuset of their cgroup",),
    )


CAUSE = Cause(
    slug="cpuset-squeeze",
    title="many tasks may run on only one core while others are idle",
    confirming=(
        "two or more tasks allowed on few cores wait for one while the other cores are mostly idle"
    ),
    would_confirm="the tasks' affinity (taskset -p PID) and cpuset (cpuset.cpus.effective)",
    assess=assess,
    thresholds=LIMITS,
    fix=(
        "give the cgroup more cores (cpuset.cpus), or start fewer workers than it has cores",
        "make programs count the cores they may use, not the machine's",
    ),
    verify=("the tasks are seen on several cores, and their waits stay short (table `waits`)",),
    will_not_help=(
        WillNotHelp("more cores", "the tasks may not even use the idle ones"),
        WillNotHelp("a larger weight", "they only wait for each other"),
    ),
    yields_to=frozenset({"rt-hog", "cpu-quota-throttle", "noisy-neighbour"}),
)
