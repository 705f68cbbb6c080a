"""Softirqs are held back on one core: the task on it has bottom halves or interrupts off.

Signature: a busy core on which no softirq of any kind runs, or on which raised ones wait a tenth of
a second and more, timers and packets alike; hard interrupts may still come, so the clock ticks.
ksoftirqd shows little: it is not even woken.
Confirming signal: raise-to-entry waits of two kinds of softirqs or of timers (which every tick
raises), or all counters of /proc/softirqs frozen on a busy core, or time that no mode accounts for;
and the core in the kernel meanwhile. Time in no mode is many short stretches, and none of them a
stall, if the core was sampled all along: a sample takes an interrupt. Time that all cores at work
lose at once is not a task's doing: the host stopped the virtual machine, or firmware the whole one.
Source: Documentation/trace/events-irq; kernel/softirq.c; amzn-drivers #220 (21 s without NAPI, and
not the driver's fault).
"""

from typing import Final

import numpy as np

from necroscope.analysis.case import Case
from necroscope.analysis.cause import Assessment, Cause
from necroscope.analysis.episodes import EpisodeKind, coincide
from necroscope.analysis.evidence import suffering, what_held_the_core
from necroscope.analysis.report import Evidence, WillNotHelp
from necroscope.analysis.stacks import SOFTIRQ
from necroscope.analysis.task_origin import origin_of
from necroscope.analysis.thresholds import Threshold, Thresholds
from necroscope.model.definitions import STALL_NS
from necroscope.model.units import NS_PER_S, format_duration

_VECTORS: Final = ("timer", "net_rx", "net_tx", "sched", "rcu", "tasklet", "block", "hi", "hrtimer")
LIMITS: Final = Thresholds(
    stall_s=Threshold(STALL_NS / NS_PER_S, "what every part of necroscope calls a stall"),
    mostly=Threshold(0.5, "of the samples: who has most of the core holds it"),
    in_softirq=Threshold(0.3, "of the core's time: it delays softirqs by running others"),
    in_kernel=Threshold(0.2, "of the core's time: with less, no kernel code can hold them back"),
    idle=Threshold(0.5, "a core that idles shows nothing of a machine that stood still"),
    few=Threshold(0.1, "so few cores went on working while the others lost the same time"),
)


def assess(case: Case) -> Assessment | None:
    delays = {
        name: wait_s
        for name in _VECTORS
        if (wait_s := case.counters.softirq_delay_s([name]) or 0.0) >= case.limits.stall_s
    }
    frozen = case.has(EpisodeKind.SOFTIRQ_FROZEN)
    missing = case.has(EpisodeKind.TIME_MISSING) and not _was_sampled_all_along(case)
    if case.core is None or not (delays or frozen or missing):
        return None
    evidence = [*_waits(case, delays), *suffering(case), *what_held_the_core(case)]
    in_softirq = case.samples.now.share(SOFTIRQ)
    kernel = case.counters.share("kernel")
    against, doubt = _against(case, in_softirq, kernel)
    culprit = case.culprit()
    longest_s = max(
        [
            0.0,
            *delays.values(),
            *(e.level for e in case.episodes if e.kind is EpisodeKind.SOFTIRQ_FROZEN),
        ]
    )
    who = (
        f"{culprit.comm} "
        if culprit and case.samples.share_of(culprit) >= case.limits.mostly
        else "something "
    )
    return Assessment(
        explains=0.9,
        is_confirmed=frozen or missing or len(delays) >= 2 or "timer" in delays,
        evidence=evidence,
        against=against,
        doubt=doubt,
        would_confirm=(
            "a second kind of softirq that waits too (BPF on irq:softirq_raise and softirq_entry)"
        ),
        summary=(
            f"{who}held back all softirqs of core {case.core}, for up to"
            f" {format_duration(round(longest_s * NS_PER_S))} at a time{case.beat}"
        ),
        culprit=culprit,
        origin=origin_of(culprit),
    )


def _was_sampled_all_along(case: Case) -> bool:
    """Whether no stretch of a stall's length is without a sample while time went missing."""
    spans = [e.span for e in case.episodes if e.kind is EpisodeKind.TIME_MISSING]
    for span in spans:
        inside = case.samples.now.where([case.core or 0], [span]).samples.time_ns
        ends = np.concatenate(([span.from_ns], np.sort(inside), [span.to_ns]))
        if np.diff(ends).max() >= case.limits.stall_s * NS_PER_S:
            return False
    return bool(spans)


