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

from dataclasses import replace
from typing import Final

from necroscope.analysis.case import Case
from necroscope.analysis.cause import Assessment, Cause, Signature
from necroscope.analysis.functions import functions
from necroscope.analysis.report import Evidence, WillNotHelp
from necroscope.analysis.stacks import INTERRUPT
from necroscope.analysis.task_origin import origin_of
from necroscope.analysis.thresholds import Threshold, Thresholds
from necroscope.analysis.waits import SPINS, WAITS, holders

SIGNATURE: Final = Signature(
    SPINS,
    "spinning for a lock",
    # What an interrupt spins for is not the work of the task on the core.
    without=INTERRUPT,
    least=Threshold(0.1, "half of what confirms: short waits for busy locks are everywhere"),
    confirmed=Threshold(0.2, "a fifth of the core only waits; openzfs #10547 saw 75 %"),
)
LIMITS: Final = Thresholds(
    same_lock=Threshold(0.5, "most waits are below one function: one lock, not many short ones"),
)


def assess(case: Case) -> Assessment | None:
    found = SIGNATURE.match(case)
    if found is None:
        return None
    # A task that spins before it sleeps for a mutex or rwsem wants it for what called both.
    (wanted_for, part), *_ = found.own.of(SPINS).callers(WAITS) or [("", 0.0)]
    if not wanted_for:
        return None
    lock = functions(wanted_for)
    of_all = found.own.total / case.samples.now.total
    wide = found.own.share(SPINS | lock) * of_all
    found = replace(found, culprit=case.culprit(lock), explains=max(found.share, wide))
    below = f"{part:.0%} of it below {wanted_for}, which has {found.own.share(lock) * of_all:.0%}"
    return found.assessment(
        summary=(
            f"{found.who} and others spin for the lock of {wanted_for}: {found.share:.0%} of what"
            f" {case.place} does is waiting"
        ),
        origin=origin_of(found.culprit),
        evidence=[
            case.evidence(f"{below} of the samples", "samples", case.core),
            *_holder(case, wanted_for),
        ],
        fix=(
            (
                f"find what makes {wanted_for} slow or frequent for {found.who}: a long list behind"
                " the lock, one object shared by all"
            ),
        ),
        is_confirmed=part >= case.limits.same_lock,
    )


def _holder(case: Case, wanted_for: str) -> list[Evidence]:
    found = holders(case.samples.machine, wanted_for)[:1]
    text = f"is most often in {wanted_for} without waiting: it has the lock"
    return [case.evidence(f"{holder.comm} {text}", "samples") for holder in found]


CAUSE = Cause(
    slug="spinlock-contention",
    title="tasks on several cores spin for one lock",
    confirming=(
        "waits for a spin lock in a fifth of the core's samples, most of them below one function"
    ),
    would_confirm=(
        "which lock it is, and how long each task holds it: perf lock contention -ab (5.19 and"
        " later)"
    ),
    assess=assess,
    signature=SIGNATURE,
    thresholds=LIMITS,
    fix=(
        "share less: one file, queue or table per worker instead of one for all",
        "shorten what is done under the lock: fewer entries in the list that is walked there",
        "fewer threads at once: throughput rises when they do not contend",
    ),
    verify=("the slow path is gone from the profile, and the same work takes less system time",),
    will_not_help=(
        WillNotHelp(
            "blaming the spin function",
            "it is where tasks wait, whatever they wait for",
        ),
        WillNotHelp("more cores", "each extra core is one more that spins"),
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
