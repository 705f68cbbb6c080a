"""The network device, its firmware, its link or its interrupt failed; no core was starved.

Signature: a reset or time-out line of the driver while the core that polls the queue had time and
its softirqs ran: keep-alive lost, completions or an interrupt that never came, a hung transmit
unit, a health check of the firmware.
Confirming signal: the driver says that NAPI was not waiting (`napi scheduled: 0`), or the line is
of a kind that only a device gives (keep-alive, lost interrupt, admin queue, health, unit hang); or
the core that polls the queue was recorded all that time and was not held. Where the recording has a
gap it is not known how the core was.
Source: amzn-drivers ena_netdev.c (reset reasons 1, 3, 10, 14, 18, 20), mlx5 health.c, i40e_main.c.
"""

from typing import Final

from necroscope.analysis.case import Case
from necroscope.analysis.case_times import TICK_NS
from necroscope.analysis.cause import Assessment, Cause
from necroscope.analysis.device_counters import CounterKind
from necroscope.analysis.episodes import SUFFERING, EpisodeKind, touches
from necroscope.analysis.event_cores import JoinedEvent
from necroscope.analysis.evidence import of_event
from necroscope.analysis.happenings import NIC_KINDS
from necroscope.analysis.report import Culprit, Evidence, Origin, WillNotHelp
from necroscope.analysis.thresholds import Threshold, Thresholds
from necroscope.analysis.traffic import of_devices
from necroscope.model.definitions import STALL_NS
from necroscope.model.span import Span
from necroscope.model.units import NS_PER_S

# Kinds that a starved core does not cause by itself.
_OF_THE_DEVICE: Final = frozenset(
    {
        "nic_keepalive_timeout",
        "nic_lost_interrupt",
        "nic_admin_queue_stopped",
        "nic_health",
        "nic_tx_hang",
        "nic_reset_failed",
    }
)
# Counters of the reset's dump that say whose fault it was (ENA from 2.10 on).
_DEVICE_COUNTERS: Final = (
    "missing_tx_cmpl",
    "missing_intr",
    "missing_first_intr",
    "missing_admin_interrupt",
    "admin_to",
    "wd_expired",
)
_FAULTS: Final = frozenset({CounterKind.FAULT})
_STARVED: Final = frozenset({CounterKind.STARVED})
LIMITS: Final = Thresholds(
    recorded=Threshold(0.8, "of the time before the line, to say that a core was not held in it"),
    in_kernel=Threshold(0.7, "of the core's time: with more, its poll may have had no turn"),
    stall_s=Threshold(
        STALL_NS / NS_PER_S, "a softirq that stalled says that the core was not well"
    ),
)
_PATTERNS_OF_THE_DEVICE: Final = (
    "ena.keepalive",
    "ena.msix",
    "ena.admin_queue",
    "mlx5.health",
    "intel.tx_hang",
)


def assess(case: Case) -> Assessment | None:
    events = [
        event for event in case.events if event.kind in NIC_KINDS and event.kind != "nic_reset_done"
    ]
    if not events:
        return None
    starved = _starvation(case, events)
    reasons = [reason for event in events if (reason := _device_reason(event))]
    reasons += [] if starved else [item.text for item in of_devices(case, _FAULTS)]
    device = next((event.happening.device for event in events if event.happening.device), None)
    was_well = _core_was_well(case)
    evidence = [
        *(of_event(case, event) for event in events[:3]),
        *(case.evidence(reason, "events", case.core) for reason in reasons[:3]),
    ]
    if was_well is not None:
        evidence.append(was_well)
    beside = (
        " while the core that polls it had time"
        if was_well is not None
        else ", and no core is known to have been held"
    )
    return Assessment(
        explains=0.9 if reasons else 0.5,
        is_confirmed=bool(reasons) or (was_well is not None and not starved),
        evidence=evidence,
        against=starved,
        doubt=0.85 if starved else 0.0 if reasons or was_well is not None else 0.2,
        would_confirm=(
            "the driver's reset reason (ethtool -S: missing_tx_cmpl, missing_intr) and a core that"
            " was not held"
        ),
        summary=f"{device or 'a network device'} was reset or stalled{beside}",
        culprit=Culprit(comm=None),
        origin=Origin("device", device) if device else None,
    )