def _waits(case: Case, delays: dict[str, float]) -> list[Evidence]:
    if not delays:
        return []
    wait_texts = ", ".join(
        f"{name} {wait_s * 1000:.0f} ms"
        for name, wait_s in sorted(delays.items(), key=lambda item: -item[1])
    )
    return [
        case.evidence(
            f"raised softirqs waited on core {case.core}: {wait_texts}", "softirq_delay", case.core
        )
    ]


def _against(case: Case, in_softirq: float, kernel: float | None) -> tuple[list[Evidence], float]:
    """A core busy with softirqs delays the next ones itself; one that did not run at all was not
    held by a task.
    """
    if in_softirq >= case.limits.mostly:
        return [
            case.evidence(
                f"the core spent {in_softirq:.0%} of its samples in softirqs itself",
                "samples",
                case.core,
            )
        ], 0.7
    booked = case.counters.share("softirq") or 0.0
    if booked >= case.limits.in_softirq:
        return [
            case.evidence(
                f"the core spent {booked:.0%} of its time in softirqs itself", "cores", case.core
            )
        ], 0.7
    if (
        kernel is not None
        and kernel < case.limits.in_kernel
        and not case.has(EpisodeKind.TIME_MISSING)
    ):
        return [
            case.evidence(f"the core was only {kernel:.0%} in the kernel", "cores", case.core)
        ], 0.5
    if _all_waited(case):
        return [
            case.evidence(
                "softirqs waited on all cores: a virtual machine looks the same while its host"
                " does not run it",
                "softirq_delay",
            )
        ], 0.6
    if len(lost := _cores_missing_together(case)) > 1:
        text = (
            f"{len(lost)} cores lost the same time and the others were idle: a machine looks the"
            " same while its host or firmware stops it"
        )
        return [case.evidence(text, "cores")], 0.6
    return [], 0.0


def _all_waited(case: Case) -> bool:
    cpus = np.unique(case.counters.columns("cores")["cpu"]).tolist()
    return len(cpus) > 1 and all(
        (case.counters.softirq_delay_s(cpu=cpu) or 0.0) >= case.limits.stall_s for cpu in cpus
    )


def _cores_missing_together(case: Case) -> set[int | None]:
    """Cores that lost time together with this one, if those that did not were idle, or few."""
    own = [
        episode.span
        for episode in case.episodes
        if episode.kind is EpisodeKind.TIME_MISSING and episode.cpu == case.core
    ]
    missing = [
        episode for episode in case.node.episodes if episode.kind is EpisodeKind.TIME_MISSING
    ]
    lost = {episode.cpu for episode in missing if any(coincide(episode.span, span) for span in own)}
    ran = [
        cpu
        for cpu in case.node.cpus
        if cpu not in lost and (case.counters.share("idle", cpu) or 0.0) < case.limits.idle
    ]
    return set() if len(ran) > case.limits.few * len(lost) else lost


CAUSE = Cause(
    slug="softirq-blackout",
    title="softirqs are held back on one core",
    confirming=(
        "waits of two kinds of softirqs or of timers, frozen softirq counters on a busy core, or"
        " time in no mode"
    ),
    assess=assess,
    thresholds=LIMITS,
    fix=(
        (
            "stop or fix what runs with bottom halves or interrupts off for that long: a lock like"
            " spin_lock_bh, a driver's loop"
        ),
        "until then keep it off the cores that serve network queues",
    ),
    verify=("the longest raise-to-entry wait of that core stays below 10 ms (`necroscope top`)",),
    will_not_help=(
        WillNotHelp(
            "a higher priority for ksoftirqd",
            "softirqs are disabled, not outrun; the thread cannot run them either",
        ),
        WillNotHelp(
            "a larger receive ring or backlog",
            "it hides milliseconds; the wait is a hundred times that",
        ),
        WillNotHelp("more network queues", "those polled on this core still wait"),
    ),
    yields_to=frozenset({"*", "irq-core-collision"}),
)
