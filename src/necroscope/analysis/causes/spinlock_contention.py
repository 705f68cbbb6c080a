"""Tasks on several cores spin for one lock of the kernel.

Signature: a spin lock's slow path (native_queued_spin_lock_slowpath and its like), a queued
rwlock's or an optimistic spin on top of the samples of several cores, below one and the same
function.
Confirming signal: such waits in a fifth of the core's samples, with the function below them known
and the same for most; the wait itself is never the answer. Causes that know the lock say it more
exactly.
Source: liburing #218; openzfs #10547 (75 % of the machine in the slow path);
kernel/locking/qspinlock.c.
"""

from typing import Final

from necroscope.analysis.case import Case
from necroscope.analysis.cause import Assessment, Cause
from necroscope.analysis.evidence import in_samples, suffering, what_held_the_core
from necroscope.analysis.functions import functions
from necroscope.analysis.report import WillNotHelp
from necroscope.analysis.stacks import INTERRUPT
from necroscope.analysis.task_origin import origin_of
from necroscope.analysis.waits import SPINS, WAITS, holders

_LEAST: Final = 0.1
_CONFIRMED: Final = 0.2
_SAME_LOCK: Final = 0.5


def assess(case: Case) -> Assessment | None:
    own = case.samples.now.without(INTERRUPT)
    of_all = own.total / case.samples.now.total if case.samples.now.total else 0.0
    spun = own.share(SPINS) * of_all
    if spun < _LEAST:
        return None
    # Whoever spins before it sleeps for a mutex or rwsem wants it for what called both.
    (wanted_for, part), *_ = own.of(SPINS).callers(WAITS) or [("", 0.0)]
    if not wanted_for:
        return None
    lock = functions(wanted_for)
    culprit = case.culprit(lock)
    who = culprit.comm if culprit else "tasks"
    having = holders(case.samples.machine, wanted_for)
    evidence = [
        in_samples(case, SPINS, "spinning for a lock"),
        case.seen(
            f"{part:.0%} of it below {wanted_for}, which has {own.share(lock) * of_all:.0%} of the"
            " samples",
            "samples",
            case.core,
        ),
        *what_held_the_core(case),
    ]
    if having:
        evidence.append(
            case.seen(
                f"{having[0].comm} is in {wanted_for} without waiting most often: it has the lock",
                "samples",
            )
        )
    return Assessment(
        explains=max(spun, own.share(SPINS | lock) * of_all),
        is_confirmed=spun >= _CONFIRMED and part >= _SAME_LOCK,
        evidence=[*evidence, *suffering(case)],
        would_confirm=(
            "which lock it is, and who holds it how long: perf lock contention -ab (5.19 and later)"
        ),
        summary=(
            f"{who} and others spin for the lock of {wanted_for}: {spun:.0%} of what"
            f" {case.place} does is waiting"
        ),
        culprit=culprit,
        origin=origin_of(culprit),
        fix=(
            (
                f"find what makes {wanted_for} slow or frequent for {who}: a long list behind the"
                " lock, one object shared by all"
            ),
        ),
    )


CAUSE = Cause(
    slug="spinlock-contention",
    title="tasks on several cores spin for one lock",
    confirming=(
        "waits for a spin lock in a fifth of the core's samples, most of them below one function"
    ),
    assess=assess,
    fix=(
        "share less: a file, queue or table for each worker instead of one for all",
        "shorten what is done under the lock: fewer entries in the list that is walked there",
        "fewer threads at once: throughput rises when they do not meet",
    ),
    verify=("the slow path is gone from the profile, and the same work takes less system time",),
    will_not_help=(
        WillNotHelp(
            "naming the spin function as the cause",
            "it is where tasks wait, whatever they wait for",
        ),
        WillNotHelp("more cores", "one more core is one more that spins"),
    ),
    # All that know which lock it is; what only suffers from it (softirq-blackout) has to yield to
    # this one.
    yields_to=frozenset(
        [
            "path-lookup-contention",
            "rstat-flush-contention",
            "tlb-shootdown",
            "dentry-walk",
            "memcg-limit-reclaim",
            "direct-reclaim",
            "kswapd-reclaim",
            "compaction-stall",
            "page-fault-storm",
            "fsnotify-storm",
            "mountinfo-reparse",
            "fork-exec-churn",
            "ebpf-overhead",
            "netfilter-rules",
            "softirq-storm",
            "proc-net-scan",
            "zombie-memcg-walk",
            "irq-core-collision",
            "rt-hog",
        ]
    ),
)
