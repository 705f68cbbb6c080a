"""Tasks wait until pages are written, while another makes pages dirty faster than its disk takes.

Signature: tasks in uninterruptible sleep in balance_dirty_pages, or in sync(2), fsync(2) and the
like; a disk that is busy writing; cores idle.
Confirming signal: a task that is not the one that writes most waits for pages of others: in sync(2)
for a second and more, or in pauses of balance_dirty_pages that are half of a second and more, two
seconds and more in all. fsync(2) waits for the file's own pages, maybe on another disk: it counts,
with less confidence, if it took five seconds and more and pages were being written all that time.
The writer is who was throttled, or who was sampled most as it wrote into files. Who writes and
waits for its own pages is at work, not stalled.
Source: amazon-eks-ami #454 and amzn-drivers #129 (kworker writeback); Documentation/admin-guide/
sysctl/vm.rst (dirty_ratio); mm/page-writeback.c; fs/sync.c.
"""

from collections import Counter
from typing import Final

from necroscope.analysis.attribution import container_of
from necroscope.analysis.case import Case
from necroscope.analysis.cause import Assessment, Cause
from necroscope.analysis.causes.blocked_io import CLIENTS
from necroscope.analysis.evidence import suffering
from necroscope.analysis.functions import functions
from necroscope.analysis.page_writers import DIRTIES, find_pauses, sampled_writer, written_behind
from necroscope.analysis.report import Culprit, Evidence, Origin, WillNotHelp
from necroscope.analysis.task_origin import cgroup_or_process, process_origin
from necroscope.analysis.task_waits import TaskWait, Waiter
from necroscope.analysis.thresholds import Threshold, Thresholds
from necroscope.analysis.wait_channels import DEVICE, WRITEBACK
from necroscope.model.units import NS_PER_S

LIMITS: Final = Thresholds(
    longest_s=Threshold(1.0, "a disk that is busy answers a sync within a second"),
    paused=Threshold(0.5, "of a second, in pauses of 0.2 s at most: half of its time is gone"),
    more=Threshold(1.5, "times as long in pauses as who waits: else both write alike"),
    total_s=Threshold(2.0, "less is one flush of a journal"),
    one_file_s=Threshold(5.0, "of a sync of one file: less is a disk with much to do"),
    which_disk=Threshold(0.25, "the pages that were written may be of another disk"),
)
# fsync(2), fdatasync(2), msync(2): of one file.
_ONE_FILE: Final = functions(
    "do_fsync vfs_fsync_range ext4_sync_file xfs_file_fsync btrfs_sync_file f2fs_sync_file"
    " __x64_sys_fsync __x64_sys_fdatasync __arm64_sys_fsync __arm64_sys_fdatasync file_fdatawait*"
)
# sync(2) waits for the pages of all file systems.
_ALL_PAGES: Final = functions("ksys_sync sync_inodes_one_sb iterate_supers __x64_sys_sync sys_sync")


def assess(case: Case) -> Assessment | None:
    waits = [*case.waits_for(WRITEBACK), *filter(_is_sync_of_file, case.waits_for(DEVICE))]
    if not waits:
        return None
    pauses = find_pauses(case.waits)
    writer = max(pauses, key=lambda task: pauses[task], default=None)
    if writer is None:
        syncs = {wait.task.pid for wait in waits}
        writer = sampled_writer(case, syncs)
    victims = [w for w in waits if writer is None or w.task.pid != writer.pid]
    if not victims:
        return None
    longest = max(victims, key=lambda wait: wait.seconds)
    # Who is paused nearly as long writes nearly as much.
    much_s = pauses[writer] / case.limits.more if writer is not None else 0.0
    is_felt = _is_felt(case, [w for w in victims if pauses[w.task] <= much_s])
    written = _written_behind(case, [w for w in victims if not pauses[w.task]])
    unknown = "they wait for pages of their own files: whether on the same disk is not recorded"
    culprit = _culprit(case, writer)
    whose = writer.comm if writer else "another task"
    return Assessment(
        explains=0.9,
        is_confirmed=writer is not None and (is_felt or written is not None),
        doubt=0.0 if is_felt else case.limits.which_disk,
        evidence=[*_evidence(case, victims, writer, pauses, written), *suffering(case)],
        against=() if is_felt else (case.evidence(unknown, "waits"),),
        summary=(
            f"{longest.task.comm} waited up to {longest.seconds:.1f} s for pages to be written,"
            f" while {whose} wrote faster than its disk can"
        ),
        culprit=culprit,
        origin=_origin(culprit, victims),
    )


