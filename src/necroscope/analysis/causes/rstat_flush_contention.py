"""Readers of cgroup statistics meet at the lock under which the kernel sums them up.

Signature: several cores in system mode in cgroup_rstat_flush (since 6.16 css_rstat_flush) below
reads of memory.stat, io.stat or cpu.stat, with a spin lock's slow path in it; many live cgroups
that change all the time; interrupts are off under the lock.
Confirming signal: the flush in a quarter of a core's samples, and either waits for its lock or the
flush on several cores or of several readers at once. One reader with nothing to wait for is only a
slow read.
Source: xdp-project pull requests 93 and 94 (lock times of cgroup_rstat_lock);
kernel/cgroup/rstat.c.
"""

from typing import Final

from necroscope.analysis.case import Case
from necroscope.analysis.cause import Assessment, Cause, Signature
from necroscope.analysis.functions import functions
from necroscope.analysis.report import Evidence, WillNotHelp
from necroscope.analysis.task_origin import origin_of
from necroscope.analysis.thresholds import Threshold, Thresholds
from necroscope.analysis.waits import SPINS

FLUSHES: Final = functions(
    "cgroup_rstat_flush* __cgroup_rstat_flush* css_rstat_flush* cgroup_rstat_lock"
    " __cgroup_rstat_lock cgroup_rstat_updated_list css_rstat_updated_list mem_cgroup_flush_stats*"
    " __mem_cgroup_flush_stats do_flush_stats mem_cgroup_css_rstat_flush cgroup_base_stat_flush"
    " blkcg_rstat_flush __blkcg_rstat_flush"
)
SIGNATURE: Final = Signature(
    FLUSHES,
    "summing up cgroup statistics",
    least=Threshold(0.12, "half of what confirms: kubelet's ordinary reads stay below it"),
    confirmed=Threshold(0.25, "a quarter of a core under one lock is felt by every other reader"),
)
LIMITS: Final = Thresholds(
    waited=Threshold(0.02, "any wait for the lock at all: its holder has interrupts off"),
    elsewhere=Threshold(0.05, "other cores flush as well, so that they meet at the lock"),
)


def assess(case: Case) -> Assessment | None:
    found = SIGNATURE.match(case)
    if found is None:
        return None
    waited = case.samples.now.share(SPINS, inside=FLUSHES)
    elsewhere = case.samples.elsewhere.share(FLUSHES) if case.core is not None else 0.0
    readers = case.samples.machine.tasks(FLUSHES)
    is_contended = (
        waited >= case.limits.waited
        or elsewhere >= case.limits.elsewhere
        or (bool(readers) and readers[0].pid is None)
    )
    alone = case.evidence(
        "no task waits for the lock, and one reader does it all", "samples", case.core
    )
    return found.assessment(
        summary=(
            f"{found.who} makes the kernel sum up cgroup statistics under one lock:"
            f" {found.share:.0%} of what {case.place} does"
        ),
        origin=origin_of(found.culprit),
        evidence=_meetings(case, waited, elsewhere),
        fix=(
            (
                f"have {found.who} read memory.stat, io.stat and cpu.stat less often, or for"
                " fewer cgroups"
            ),
        ),
        is_confirmed=is_contended,
        against=() if is_contended else (alone,),
        doubt=0.0 if is_contended else 0.3,
    )


def _meetings(case: Case, waited: float, elsewhere: float) -> list[Evidence]:
    wait = f"{waited:.0%} of the core's samples wait for its lock"
    found = [case.evidence(wait, "samples", case.core)] if waited else []
    others = f"other cores do the same for {elsewhere:.0%} of what they do"
    return [*found, *([case.evidence(others, "samples")] if elsewhere else [])]


CAUSE = Cause(
    slug="rstat-flush-contention",
    title="readers of cgroup statistics contend for one lock",
    confirming=(
        "the flush of cgroup statistics in a quarter of a core's samples, with waits for its lock"
        " or several readers"
    ),
    would_confirm=(
        "waits for cgroup_rstat_lock (contention tracepoints) that end when readers pause"
    ),
    assess=assess,
    signature=SIGNATURE,
    thresholds=LIMITS,
    fix=(
        "use one reader for all: agents that each read every cgroup multiply the work",
        "use counters that need no flush: memory.current, memory.events, cpu.pressure",
        "newer kernels: threshold flushing (5.16 to 6.8), locks by subsystem (6.16)",
    ),
    verify=(
        (
            "a timed read of memory.stat of the busiest parent takes well under a millisecond while"
            " all agents run"
        ),
    ),
    will_not_help=(
        WillNotHelp(
            "more cores", "there are more per-core figures to sum up, and more readers to wait"
        ),
        WillNotHelp(
            "removing dead cgroups",
            "live ones change; dead ones have nothing to sum up",
        ),
    ),
)
