"""A service manager or agent reads the whole table of mounts again at every change of it.

Signature: PID 1, systemd --user or an agent at 80 to 100 % of a core while containers start and
stop: show_mountinfo and what it calls below a read, parsing in user mode besides; thousands of
mounts.
Confirming signal: the writing of mount lines below a read in a quarter of the core's samples.
Source: systemd #16728, #8703, #37642, pull request 10268; fs/proc_namespace.c.
"""

from typing import Final

from necroscope.analysis.case import Case
from necroscope.analysis.cause import Assessment, Cause
from necroscope.analysis.evidence_texts import file_of, in_samples, suffering, what_held_the_core
from necroscope.analysis.functions import functions
from necroscope.analysis.periodicity import told
from necroscope.analysis.report import Evidence, WillNotHelp
from necroscope.analysis.stacks import TaskShare
from necroscope.analysis.task_origin import origin_of, process_origin

# Not m_start, m_next and m_show, which call them: functions of /proc/PID/maps and /proc/modules are
# called so too.
SHOWS: Final = functions("show_mountinfo show_vfsmnt show_vfsstat mounts_poll")
PARSES: Final = functions(
    "mnt_table_parse* mnt_parse_mountinfo* mnt_fs_* mount_load_proc_self_mountinfo", is_user=True
)
MOUNTS: Final = functions(
    "path_mount do_mount do_new_mount* do_move_mount path_umount do_umount umount_tree ksys_umount"
    " __x64_sys_mount __x64_sys_umount __x64_sys_fsmount __x64_sys_move_mount attach_recursive_mnt"
    " propagate_mnt copy_tree namespace_unlock __arm64_sys_mount __arm64_sys_umount"
)
_LEAST: Final = 0.12
_CONFIRMED: Final = 0.25


def assess(case: Case) -> Assessment | None:
    shown, parsed = case.now.share(SHOWS), case.now.share(PARSES)
    held = shown + parsed
    if shown < _LEAST / 2 or held < _LEAST:
        return None
    culprit = case.culprit(SHOWS)
    who = culprit.comm if culprit else "a task"
    mounter = _mounter(case)
    beat = f", {told(case.period_s)}" if case.period_s else ""
    place = f"core {case.core}" if case.core is not None else "the node"
    return Assessment(
        explains=held,
        is_confirmed=held >= _CONFIRMED,
        evidence=[
            in_samples(case, SHOWS, "writing a line for each mount"),
            *file_of(case, culprit),
            *_mounted(case, mounter),
            *what_held_the_core(case),
            *suffering(case),
        ],
        would_confirm=(
            "the lines of /proc/PID/mountinfo of that process, and how often something is mounted"
        ),
        summary=(
            f"{who} reads the whole table of mounts again and again: {held:.0%} of what {place}"
            f" does{beat}"
        ),
        culprit=culprit,
        origin=(process_origin(mounter.comm) if mounter else None) or origin_of(culprit),
        fix=(f"find what {mounter.comm} mounts and unmounts so often",) if mounter else (),
    )


def _mounter(case: Case) -> TaskShare | None:
    tasks = case.machine.tasks(MOUNTS)
    return tasks[0] if tasks and tasks[0].weight >= 3 and tasks[0].share >= 0.4 else None


def _mounted(case: Case, mounter: TaskShare | None) -> list[Evidence]:
    return [case.seen(f"{mounter.comm} mounts or unmounts meanwhile", "samples")] if mounter else []


CAUSE = Cause(
    slug="mountinfo-reparse",
    title="the table of mounts is read again at every change",
    confirming="the writing of mount lines, and their parsing, in a quarter of the core's samples",
    assess=assess,
    fix=(
        "fewer mounts: one of the parent directory instead of one for each layer, volume or secret",
        (
            "mount in namespaces of their own with private propagation, so that the host's table"
            " does not change"
        ),
        (
            "newer systemd (limits how often it reads) and util-linux with statmount and listmount"
            " (kernel 6.8)"
        ),
    ),
    verify=("wc -l /proc/1/mountinfo is in the hundreds, and PID 1 sleeps while containers start",),
    will_not_help=(
        WillNotHelp(
            "restarting units or daemon-reexec",
            "the table is as long as before, and is read once more",
        ),
        WillNotHelp("a faster disk", "the table is made by the kernel in memory, line by line"),
    ),
)
