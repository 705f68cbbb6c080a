"""A task that touches a file makes an event for every task that watches it, in its own system call.

Signature: a core in system mode in fsnotify, send_to_group, inotify_handle_inode_event or
fanotify_handle_event below writes, opens and closes of a task that watches nothing itself; or one
reader of events at 99 %.
Confirming signal: the making (or reading) of events in a quarter of the core's samples.
Source: zed #55829; notify #69; the fsnotify fixes of Linux 6.9; fs/notify/fsnotify.c.
"""

from typing import Final

from necroscope.analysis.attribution import culprit_from
from necroscope.analysis.case import Case
from necroscope.analysis.cause import Assessment, Cause, Signature
from necroscope.analysis.functions import Functions, functions
from necroscope.analysis.report import WillNotHelp
from necroscope.analysis.stacks import TaskShare
from necroscope.analysis.task_origin import origin_of
from necroscope.analysis.thresholds import Threshold, Thresholds

MAKES: Final = functions(
    "fsnotify __fsnotify __fsnotify_parent fsnotify_parent fsnotify_handle_event"
    " fsnotify_handle_inode_event send_to_group inotify_handle_inode_event inotify_handle_event"
    " fanotify_handle_event fsnotify_add_event fsnotify_insert_event inotify_merge fanotify_merge"
    " fanotify_alloc_event*"
)
READS: Final = functions(
    "inotify_read fanotify_read copy_event_to_user get_one_event inotify_poll fanotify_poll"
)
SIGNATURE: Final = Signature(
    MAKES | READS,
    "file events",
    least=Threshold(0.12, "half of what confirms: a watcher of a busy directory stays below it"),
    confirmed=Threshold(0.25, "a quarter of a core goes into events instead of into the files"),
)
LIMITS: Final = Thresholds(
    one_program=Threshold(0.4, "of the events on all cores: one program makes, or reads, most"),
    samples=Threshold(3.0, "fewer samples may be chance"),
)


def assess(case: Case) -> Assessment | None:
    found = SIGNATURE.match(case)
    if found is None:
        return None
    maker, watcher = _most(case, MAKES), _most(case, READS)
    reads = f"{watcher.comm} reads these events" if watcher else ""
    return found.assessment(
        summary=(
            f"{_work(case, found.who, maker, watcher)}: {found.share:.0%} of what {case.place} does"
        ),
        origin=origin_of(culprit_from(watcher, (), case.node) if watcher else found.culprit),
        evidence=[case.evidence(reads, "samples")] if watcher else (),
        fix=(
            (f"narrow what {watcher.comm} watches: fewer directories, fewer kinds of events",)
            if watcher
            else ()
        ),
    )


def _work(case: Case, who: str, maker: TaskShare | None, watcher: TaskShare | None) -> str:
    """The core's own work: making events, or reading what another task makes."""
    now = case.samples.now
    if now.share(READS) > now.share(MAKES):
        by = f" that {maker.comm} causes" if maker and maker.comm != who else ""
        return f"{who} reads file events{by}"
    reader = f" for {watcher.comm}" if watcher and watcher.comm != who else ""
    return f"{who} causes file events{reader}"


def _most(case: Case, group: Functions) -> TaskShare | None:
    most = next(iter(case.samples.machine.tasks(group)), None)
    is_one = most is not None and most.weight >= case.limits.samples
    return most if most is not None and is_one and most.share >= case.limits.one_program else None


CAUSE = Cause(
    slug="fsnotify-storm",
    title="file events are generated for many watchers",
    confirming="making file events is a quarter of the core's samples",
    would_confirm="watches by process: grep -c inotify /proc/PID/fdinfo/*",
    assess=assess,
    signature=SIGNATURE,
    thresholds=LIMITS,
    fix=(
        (
            "find the watchers: for f in /proc/[0-9]*/fdinfo/*; do grep -l ^inotify $f; done, the"
            " processes with most of them"
        ),
        (
            "watch the file or directory that matters and only the events that matter, not"
            " IN_ALL_EVENTS of a tree"
        ),
        "buffer in the writer: each write makes an event, not each byte",
        "Linux 6.9 and later skip watches that cannot match",
    ),
    verify=("fsnotify and inotify_handle_inode_event are gone from the writer's profile",),
    will_not_help=(
        WillNotHelp(
            "raising fs.inotify.max_user_watches",
            "it allows more watches, and each one costs time at every write",
        ),
        WillNotHelp("a faster disk", "the events are made in memory, before anything is written"),
    ),
)
