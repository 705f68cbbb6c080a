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
from necroscope.analysis.cause import Assessment, Cause
from necroscope.analysis.evidence_texts import in_samples, suffering, what_held_the_core
from necroscope.analysis.functions import functions
from necroscope.analysis.report import WillNotHelp
from necroscope.analysis.task_origin import origin_of
from necroscope.analysis.waits import SPINS

FLUSHES: Final = functions(
    "cgroup_rstat_flush* __cgroup_rstat_flush* css_rstat_flush* cgroup_rstat_lock"
    " __cgroup_rstat_lock cgroup_rstat_updated_list css_rstat_updated_list mem_cgroup_flush_stats*"
    " __mem_cgroup_flush_stats do_flush_stats mem_cgroup_css_rstat_flush cgroup_base_stat_flush"
    " blkcg_rstat_flush __blkcg_rstat_flush"
)
_LEAST: Final = 0.12
_CONFIRMED: Final = 0.25
_WAITED: Final = 0.02
_ELSEWHERE: Final = 0.05


def assess(case: Case) -> Assessment | None:
    held = case.now.share(FLUSHES)
    if held < _LEAST:
        return None
    waited = case.now.share(SPINS, inside=FLUSHES)
    elsewhere = case.elsewhere.share(FLUSHES) if case.core is not None else 0.0
    readers = case.machine.tasks(FLUSHES)
    is_contended = (
        waited >= _WAITED or elsewhere >= _ELSEWHERE or (bool(readers) and readers[0].pid is None)
    )
    culprit = case.culprit(FLUSHES)
    who = culprit.comm if culprit else "readers"
    evidence = [
        in_samples(case, FLUSHES, "summing up cgroup statistics"),
        *what_held_the_core(case),
    ]
    if waited:
        evidence.append(
            case.seen(
                f"{waited:.0%} of the core's samples wait for the lock of it", "samples", case.core
            )
        )
    if elsewhere:
        evidence.append(
            case.seen(f"other cores do the same for {elsewhere:.0%} of what they do", "samples")
        )
    against = (
        []
        if is_contended
        else [
            case.seen("nobody waits for the lock, and one reader does it all", "samples", case.core)
        ]
    )
    place = f"core {case.core}" if case.core is not None else "the node"
    return Assessment(
        explains=held,
        is_confirmed=held >= _CONFIRMED and is_contended,
        evidence=[*evidence, *suffering(case)],
        against=against,
        doubt=0.0 if is_contended else 0.3,
        would_confirm=(
            "waits for cgroup_rstat_lock (contention tracepoints) that end when readers pause"
        ),
        summary=(
            f"{who} has the kernel sum up cgroup statistics for {held:.0%} of what {place} does,"
            " under one lock"
        ),
        culprit=culprit,
        origin=origin_of(culprit),
        fix=(f"have {who} read memory.stat, io.stat and cpu.stat less often, or of fewer cgroups",),
    )


CAUSE = Cause(
    slug="rstat-flush-contention",
    title="readers of cgroup statistics meet at one lock",
    confirming=(
        "the flush of cgroup statistics in a quarter of a core's samples, with waits for its lock"
        " or several readers"
    ),
    assess=assess,
    fix=(
        "one reader for all: agents that each read every cgroup multiply the work",
        "counters that need no flush: memory.current, memory.events, cpu.pressure",
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
            "these are alive and change; the dead ones have nothing to sum up",
        ),
    ),
)
