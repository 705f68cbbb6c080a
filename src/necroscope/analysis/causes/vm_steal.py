"""The hypervisor did not run this machine's cores.

Signature: steal time on some or all cores, work that takes longer than its CPU time, timers and
clock reads late, on several guests of one host at the same time; nothing in the guest grows.
Confirming signal: steal time of a fifth of a core and more, several times the usual, for seconds.
Source: Documentation/filesystems/proc.rst (steal); log lines of the clock watchdog with long
delays.
"""

from typing import Final

from necroscope.analysis.case import Case
from necroscope.analysis.cause import Assessment, Cause
from necroscope.analysis.evidence import suffering, what_held_the_core
from necroscope.analysis.report import Culprit, Origin, WillNotHelp
from necroscope.analysis.thresholds import Threshold, Thresholds

LIMITS: Final = Thresholds(
    least=Threshold(0.1, "half of what confirms: hosts take a few per cent all day"),
    confirmed=Threshold(0.2, "a fifth of a core: work takes a quarter longer than its CPU time"),
    times_usual=Threshold(
        3.0, "a burstable instance that is always short of credits is not an incident"
    ),
)


def assess(case: Case) -> Assessment | None:
    whole = case.counters.machine_share("steal") or 0.0
    steal = (case.counters.share("steal") if case.core is not None else whole) or 0.0
    if steal < case.limits.least:
        return None
    before = case.counters.share_before("steal") or 0.0
    late = case.events_of("clocksource_unstable", "hrtimer_slow")
    place = f"core {case.core}" if case.core is not None else "all cores"
    kernel = case.counters.share("kernel") or 0.0
    taken = f"{steal:.0%} of {place} was stolen by the hypervisor ({before:.0%} before)"
    return Assessment(
        explains=steal / max(steal, kernel, case.limits.confirmed),
        is_confirmed=steal >= case.limits.confirmed and steal >= case.limits.times_usual * before,
        evidence=[
            case.evidence(taken, "cores", case.core),
            case.evidence(f"{whole:.0%} over all cores of this machine", "cores"),
            *(case.evidence(event.happening.message, "events") for event in late[:2]),
            *what_held_the_core(case)[:1],
            *suffering(case),
        ],
        summary=(
            f"the hypervisor took {steal:.0%} of {place} away for {case.seconds:.0f} s; nothing"
            " in this machine caused it"
        ),
        culprit=Culprit(),
        origin=Origin("host", "hypervisor"),
    )


CAUSE = Cause(
    slug="vm-steal",
    title="the hypervisor took the cores away",
    confirming="steal time of a fifth of a core and three times its usual",
    would_confirm="steal time of other guests on the same host in the same minutes",
    assess=assess,
    thresholds=LIMITS,
    fix=(
        (
            "move the machine to another host (stop and start it), or to an instance type with"
            " cores of its own"
        ),
        "on burstable instances: check whether the CPU credits are used up",
    ),
    verify=("the steal column of `mpstat -P ALL 1` stays near zero",),
    will_not_help=(
        WillNotHelp("kernel tuning in the guest", "the guest is not running in that time"),
        WillNotHelp(
            "pinning and priorities",
            "they divide the time that the hypervisor gives, not what it takes",
        ),
    ),
)
