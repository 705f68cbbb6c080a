"""Tasks stand one behind the other at a sleeping lock of the kernel, while cores may be idle.

Signature: tasks in uninterruptible sleep behind a mutex or rwsem, all called by the functions that
take one lock: rtnl_mutex (anything that asks or changes the network's setup),
cgroup_mutex (making, removing and filling cgroups), cgroup_threadgroup_rwsem (every fork, exec and
exit while a process is moved), mmap_lock (page faults and maps of one process), i_rwsem (one
directory or file). No core need be busy; after two minutes the log says `blocked for more than`.
Confirming signal: waits that ended when the lock was given back, by two tasks or more or for a
second, and who gave it back. A lock that is held because its holder waits for a disk is that disk's
incident: for a lock of one object this is only an alternative then.
Source: Cloudflare, hung tasks and rtnl_mutex (2025); Netflix titus-executor #975 (cgroup_mutex);
sosy-lab/benchexec #1293; Documentation/locking/mutex-design.rst.
"""

from typing import Final

from necroscope.analysis.case import Case
from necroscope.analysis.cause import Assessment, Cause
from necroscope.analysis.convoy import Convoy
from necroscope.analysis.convoys import convoys
from necroscope.analysis.evidence import suffering
from necroscope.analysis.report import WillNotHelp
from necroscope.analysis.thresholds import Threshold, Thresholds
from necroscope.analysis.wait_channels import LOCK

LIMITS: Final = Thresholds(
    global_s=Threshold(0.2, "a lock that the whole system takes is held for microseconds"),
    object_s=Threshold(0.5, "a directory or a process's maps may be held for a disk's answer"),
    crowd_s=Threshold(5.0, "waited in all: this much is a crowd, however short each wait is"),
    alone_s=Threshold(1.0, "a wait this long is an incident even of one task"),
    behind_disk=Threshold(0.6, "the holder itself waited for a device: the lock is a symptom"),
)


def assess(case: Case) -> Assessment | None:
    convoy = next(iter(convoys(case, LOCK)), None)
    if convoy is None:
        return None
    limits, channel = case.limits, convoy.longest.channel
    least_s = limits.global_s if channel.is_global else limits.object_s
    is_long = convoy.longest.seconds >= least_s or convoy.total_s >= limits.crowd_s
    is_convoy = convoy.tasks > 1 or convoy.longest.seconds >= limits.alone_s
    is_evident = convoy.holder is not None or convoy.tasks > 1
    culprit = convoy.culprit(case.node)
    against = []
    if convoy.is_behind_disk:
        against.append(case.evidence(f"its holder slept {convoy.chain[-1].channel.words}", "waits"))
    return Assessment(
        explains=0.9,
        is_confirmed=is_long and is_convoy and is_evident,
        doubt=limits.behind_disk if convoy.is_behind_disk and not channel.is_global else 0.0,
        evidence=[*convoy.evidence(case), *suffering(case)],
        against=against,
        summary=_summary(convoy),
        culprit=culprit,
        origin=convoy.origin(case.node),
    )


def _summary(convoy: Convoy) -> str:
    many = "a task" if convoy.tasks == 1 else f"{convoy.tasks} tasks"
    longest = f"up to {convoy.longest.seconds:.1f} s"
    if convoy.holder is None:
        lost = "which was not released" if convoy.kept else "whose holder was not seen"
        return f"{many} waited {longest} for {convoy.name}, {lost}"
    if convoy.is_crowd:
        return (
            f"{many} waited {longest} for {convoy.name}, which {convoy.holders} tasks, such as"
            f" {convoy.holder.comm}, took in turn"
        )
    held = f"which {convoy.holder.comm} held{convoy.because}"
    return f"{many} waited {longest} for {convoy.name}, {held}"


CAUSE = Cause(
    slug="kernel-lock-convoy",
    title="tasks queue for a sleeping lock of the kernel",
    confirming=(
        "waits for one lock, by two or more tasks or for a second, and the task that released it"
    ),
    would_confirm="the stacks of tasks in state D (echo w > /proc/sysrq-trigger)",
    assess=assess,
    thresholds=LIMITS,
    fix=(
        "make the holder hold it for less time: fewer objects per call, batches, or fewer calls",
        "spread out what takes the lock: fewer readers and writers at once",
    ),
    verify=("no more waits for that lock are recorded (table `waits`)",),
    will_not_help=(
        WillNotHelp("more cores", "tasks that wait for a sleeping lock do not use one"),
        WillNotHelp("a faster disk", "it helps only if the holder itself waits for it"),
        WillNotHelp("real-time priority for the victims", "tasks get the lock in order"),
    ),
)