def _device_reason(event: JoinedEvent) -> str | None:
    """What in the driver's words speaks for the device."""
    fields = event.fields
    if event.kind in _OF_THE_DEVICE or str(event.happening.pattern or "").startswith(
        _PATTERNS_OF_THE_DEVICE
    ):
        return f"{event.kind} blames the device, not a core"
    if fields.get("napi_scheduled") == 0:
        return "the driver says that NAPI was not waiting to run (napi scheduled: 0)"
    counters = fields.get("counters")
    risen = [name for name in _DEVICE_COUNTERS if isinstance(counters, dict) and counters.get(name)]
    starved = isinstance(counters, dict) and counters.get("suspected_poll_starvation")
    return f"the driver counts {risen[0]}" if risen and not starved else None


def _starvation(case: Case, events: list[JoinedEvent]) -> list[Evidence]:
    """What speaks for a starved core instead."""
    found = []
    for event in events:
        if event.fields.get("napi_scheduled") == 1 or event.kind == "nic_napi_starved":
            found.append(
                case.evidence(
                    "the driver says that NAPI was scheduled and did not run", "events", event.core
                )
            )
            break
    found += of_devices(case, _STARVED)
    held = [
        e
        for e in case.episodes
        if e.is_strong
        and e.cpu == case.core
        and (e.kind in SUFFERING or e.kind is EpisodeKind.SATURATED)
    ]
    return [*found, *(case.evidence(e.text, e.table, e.cpu, e.span) for e in held[:2])]


def _core_was_well(case: Case) -> Evidence | None:
    """The polling core had time, and its softirqs ran at once; of a queue whose core is not known,
    all cores. None if not so.
    """
    if case.core is None:
        return _all_were_well(case)
    kernel, delay_s = case.counters.share("kernel"), _measured_delay_s(case)
    if kernel is None or kernel > case.limits.in_kernel or (delay_s or 0.0) >= case.limits.stall_s:
        return None
    if not _is_covered(case, "cores") or (delay_s is None and not _is_covered(case, "softirqs")):
        return None
    waits = f", its softirqs waited {delay_s * 1000:.0f} ms at most" if delay_s is not None else ""
    return case.evidence(
        f"core {case.core}, which polls the queue, was {kernel:.0%} in the kernel{waits}",
        "cores",
        case.core,
    )


def _all_were_well(case: Case) -> Evidence | None:
    held = [
        e
        for e in case.node.episodes
        if e.is_strong and e.cpu is not None and touches(e.span, case.window)
    ]
    delay_s = _measured_delay_s(case)
    if held or delay_s is None or delay_s >= case.limits.stall_s or not _is_covered(case, "cores"):
        return None
    return case.evidence(
        f"no core was held, and no softirq of any core waited longer than {delay_s * 1000:.0f} ms",
        "softirq_delay",
    )


def _measured_delay_s(case: Case) -> float | None:
    """The longest wait of a softirq; None if none was measured in that time."""
    rows = case.counters.columns("softirq_delay").of_core(case.core).within([_until_line(case)])
    return case.counters.softirq_delay_s() if len(rows) else None


def _is_covered(case: Case, table: str) -> bool:
    """Whether rows of the core, or of all cores, cover nearly all of that time."""
    recorded_s = (
        case.counters.columns(table).of_core(case.core).within([_until_line(case)]).elapsed_s
    )
    cores = case.node.cores if case.core is None else 1
    return recorded_s >= case.limits.recorded * cores * (case.window[1] - case.window[0]) / NS_PER_S


def _until_line(case: Case) -> Span:
    """Rows come at the end of a tick."""
    return Span(case.window[0], case.window[1] + TICK_NS)


CAUSE = Cause(
    slug="nic-device-fault",
    title="the network device failed, not a core",
    confirming=(
        "a reset reason that only a device gives, or a reset while the core that polls the queue"
        " had time"
    ),
    assess=assess,
    thresholds=LIMITS,
    fix=(
        (
            "update the driver and firmware; give the lines and `ethtool -S` to the vendor or the"
            " cloud's support"
        ),
        "move the workload to another instance or host: a device fault stays with its host",
    ),
    verify=(
        (
            "no further reset in /sys/class/net/DEV/queues/tx-*/tx_timeout and in `ethtool -S`"
            " (total_resets)"
        ),
    ),
    will_not_help=(
        WillNotHelp("moving interrupts or pinning tasks", "the core that polls the queue had time"),
        WillNotHelp("larger rings", "completions or interrupts did not come at all"),
    ),
)
