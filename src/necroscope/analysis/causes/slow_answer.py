"""Tasks stand in the kernel until another process of this machine answers, and it answers late.

Signature: programs asleep in the kernel for seconds, for no lock and no disk, and one process ends
these sleeps by a system call of its own: the server of a FUSE file system (fuse_dev_write), a virus
scanner that must permit each open (fanotify_write), a handler of page faults (userfaultfd(2)), an
automounter, a server that does not accept (unix(7)), a child that was started by vfork(2). Or a
client sleeps to read the answer of a server of this node that has not read the question.
Confirming signal: such waits of a second and more, three seconds in all, most of the waiting ended
by one program; or that what a client sent lies unread in the socket of a server that was itself
stopped, blocked or without a core for most of the wait: one that sleeps until its server has
something to say is idle. What the one that must answer did meanwhile is followed: stopped, without
a core, behind a lock. If it waited for a disk, this is that disk's incident and only an alternative
here. A file server that does not answer at all is `blocked-io`.
Source: fanotify(7), fuse(4), userfaultfd(2), vfork(2), unix(7); Netflix, FUSE deadlock (2023).
"""

from typing import Final

from necroscope.analysis.case import Case
from necroscope.analysis.cause import Assessment, Cause
from necroscope.analysis.convoy import Convoy
from necroscope.analysis.convoys import convoys
from necroscope.analysis.evidence import suffering
from necroscope.analysis.report import WillNotHelp
from necroscope.analysis.thresholds import Threshold, Thresholds
from necroscope.analysis.wait_channels import ANSWERED, UNSERVED

LIMITS: Final = Thresholds(
    longest_s=Threshold(1.0, "a process that has a core answers in milliseconds"),
    total_s=Threshold(3.0, "waited in all: less is one slow answer"),
    held_up=Threshold(0.5, "of the wait: that long the server that has not read was held up"),
    mostly=Threshold(0.6, "of the waiting was ended by that program"),
    behind_disk=Threshold(0.6, "it waited for a device itself: that is why it was late"),
)


def assess(case: Case) -> Assessment | None:
    found = [convoy for kind in ANSWERED for convoy in convoys(case, kind)]
    found = [convoy for convoy in found if convoy.holder is not None and not convoy.is_kept]
    found += [convoy for convoy in convoys(case, UNSERVED) if convoy.holder is not None]
    convoy = max(found, key=lambda one: one.total_s, default=None)
    if convoy is None:
        return None
    limits = case.limits
    is_long = convoy.longest.seconds >= limits.longest_s and convoy.total_s >= limits.total_s
    against = []
    if convoy.is_behind_disk:
        against.append(case.evidence(f"it slept {convoy.chain[-1].channel.words}", "waits"))
    return Assessment(
        explains=0.9,
        is_confirmed=is_long and _is_proven(case, convoy),
        doubt=limits.behind_disk if convoy.is_behind_disk else 0.0,
        evidence=[*convoy.evidence(case), *suffering(case)],
        against=against,
        summary=_summary(convoy),
        culprit=convoy.culprit(case.node),
        origin=convoy.origin(case.node),
        fix=(convoy.to_wake,) if convoy.to_wake else (),
    )


def _is_proven(case: Case, convoy: Convoy) -> bool:
    if convoy.longest.channel.kind == UNSERVED:
        return convoy.held_up_s >= case.limits.held_up * convoy.longest.seconds
    return _answered_share(convoy) >= case.limits.mostly


def _answered_share(convoy: Convoy) -> float:
    """The share of the waiting that the program ended, in any of its processes."""
    assert convoy.holder is not None
    own = [w for w in convoy.waits if w.given_by and w.given_by.comm == convoy.holder.comm]
    return sum(wait.seconds for wait in own) / convoy.total_s


def _summary(convoy: Convoy) -> str:
    assert convoy.holder is not None
    longest = convoy.longest
    who = f"{convoy.holder.comm}[{convoy.holder.pid}]"
    waited = f"{convoy.waiters} waited up to {longest.seconds:.1f} s"
    if longest.channel.kind == UNSERVED:
        return f"{waited} for an answer from {who}{convoy.held_up}"
    return f"{waited} {longest.channel.words}, until {who} answered{convoy.held_up}"


CAUSE = Cause(
    slug="slow-answer",
    title="tasks wait in the kernel until another process answers",
    confirming=(
        "sleeps of a second or more in the kernel that one program's own system call ended, or a"
        " wait for a server that is held up and has not read what was sent to it"
    ),
    would_confirm="what ends the waits (table `waits`, columns `by_comm` and `by_stack`)",
    assess=assess,
    yields_to=frozenset({"blocked-io"}),
    thresholds=LIMITS,
    fix=(
        (
            "see what the answering process does meanwhile: /proc/PID/stack, py-spy dump, gdb,"
            " and its own log"
        ),
        (
            "keep it from delaying programs that must not wait: fewer mounts or files to serve or"
            " permit, more threads to answer, a time limit"
        ),
    ),
    verify=("no more long waits that this process ends are recorded (table `waits`)",),
    will_not_help=(
        WillNotHelp("a faster disk", "the sleeps ended when a process answered, not a device"),
        WillNotHelp("restarting the waiting tasks", "they ask the same process again"),
    ),
)
