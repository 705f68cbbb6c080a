"""A service manager or agent reads the whole table of mounts again at every change of it.

Signature: PID 1, systemd --user or an agent at 80 to 100 % of a core while containers start and
stop: show_mountinfo and what it calls below a read, and parsing in user mode; thousands of
mounts.
Confirming signal: the writing of mount lines below a read in a quarter of the core's samples.
Source: systemd #16728, #8703, #37642, pull request 10268; fs/proc_namespace.c.
"""

from dataclasses import replace
from typing import Final

from necroscope.analysis.case import Case
from necroscope.analysis.cause import Assessment, Cause, Signature
from necroscope.analysis.evidence import file_of
from necroscope.analysis.functions import functions
from necroscope.analysis.report import WillNotHelp
from necroscope.analysis.stacks import TaskShare
from necroscope.analysis.task_origin import origin_of, process_origin
from necroscope.analysis.thresholds import Threshold, Thresholds
from necroscope.analysis.walk_numbers import describe_walk

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
SIGNATURE: Final = Signature(
    SHOWS,
    "writing a line for each mount",
    least=Threshold(0.06, "half of the work is parsing in user mode, which may have no names"),
    confirmed=Threshold(0.25, "with its parsing; one read of a table of hundreds stays below it"),
)
LIMITS: Final = Thresholds(
    least_in_all=Threshold(0.12, "writing and parsing together: half of what confirms"),
    mounter=Threshold(0.4, "one program does most of the mounting"),
    mounter_samples=Threshold(3.0, "fewer samples may be chance"),
)


def assess(case: Case) -> Assessment | None:
    found = SIGNATURE.match(case)
    held = case.samples.now.share(SHOWS) + case.samples.now.share(PARSES)
    if found is None or held < case.limits.least_in_all:
        return None
    found = replace(found, share=held, explains=held)
    mounter = _mounter(case)
    mounts = (
        [case.evidence(f"{mounter.comm} mounts or unmounts meanwhile", "samples")]
        if mounter
        else []
    )
    walked, numbers = describe_walk(case, SHOWS, ("mounts",))
    return found.assessment(
        walked=walked,
        summary=(
            f"{found.who} reads the whole mount table again and again: {held:.0%} of what"
            f" {case.place} does{case.beat}"
        ),
        origin=(process_origin(mounter.comm) if mounter else None) or origin_of(found.culprit),
        evidence=[*file_of(case, found.culprit), *mounts, *numbers],
        fix=(f"find what {mounter.comm} mounts and unmounts so often",) if mounter else (),
    )


def _mounter(case: Case) -> TaskShare | None:
    most = next(iter(case.samples.machine.tasks(MOUNTS)), None)
    is_one = most is not None and most.weight >= case.limits.mounter_samples
    return most if most is not None and is_one and most.share >= case.limits.mounter else None


CAUSE = Cause(
    slug="mountinfo-reparse",
    title="the mount table is read again at every change",
    confirming="writing and parsing mount lines is a quarter of the core's samples",
    would_confirm=(
        "the lines of /proc/PID/mountinfo of that process, and how often something is mounted"
    ),
    assess=assess,
    signature=SIGNATURE,
    thresholds=LIMITS,
    fix=(
        "fewer mounts: one of the parent directory instead of one per layer, volume or secret",
        (
            "mount in separate namespaces with private propagation, so that the host's table does"
            " not change"
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
        WillNotHelp("a faster disk", "the kernel writes the table in memory, line by line"),
    ),
)
