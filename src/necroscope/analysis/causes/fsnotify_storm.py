"""Whoever touches a file makes an event for everybody who watches it, in its own system call.

Signature: a core in system mode in fsnotify, send_to_group, inotify_handle_inode_event or
fanotify_handle_event below writes, opens and closes of a task that watches nothing itself; or one
reader of events at 99 %.
Confirming signal: the making (or reading) of events in a quarter of the core's samples.
Source: zed #55829; notify #69; the fsnotify fixes of Linux 6.9; fs/notify/fsnotify.c.
"""

from typing import Final

from necroscope.analysis.attribution import named
from necroscope.analysis.case import Case
from necroscope.analysis.cause import Assessment, Cause
from necroscope.analysis.evidence_texts import in_samples, suffering, what_held_the_core
from necroscope.analysis.functions import functions
from necroscope.analysis.report import WillNotHelp
from necroscope.analysis.stacks import TaskShare
from necroscope.analysis.task_origin import origin_of

MAKES: Final = functions(
    "fsnotify __fsnotify __fsnotify_parent fsnotify_parent fsnotify_handle_event"
    " fsnotify_handle_inode_event send_to_group inotify_handle_inode_event inotify_handle_event"
    " fanotify_handle_event fsnotify_add_event fsnotify_insert_event inotify_merge fanotify_merge"
    " fanotify_alloc_event*"
)
READS: Final = functions(
    "inotify_read fanotify_read copy_event_to_user get_one_event inotify_poll fanotify_poll"
)
_LEAST: Final = 0.12
_CONFIRMED: Final = 0.25


def assess(case: Case) -> Assessment | None:
    held = case.now.share(MAKES | READS)
    if held < _LEAST:
        return None
    culprit = case.culprit(MAKES | READS)
    who = culprit.comm if culprit else "a task"
    watcher = _watcher(case)
    evidence = [in_samples(case, MAKES | READS, "events of files"), *what_held_the_core(case)]
    if watcher:
        evidence.append(case.seen(f"{watcher.comm} reads such events meanwhile", "samples"))
    place = f"core {case.core}" if case.core is not None else "the node"
    for_whom = f" for {watcher.comm}" if watcher and watcher.comm != who else ""
    task = named(watcher, (), case.node) if watcher else culprit
    return Assessment(
        explains=held,
        is_confirmed=held >= _CONFIRMED,
        evidence=[*evidence, *suffering(case)],
        would_confirm="watches by process: grep -c inotify /proc/PID/fdinfo/*",
        summary=(
            f"{who} makes events of what it does to files{for_whom}: {held:.0%} of what {place}"
            " does"
        ),
        culprit=culprit,
        origin=origin_of(task),
        fix=(
            (f"narrow what {watcher.comm} watches: fewer directories, fewer kinds of events",)
            if watcher
            else ()
        ),
    )


def _watcher(case: Case) -> TaskShare | None:
    tasks = case.machine.tasks(READS)
    return tasks[0] if tasks and tasks[0].weight >= 3 and tasks[0].share >= 0.4 else None


CAUSE = Cause(
    slug="fsnotify-storm",
    title="events of files are made for many watchers",
    confirming="the making of file events in a quarter of the core's samples",
    assess=assess,
    fix=(
        (
            "find who watches: for f in /proc/[0-9]*/fdinfo/*; do grep -l ^inotify $f; done, the"
            " processes with most of them"
        ),
        (
            "watch the file or directory that matters and only the events that matter, not"
            " IN_ALL_EVENTS of a tree"
        ),
        "have the writer buffer: an event is made for each write, not for each byte",
        "Linux 6.9 and later skip watches that cannot match",
    ),
    verify=("fsnotify and inotify_handle_inode_event are gone from the writer's profile",),
    will_not_help=(
        WillNotHelp(
            "raising fs.inotify.max_user_watches",
            "it allows more watches, each of which costs at every write",
        ),
        WillNotHelp("a faster disk", "the events are made in memory, before anything is written"),
    ),
)
