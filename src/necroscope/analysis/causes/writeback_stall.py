"""Tasks wait until pages are written, while another makes pages dirty faster than its disk takes.

Signature: tasks in uninterruptible sleep in balance_dirty_pages, or in sync(2), fsync(2) and the
like; a disk that is busy writing; cores idle.
Confirming signal: a task that is not the one that writes most waits for pages of others: in sync(2)
for a second and more, or in pauses of balance_dirty_pages that are half of a second and more, two
seconds and more in all. fsync(2) waits for the file's own pages, maybe on another disk: then this
is an alternative. Who writes and waits for its own pages is at work, not stalled.
Source: amazon-eks-ami #454 and amzn-drivers #129 (kworker writeback); Documentation/admin-guide/
sysctl/vm.rst (dirty_ratio); mm/page-writeback.c; fs/sync.c.
"""

from collections import Counter
from typing import Final

from necroscope.analysis.attribution import container_of
from necroscope.analysis.case import Case
from necroscope.analysis.cause import Assessment, Cause
from necroscope.analysis.evidence import suffering
from necroscope.analysis.functions import functions
from necroscope.analysis.report import Culprit, WillNotHelp
from necroscope.analysis.task_origin import cgroup_or_process
from necroscope.analysis.task_waits import TaskWait, Waiter
from necroscope.analysis.thresholds import Threshold, Thresholds
from necroscope.analysis.wait_channels import WRITEBACK
from necroscope.model.units import NS_PER_S

LIMITS: Final = Thresholds(
    longest_s=Threshold(1.0, "a disk that is busy answers a sync within a second"),
    paused=Threshold(0.5, "of a second, in pauses of 0.2 s at most: half of its time is gone"),
    more=Threshold(1.5, "times as long in pauses as who waits: else both write alike"),
    total_s=Threshold(2.0, "less is one flush of a journal"),
)
# Who is throttled here makes pages dirty faster than they are written.
_DIRTIES: Final = functions("balance_dirty_pages*")
# sync(2) waits for the pages of all file systems.
_ALL_PAGES: Final = functions("ksys_sync sync_inodes_one_sb iterate_supers __x64_sys_sync sys_sync")


def assess(case: Case) -> Assessment | None:
    waits = case.waits_for(WRITEBACK)
    if not waits:
        return None
    pauses = _pauses(case.waits)
    writer = max(pauses, key=lambda task: pauses[task], default=None)
    victims = [w for w in waits if writer is None or w.task.pid != writer.pid]
    if not victims:
        return None
    longest = max(victims, key=lambda wait: wait.seconds)
    total_s = sum(wait.seconds for wait in victims)
    names = ", ".join(dict.fromkeys(wait.task.comm for wait in victims))
    whose = writer.comm if writer else "another task"
    wrote = f"{whose} wrote faster than its disk takes"
    texts = [f"{names} waited {total_s:.1f} s in all: {longest.words()}"]
    if writer is not None:
        texts.append(f"{writer.comm}[{writer.pid}] was paused for the pages that it made dirty")
    # Who is paused nearly as long writes nearly as much.
    much_s = pauses[writer] / case.limits.more if writer is not None else 0.0
    is_felt = _is_felt(case, [w for w in victims if pauses[w.task] <= much_s])
    unknown = "they wait for pages of their own files: whether on the same disk is not recorded"
    culprit = _culprit(case, writer)
    return Assessment(
        explains=0.9,
        is_confirmed=writer is not None and is_felt,
        evidence=[*(case.evidence(text, "waits") for text in texts), *suffering(case)],
        against=() if is_felt else (case.evidence(unknown, "waits"),),
        summary=(
            f"{longest.task.comm} waited up to {longest.seconds:.1f} s until pages were written,"
            f" while {wrote}"
        ),
        culprit=culprit,
        origin=cgroup_or_process(culprit) if culprit else None,
    )


def _is_felt(case: Case, victims: list[TaskWait]) -> bool:
    """They wait long for pages of others; pauses are short each, and count by task and second."""
    limits = case.limits
    syncs = [wait.seconds for wait in victims if any(name in _ALL_PAGES for name in wait.stack)]
    paused: Counter[tuple[int, int]] = Counter()
    for wait in victims:
        if any(name in _DIRTIES for name in wait.stack):
            paused[wait.task.tid, wait.to_ns // NS_PER_S] += wait.to_ns - wait.from_ns
    stalls = [ns / NS_PER_S for ns in paused.values() if ns >= limits.paused * NS_PER_S]
    is_long = max(syncs, default=0.0) >= limits.longest_s or bool(stalls)
    return is_long and sum(syncs) + sum(stalls) >= limits.total_s


def _pauses(waits: list[TaskWait]) -> Counter[Waiter]:
    """How long tasks are throttled for the pages they dirty; short waits count as well."""
    found: Counter[Waiter] = Counter()
    for wait in waits:
        if any(name in _DIRTIES for name in wait.stack):
            found[wait.task] += wait.to_ns - wait.from_ns
    return found


def _culprit(case: Case, writer: Waiter | None) -> Culprit | None:
    if writer is None:
        return None
    container = container_of(writer.cgroup, case.node)
    return Culprit(writer.comm, writer.pid, writer.cgroup, None, container)


CAUSE = Cause(
    slug="writeback-stall",
    title="tasks wait until pages that others made dirty are written",
    confirming=(
        "waits in sync(2) or balance_dirty_pages, a second and more, of a task that is not the one"
        " that writes most"
    ),
    would_confirm="who writes (table `waits`, balance_dirty_pages; iotop -o)",
    assess=assess,
    thresholds=LIMITS,
    fix=(
        "bound the writer: io.max or io.weight of its cgroup, or let it write in smaller pieces",
        "lower vm.dirty_bytes and vm.dirty_background_bytes, so that less waits to be written",
    ),
    verify=("fsync and sync of the victim take milliseconds again (table `waits`)",),
    will_not_help=(
        WillNotHelp("more memory", "more dirty pages then wait for the same disk"),
        WillNotHelp("more cores", "no task here waits for one"),
    ),
)
