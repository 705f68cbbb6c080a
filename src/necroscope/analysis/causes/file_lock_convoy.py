"""Processes stand behind a lock on a file, which another has and does not give back.

Signature: processes asleep in flock(2) or fcntl(2) with F_SETLKW for a second and more, no core
busy; the holder sleeps, waits for something else, or was stopped.
Confirming signal: such waits of a second and more, and who had the lock: whom /proc/locks named
while others waited, or who gave it back. Jobs that flock puts in line on purpose wait like
this while the holder works; the report says where it was found.
Source: flock(2), fcntl(2), proc_locks(5); dpkg and apt behind unattended-upgrades (`Waiting for
cache lock`).
"""

from collections.abc import Sequence
from typing import Final

from necroscope.analysis.case import Case
from necroscope.analysis.cause import Assessment, Cause
from necroscope.analysis.convoy import Convoy
from necroscope.analysis.convoys import convoys
from necroscope.analysis.evidence import suffering
from necroscope.analysis.report import Evidence, WillNotHelp
from necroscope.analysis.thresholds import Threshold, Thresholds
from necroscope.analysis.wait_channels import FILE_LOCK

LIMITS: Final = Thresholds(
    longest_s=Threshold(1.0, "locks on files are held while a file is written: less is usual"),
)
_MOST_OTHERS: Final = 3


def assess(case: Case) -> Assessment | None:
    found = convoys(case, FILE_LOCK)
    if not found:
        return None
    convoy, others = found[0], found[1:]
    who = ", ".join(dict.fromkeys(wait.task.comm for wait in convoy.waits))
    holder, culprit = convoy.holder, convoy.culprit(case.node)
    whose = f"{holder.comm}[{holder.pid}]" if holder else "another process"
    stopped = ", which is stopped," if convoy.is_stopped else ""
    has = "holds and does not release" if convoy.is_kept else f"held for {convoy.held_s:.1f} s"
    return Assessment(
        explains=0.9,
        is_confirmed=holder is not None and convoy.longest.seconds >= case.limits.longest_s,
        evidence=[*convoy.evidence(case), *_behind_other_locks(case, others), *suffering(case)],
        summary=(
            f"{who} waited up to {convoy.longest.seconds:.1f} s for a file lock that"
            f" {whose}{stopped} {has}{convoy.because}"
        ),
        culprit=culprit,
        origin=convoy.origin(case.node),
        fix=(convoy.to_wake,) if convoy.to_wake else (),
    )


def _behind_other_locks(case: Case, others: Sequence[Convoy]) -> list[Evidence]:
    """Of the same time, the longest first."""
    texts = [
        f"{one.waiters} waited up to {one.longest.seconds:.1f} s for another lock, which"
        f" {one.holder.comm}[{one.holder.pid}] held{one.because}"
        for one in others
        if one.holder is not None and one.longest.seconds >= case.limits.longest_s
    ]
    return [case.evidence(text, "waits") for text in texts[:_MOST_OTHERS]]


CAUSE = Cause(
    slug="file-lock-convoy",
    title="processes queue for a file lock that another process holds",
    confirming=(
        "waits of a second or more in flock(2) or fcntl(2), and the process that held the lock"
    ),
    would_confirm="what holds the lock: lslocks, /proc/locks",
    assess=assess,
    thresholds=LIMITS,
    fix=(
        (
            "lslocks shows the file; see what the holder does (py-spy dump, gdb,"
            " /proc/PID/stack), and end or fix it: its exit releases the lock"
        ),
        (
            "wait with a limit (flock -w SECONDS) or not at all (flock -n), and hold the lock only"
            " while the file is written"
        ),
    ),
    verify=("no more waits of kind `file_lock` are recorded (table `waits`)",),
    will_not_help=(
        WillNotHelp("more cores or a faster disk", "the waiting processes use neither"),
        WillNotHelp("removing the locked file", "the lock stays on the file that is already open"),
    ),
)