def _evidence(
    case: Case,
    victims: list[TaskWait],
    writer: Waiter | None,
    pauses: Counter[Waiter],
    written: int | None,
) -> list[Evidence]:
    longest = max(victims, key=lambda wait: wait.seconds)
    names = ", ".join(dict.fromkeys(wait.task.comm for wait in victims))
    total_s = sum(wait.seconds for wait in victims)
    found = [case.evidence(f"{names} waited {total_s:.1f} s in all: {longest.words()}", "waits")]
    if writer is not None and pauses[writer]:
        text = f"{writer.comm}[{writer.pid}] was throttled for the pages it dirtied"
        found.append(case.evidence(text, "waits"))
    elif writer is not None:
        text = f"{writer.comm}[{writer.pid}] was sampled most of all tasks that write files"
        found.append(case.evidence(text, "samples"))
    if written is not None:
        text = (
            f"{written / 1e6:,.0f} MB of pages were written to disks while {longest.task.comm}"
            " waited, and writes were in flight all the time"
        )
        found.append(case.evidence(text, "memory", span=longest.span))
    return found


def _is_sync_of_file(wait: TaskWait) -> bool:
    """For a disk, not for a server of files."""
    is_served = any(name in CLIENTS for name in wait.stack)
    return any(name in _ONE_FILE for name in wait.stack) and not is_served


def _written_behind(case: Case, victims: list[TaskWait]) -> int | None:
    """What was written while one of them stood long in a sync of its file."""
    longest = max(filter(_is_sync_of_file, victims), key=lambda w: w.seconds, default=None)
    if longest is None or longest.seconds < case.limits.one_file_s:
        return None
    return written_behind(case, longest)


def _is_felt(case: Case, victims: list[TaskWait]) -> bool:
    """They wait long for pages of others; pauses are short each, and count by task and second."""
    limits = case.limits
    syncs = [wait.seconds for wait in victims if any(name in _ALL_PAGES for name in wait.stack)]
    paused: Counter[tuple[int, int]] = Counter()
    for wait in victims:
        if any(name in DIRTIES for name in wait.stack):
            paused[wait.task.tid, wait.to_ns // NS_PER_S] += wait.to_ns - wait.from_ns
    stalls = [ns / NS_PER_S for ns in paused.values() if ns >= limits.paused * NS_PER_S]
    is_long = max(syncs, default=0.0) >= limits.longest_s or bool(stalls)
    return is_long and sum(syncs) + sum(stalls) >= limits.total_s


def _origin(culprit: Culprit | None, victims: list[TaskWait]) -> Origin | None:
    """A cgroup in which the victims are as well is not what to act on."""
    if culprit is None:
        return None
    is_shared = any(wait.task.cgroup == culprit.cgroup for wait in victims)
    return process_origin(culprit.comm) if is_shared else cgroup_or_process(culprit)


def _culprit(case: Case, writer: Waiter | None) -> Culprit | None:
    if writer is None:
        return None
    container = container_of(writer.cgroup, case.node)
    return Culprit(writer.comm, writer.pid, writer.cgroup, None, container)


CAUSE = Cause(
    slug="writeback-stall",
    title="tasks wait for pages that others dirtied to be written",
    confirming=(
        "while pages are written, a task that does not write most waits a second or more in"
        " sync(2) or balance_dirty_pages, or five seconds or more in fsync(2)"
    ),
    would_confirm="what writes (table `waits`, balance_dirty_pages; iotop -o)",
    assess=assess,
    thresholds=LIMITS,
    fix=(
        "limit the writer: io.max or io.weight of its cgroup, or let it write in smaller pieces",
        (
            "lower vm.dirty_bytes and vm.dirty_background_bytes, so that fewer pages wait to be"
            " written"
        ),
    ),
    verify=("fsync and sync of the victim take milliseconds again (table `waits`)",),
    will_not_help=(
        WillNotHelp("more memory", "more dirty pages then wait for the same disk"),
        WillNotHelp("more cores", "no task here waits for one"),
    ),
)
