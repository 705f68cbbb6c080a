"""Threads of a program stand behind a lock of their own, held by another of its threads.

Signature: threads asleep in futex(2) for a lock that is held and waited for, of one process (or of
several that share memory), for hundreds of milliseconds; cores idle or not, nothing in the kernel
is slow.
Confirming signal: such waits by two threads or more at one address, a second and more in all, and
the thread that gave the lock back (it woke them by futex(2), not by a signal or its exit). A thread
alone at its address may wait for work: some condition variables and semaphores look like a lock
then; and if its threads waited for a core as well, a holder without a core is why. The kernel only
puts threads to sleep here and is never to blame; a holder that slept in the kernel or got no core
behind a real-time task meanwhile is followed there.
Source: Roblox, Consul and BoltDB's free list (2021); futex(2); glibc nptl/lowlevellock.c.
"""

from typing import Final

from necroscope.analysis.case import Case
from necroscope.analysis.cause import Assessment, Cause
from necroscope.analysis.convoys import convoys
from necroscope.analysis.evidence import suffering
from necroscope.analysis.report import WillNotHelp
from necroscope.analysis.task_waits import RUNNABLE, Waiter, whole_waits
from necroscope.analysis.thresholds import Threshold, Thresholds
from necroscope.analysis.wait_channels import FUTEX, STOPPED, UNANSWERED
from necroscope.model.definitions import REAL_TIME
from necroscope.model.units import NS_PER_S

LIMITS: Final = Thresholds(
    least_s=Threshold(
        0.3, "programs hold locks for milliseconds; other threads notice one this long"
    ),
    total_s=Threshold(1.0, "waited in all: less is a moment of one thread"),
    elsewhere=Threshold(0.4, "the holder waited for something outside the program meanwhile"),
    queued=Threshold(
        0.5, "times as long as for the lock its threads waited for a core: who had it had no core"
    ),
    crowded=Threshold(0.6, "then the lock is a symptom of a machine with too much to do"),
)


def assess(case: Case) -> Assessment | None:
    found = convoys(case, FUTEX)
    convoy = next((one for one in found if one.tasks > 1), found[0] if found else None)
    if convoy is None:
        return None
    limits = case.limits
    is_long = convoy.longest.seconds >= limits.least_s and convoy.total_s >= limits.total_s
    culprit = convoy.culprit(case.node)
    program = convoy.longest.task.comm
    who = _name(convoy.holder, program) if convoy.holder else "another thread"
    is_shared = convoy.tasks > 1 and convoy.longest.futex is not None
    of_whom = "their own program" if convoy.tasks > 1 else "its own program"
    against = [
        case.evidence(f"the holder itself was held up: {wait.words()}", "waits")
        for wait in convoy.chain[-1:]
        if wait.channel.kind not in (UNANSWERED, STOPPED)
    ]
    doubt = limits.elsewhere if against else 0.0
    queued_s = _queued_s(case, convoy.longest.task.pid)
    is_crowded = any(
        link.is_for_a_core and not (link.by and link.by.policy in REAL_TIME)
        for link in convoy.chain[:1]
    )
    if is_crowded or queued_s >= limits.queued * convoy.total_s:
        text = f"threads of {program} waited {queued_s:.1f} s for a core meanwhile"
        against, doubt = [case.evidence(text, "waits"), *against], limits.crowded
    return Assessment(
        explains=0.9,
        is_confirmed=is_long and is_shared and convoy.holder is not None,
        doubt=doubt,
        evidence=[*convoy.evidence(case), *suffering(case)],
        against=against,
        summary=(
            f"{convoy.tasks} thread{'s' if convoy.tasks > 1 else ''} of {program} waited up to"
            f" {convoy.longest.seconds:.1f} s for a lock of {of_whom} that {who} held"
            f"{convoy.because}"
        ),
        culprit=culprit,
        origin=convoy.origin(case.node),
        fix=(_look_inside(culprit.pid),) if culprit and culprit.pid else (),
    )


def _queued_s(case: Case, pid: int) -> float:
    """How long threads of this process waited for a core meanwhile, in all: short waits too."""
    rows = case.node.columns("waits")
    rows = rows.at((rows["kind"] == RUNNABLE) & (rows["pid"] == pid)).within([case.window])
    return float(whole_waits(rows)["waited_ns"].sum()) / NS_PER_S


def _name(holder: Waiter, program: str) -> str:
    """Threads without a name of their own have the program's, which tells nothing here."""
    return holder.comm if holder.comm != program else f"its thread {holder.tid}"


def _look_inside(pid: int) -> str:
    return (
        f"gdb -p {pid} --batch -ex 'thread apply all bt'  # while it is slow, to see what the"
        f" holder does; stops it for a moment (of Python: py-spy dump --pid {pid})"
    )


CAUSE = Cause(
    slug="user-lock-convoy",
    title="threads of one program queue for a lock of that program",
    confirming=(
        "waits of two threads and more in futex(2) for one lock that is held, a second and more in"
        " all, and the thread that gave it back"
    ),
    would_confirm="a profile of waits with the program's own stacks (gdb, py-spy dump)",
    assess=assess,
    thresholds=LIMITS,
    fix=(
        "hold the lock for less: move slow work (I/O, allocation, logging) out of the section",
        "split the lock, or give each thread its own part",
    ),
    verify=("no more waits of kind `futex` of that program are recorded (table `waits`)",),
    will_not_help=(
        WillNotHelp("kernel tuning", "the kernel only puts the threads to sleep"),
        WillNotHelp("more threads or cores", "they wait in the same queue"),
    ),
)
