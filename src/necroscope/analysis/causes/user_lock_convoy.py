"""Threads or processes of a program stand behind a lock of their own, held by another of them.

Signature: threads asleep in futex(2) for a lock that is held and waited for, of one process (or of
several that share memory), for hundreds of milliseconds; cores idle or not, nothing in the kernel
is slow.
Confirming signal: such waits by two threads or more at one address, a second and more in all, and
the thread that gave the lock back (it woke them by futex(2), not by a signal or its exit). A thread
alone at its address may wait for work: some condition variables and semaphores look like a lock
then. A semaphore that processes share is a lock if one that had waited for it gave it to another,
and its holder ran, slept until a timer ended or was held up. Who gives a semaphore without ever
waiting for it gives work, and one that sleeps to read has it while all of them wait for work. If
the threads waited for a core as well, a holder without a core is why. The kernel only puts threads
to sleep here and is never to blame. A holder that has no core because it runs below those who wait
(SCHED_IDLE, nice) is an inversion of priorities, however much the machine has to do. A holder that
slept in the kernel or got no core behind a real-time task meanwhile is followed there.
Source: Roblox, Consul and BoltDB's free list (2021); futex(2), sem_overview(7); glibc
nptl/lowlevellock.c, nptl/sem_waitcommon.c.
"""

from typing import Final

from necroscope.analysis.case import Case
from necroscope.analysis.cause import Assessment, Cause
from necroscope.analysis.convoy import Convoy
from necroscope.analysis.convoys import convoys
from necroscope.analysis.evidence import suffering
from necroscope.analysis.report import WillNotHelp
from necroscope.analysis.task_waits import RUNNABLE, Waiter, whole_waits
from necroscope.analysis.thresholds import Threshold, Thresholds
from necroscope.analysis.wait_channels import ASLEEP, FUTEX, SEMAPHORE, STOPPED, UNANSWERED
from necroscope.model.definitions import ORDINARY, REAL_TIME
from necroscope.model.units import NS_PER_S

_BACKGROUND: Final = ("idle", "batch")
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
    found = [
        *convoys(case, FUTEX),
        *(one for one in convoys(case, SEMAPHORE) if _is_lock(case, one)),
    ]
    found.sort(key=lambda one: (one.tasks > 1, one.total_s), reverse=True)
    if not found:
        return None
    convoy = found[0]
    limits = case.limits
    is_long = convoy.longest.seconds >= limits.least_s and convoy.total_s >= limits.total_s
    culprit = convoy.culprit(case.node)
    program = convoy.longest.task.comm
    who = _name(convoy.holder, program) if convoy.holder else "another thread"
    is_shared = convoy.tasks > 1 and convoy.longest.futex is not None
    against = [
        case.evidence(f"the holder itself was held up: {wait.words()}", "waits")
        for wait in convoy.chain[-1:]
        if wait.channel.kind not in (UNANSWERED, STOPPED, ASLEEP)
    ]
    doubt = limits.elsewhere if against else 0.0
    queued_s = _queued_s(case, convoy.longest.task.pid)
    rank = _lower_rank(case, convoy)
    is_crowded = any(
        link.is_for_a_core and not (link.by and link.by.policy in REAL_TIME)
        for link in convoy.chain[:1]
    )
    if rank:
        against, doubt = [], 0.0
    elif is_crowded or queued_s >= limits.queued * convoy.total_s:
        text = f"threads of {program} waited {queued_s:.1f} s for a core meanwhile"
        against, doubt = [case.evidence(text, "waits"), *against], limits.crowded
    return Assessment(
        explains=0.9,
        is_confirmed=is_long and is_shared and convoy.holder is not None,
        doubt=doubt,
        evidence=[*convoy.evidence(case), *suffering(case)],
        against=against,
        summary=(
            f"{_who_waited(convoy)} waited up to {convoy.longest.seconds:.1f} s for"
            f" {_what(convoy)} that {who} held{rank or convoy.because}"
        ),
        culprit=culprit,
        origin=convoy.origin(case.node),
        fix=(_look_inside(culprit.pid),) if culprit and culprit.pid else (),
    )


def _is_lock(case: Case, convoy: Convoy) -> bool:
    """A semaphore that one gives to the next, and who had it was at work, asleep or held up: one
    that waits to read has it while all of them wait for work (multiprocessing.Pool).
    """
    is_had = bool(convoy.chain) or convoy.holder_worked(case)
    return convoy.tasks > 1 and convoy.is_handed_on and is_had


def _lower_rank(case: Case, convoy: Convoy) -> str:
    """That the holder had no core because it runs below those who wait for its lock, if so: the
    machine may have room for all but it.
    """
    rows = convoy.holder_queued(case)
    if rows is None or not convoy.longest.is_ordinary:
        return ""
    policy, nice = str(rows["policy"][-1]), int(rows["priority"][-1])
    if policy not in _BACKGROUND and (policy not in ORDINARY or nice <= convoy.longest.priority):
        return ""
    own = policy if policy in _BACKGROUND else f"nice {nice}"
    return f", which had no core: it runs as {own}, below the tasks that wait for it"


def _who_waited(convoy: Convoy) -> str:
    many = "s" if convoy.tasks > 1 else ""
    if convoy.longest.channel.kind == SEMAPHORE:
        return f"{convoy.tasks} process{'e' if many else ''}{many} of {convoy.waiters}"
    return f"{convoy.tasks} thread{many} of {convoy.longest.task.comm}"


def _what(convoy: Convoy) -> str:
    if convoy.longest.channel.kind == SEMAPHORE:
        return "a semaphore"
    return f"a lock of {'their' if convoy.tasks > 1 else 'its'} own program"


def _queued_s(case: Case, pid: int) -> float:
    """How long threads of this process waited for a core meanwhile, in all: short waits too."""
    rows = case.node.columns("waits")
    rows = rows.at((rows["kind"] == RUNNABLE) & (rows["pid"] == pid)).within([case.window])
    return float(whole_waits(rows)["waited_ns"].sum()) / NS_PER_S


def _name(holder: Waiter, program: str) -> str:
    """Threads without a name of their own have the program's, which tells nothing here."""
    if holder.comm != program:
        return holder.comm
    return f"its thread {holder.tid}" if holder.pid != holder.tid else f"{program}[{holder.pid}]"


def _look_inside(pid: int) -> str:
    return (
        f"gdb -p {pid} --batch -ex 'thread apply all bt'  # while it is slow, to see what the"
        f" holder does; stops it for a moment (for Python: py-spy dump --pid {pid})"
    )


CAUSE = Cause(
    slug="user-lock-convoy",
    title="threads or processes of one program queue for a lock of that program",
    confirming=(
        "waits of two or more threads in futex(2) for one held lock, or of processes for a"
        " semaphore that they hand on, a second or more in all, and the task that released it"
    ),
    would_confirm="a profile of waits with the program's own stacks (gdb, py-spy dump)",
    assess=assess,
    thresholds=LIMITS,
    fix=(
        (
            "hold the lock for less time: move slow work (I/O, allocation, logging) out of the"
            " section"
        ),
        "split the lock, or give each thread its own part",
        "in a thread of lower priority (idle, batch, nice), take no lock that others need",
    ),
    verify=(
        "no more waits of kind `futex` or `semaphore` of that program are recorded (table `waits`)",
    ),
    will_not_help=(
        WillNotHelp("kernel tuning", "the kernel only puts the threads to sleep"),
        WillNotHelp("more threads or cores", "they wait in the same queue"),
    ),
)
