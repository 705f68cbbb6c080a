"""A program stands at a full pipe or socket, because the process that should read is held up.

Signature: a program asleep in write(2) or send(2) to a pipe or UNIX socket for seconds; the
process at the other end is stopped, frozen, without a core, or waits for something itself.
Confirming signal: such a wait of two seconds and more, the process that has the other end, and that
one's own wait or stop for most of that time. A reader that works or sleeps by its own will is slow,
and the pipe does what it is for: that is not an incident.
Source: pipe(7), unix(7); moby/moby: containers that stand in write(2) to stdout while the log
driver does not read; systemd-journald with a blocked /dev/log.
"""

from typing import Final

from necroscope.analysis.case import Case
from necroscope.analysis.cause import Assessment, Cause
from necroscope.analysis.convoys import convoys
from necroscope.analysis.evidence import suffering
from necroscope.analysis.report import WillNotHelp
from necroscope.analysis.thresholds import Threshold, Thresholds
from necroscope.analysis.wait_channels import UNREAD

LIMITS: Final = Thresholds(
    longest_s=Threshold(2.0, "less is a reader that has much to do"),
    held_up=Threshold(0.5, "of the wait: that long the reader itself was held up"),
)


def assess(case: Case) -> Assessment | None:
    convoy = next(iter(convoys(case, UNREAD)), None)
    if convoy is None:
        return None
    reader, longest = convoy.holder, convoy.longest
    culprit = convoy.culprit(case.node)
    whose = f"{reader.comm}[{reader.pid}]" if reader else "another process"
    is_held_up = convoy.held_up_s >= case.limits.held_up * longest.seconds
    own_will = case.evidence(f"no wait of {whose} itself is recorded: it may be slow", "waits")
    return Assessment(
        explains=0.9,
        is_confirmed=reader is not None and longest.seconds >= case.limits.longest_s and is_held_up,
        evidence=[*convoy.evidence(case), *suffering(case)],
        against=() if is_held_up else (own_will,),
        summary=(
            f"{convoy.waiters} waited up to {longest.seconds:.1f} s at a full pipe or socket for"
            f" its reader {whose}{convoy.held_up}"
        ),
        culprit=culprit,
        origin=convoy.origin(case.node),
        fix=(convoy.to_wake,) if convoy.to_wake else (),
    )


CAUSE = Cause(
    slug="stalled-reader",
    title="a program is blocked on a full pipe or socket whose reader is held up",
    confirming=(
        "a wait of two seconds or more in write(2) or send(2), the process at the other end, and"
        " that process's own wait or stop"
    ),
    would_confirm=(
        "which process has the other end: lsof +E -p PID, and where it is: /proc/PID/stack"
    ),
    assess=assess,
    thresholds=LIMITS,
    fix=(
        "let the reader continue, or restart it: its exit ends the wait (EPIPE)",
        (
            "write without blocking (O_NONBLOCK, a bounded buffer) where a log must not stop the"
            " program"
        ),
    ),
    verify=("no more long waits of kind `unread` are recorded (table `waits`)",),
    will_not_help=(
        WillNotHelp("more cores for the writer", "it is not waiting for one"),
        WillNotHelp("a larger pipe", "it fills up a moment later"),
    ),
)
