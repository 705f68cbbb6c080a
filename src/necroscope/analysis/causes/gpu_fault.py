"""The driver of a GPU reports an error: of the program that used it, of the driver, or of the card.

Signature: a line `NVRM: Xid (PCI:...): N` of the driver, with the program it happened to; jobs that
use the card die or hang.
Confirming signal: the line itself; what its number means says whose fault it is. A core that was
held or memory that ran short meanwhile is reported too, because a driver that gets no core times
out by itself (Xid 119, 120).
Source: NVIDIA, Xid errors (r555); open-gpu-kernel-modules #446, #1111; dcgm-exporter #84.
"""

from typing import Final, NamedTuple

from necroscope.analysis.case import Case
from necroscope.analysis.cause import Assessment, Cause
from necroscope.analysis.episodes import touches
from necroscope.analysis.event_cores import JoinedEvent
from necroscope.analysis.evidence import of_event
from necroscope.analysis.happenings import GPU_KINDS
from necroscope.analysis.report import Culprit, Evidence, Origin, WillNotHelp
from necroscope.model.span import Span
from necroscope.model.units import NS_PER_S, format_bytes


class Xid(NamedTuple):
    """`blames` is the program, the driver or the card."""

    meaning: str
    blames: str


_XIDS: Final = {
    13: Xid("the program made the card raise an exception", "the program"),
    31: Xid("the program touched memory that is not mapped", "the program"),
    43: Xid("the card stopped processing", "the program"),
    45: Xid("the program's channel was torn down, as after a kill", "the program"),
    48: Xid("memory of the card has an error that cannot be corrected", "the card"),
    61: Xid("the card's microcontroller halted", "the card"),
    62: Xid("the card's microcontroller halted", "the card"),
    63: Xid("a page or row of the card's memory was retired", "the card"),
    64: Xid("a page or row of the card's memory could not be retired", "the card"),
    74: Xid("NVLink has an error", "the card"),
    79: Xid("the card has fallen off the bus", "the card"),
    92: Xid("many errors of the card's memory were corrected", "the card"),
    94: Xid("an error of the card's memory was contained to one program", "the card"),
    95: Xid("an error of the card's memory was not contained", "the card"),
    109: Xid("the card was preempted for too long", "the program"),
    119: Xid("the card's system processor did not answer the driver in time", "the driver"),
    120: Xid("the card's system processor reported an error", "the driver"),
    140: Xid("memory of the card has an error that cannot be corrected", "the card"),
}
_AROUND_NS: Final = 30 * NS_PER_S
_MOST: Final = 3


def assess(case: Case) -> Assessment | None:
    events = case.events_of(*GPU_KINDS)
    if not events:
        return None
    first = events[0]
    number = first.fields.get("xid")
    known = _XIDS.get(number) if isinstance(number, int) else None
    lost = Xid("the card has fallen off the bus", "the card")
    fault = known or (lost if first.kind == "gpu_lost" else None)
    meaning = (
        f"Xid {number}: {fault.meaning}" if known and fault else fault.meaning if fault else None
    )
    device = first.happening.device or "a GPU"
    what = meaning or f"the driver reports Xid {number}, whose meaning is not known here"
    return Assessment(
        explains=1.0 if fault else 0.7,
        is_confirmed=True,
        evidence=[*(of_event(case, event) for event in events[:_MOST]), *_state(case)],
        summary=f"GPU {device}: {what}",
        culprit=_culprit(first, is_program=bool(fault and fault.blames == "the program")),
        origin=Origin("device", device),
        fix=_fix(fault),
    )


def _culprit(event: JoinedEvent, *, is_program: bool) -> Culprit:
    """Only where the number says that the program did it; the others are its victims."""
    what = event.happening
    return Culprit(what.comm, what.pid) if is_program else Culprit()


def _fix(fault: Xid | None) -> tuple[str, ...]:
    return {
        "the program": (
            "the program is at fault: run it under compute-sanitizer, or ask its owners",
        ),
        "the driver": (
            "update the driver and its firmware; until then reset the card or drain the node",
        ),
        "the card": (
            "drain the node, reset the card (nvidia-smi -r), and replace it if it returns",
        ),
    }.get(fault.blames if fault else "", ())


def _state(case: Case) -> list[Evidence]:
    """How the node was: the cores, memory, and what else was wrong at that time."""
    around = Span(case.window[0] - _AROUND_NS, case.window[1] + _AROUND_NS)
    shares = {
        mode: case.node.mode_share(mode, [around], None) for mode in ("user", "kernel", "idle")
    }
    texts = []
    if all(share is not None for share in shares.values()):
        parts = ", ".join(f"{share:.0%} {mode}" for mode, share in shares.items())
        texts.append((f"the cores were {parts} in the minute around it", "cores"))
    free = case.counters.level("memory", "available_bytes")
    if free is not None:
        texts.append((f"{format_bytes(round(free))} of memory were available", "memory"))
    held = [
        episode
        for episode in case.node.episodes
        if episode.is_strong and touches(episode.span, around)
    ]
    return [
        *(case.evidence(e.text, e.table, e.cpu, e.span) for e in held[:_MOST]),
        *(case.evidence(text, table, span=around) for text, table in texts),
    ]


CAUSE = Cause(
    slug="gpu-fault",
    title="the driver of a GPU reports an error",
    confirming="the driver's own line; its number says whether program, driver or card is at fault",
    would_confirm="`dmesg | grep Xid`, `nvidia-smi -q -d ECC,ROW_REMAPPER`",
    assess=assess,
    fix=("see whether the same card or the same program fails again: `necroscope fleet why`",),
    verify=("no further `NVRM: Xid` line",),
    will_not_help=(
        WillNotHelp("restarting the job on the same card", "a faulty card fails the next job too"),
        WillNotHelp(
            "reinstalling the driver for a program's fault", "Xid 13 and 31 are the program's own"
        ),
    ),
)
