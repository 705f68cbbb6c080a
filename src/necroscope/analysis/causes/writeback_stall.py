"""Tasks wait until pages that others made dirty are written.

Signature: tasks in uninterruptible sleep in balance_dirty_pages, or in fsync and sync behind the
pages and the journal of somebody else; a disk that is busy writing; cores idle.
Confirming signal: such waits, a second and more at their longest, of a task that is not the one
that writes most. Who writes and waits for its own pages is at work, not stalled.
Source: amazon-eks-ami #454 and amzn-drivers #129 (kworker writeback); Documentation/admin-guide/
sysctl/vm.rst (dirty_ratio); mm/page-writeback.c.
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

LIMITS: Final = Thresholds(
    longest_s=Threshold(1.0, "a disk that is busy answers a sync within a second"),
    total_s=Threshold(2.0, "less is one flush of a journal"),
)
# Who is throttled here makes pages dirty faster than they are written.
_DIRTIES: Final = functions("balance_dirty_pages*")


def assess(case: Case) -> Assessment | None:
    waits = case.waits_for(WRITEBACK)
    if not waits:
        return None
    writer = _writer(case, waits)
    victims = [w for w in waits if writer is None or w.task.pid != writer.pid]
    if not victims:
        return None
    longest = max(victims, key=lambda wait: wait.seconds)
    total_s = sum(wait.seconds for wait in victims)
    names = ", ".join(dict.fromkeys(wait.task.comm for wait in victims))
    texts = [f"{names} waited {total_s:.1f} s in all: {longest.words()}"]
    texts += [f"{writer.comm}[{writer.pid}] made pages dirty meanwhile"] if writer else []
    culprit = _culprit(case, writer)
    return Assessment(
        explains=0.9,
        is_confirmed=(
            writer is not None
            and longest.seconds >= case.limits.longest_s
            and total_s >= case.limits.total_s
        ),
        evidence=[*(case.evidence(text, "waits") for text in texts), *suffering(case)],
        summary=(
            f"{longest.task.comm} waited up to {longest.seconds:.1f} s until pages were written"
            f" that {writer.comm if writer else 'another task'} had made dirty"
        ),
        culprit=culprit,
        origin=cgroup_or_process(culprit) if culprit else None,
    )


def _writer(case: Case, waits: list[TaskWait]) -> Waiter | None:
    """Who is throttled for the pages it dirties, most of all; short waits count as well."""
    found: Counter[Waiter] = Counter()
    for wait in (*waits, *case.waits):
        if any(name in _DIRTIES for name in wait.stack):
            found[wait.task] += wait.to_ns - wait.from_ns
    return found.most_common(1)[0][0] if found else None


def _culprit(case: Case, writer: Waiter | None) -> Culprit | None:
    if writer is None:
        return None
    container = container_of(writer.cgroup, case.node)
    return Culprit(writer.comm, writer.pid, writer.cgroup, None, container)


CAUSE = Cause(
    slug="writeback-stall",
    title="tasks wait until pages that others made dirty are written",
    confirming=(
        "waits for writeback of a second and more, of a task that is not the one that writes most"
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
        WillNotHelp("more cores", "nobody here waits for one"),
    ),
)
