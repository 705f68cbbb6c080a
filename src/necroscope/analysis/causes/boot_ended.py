"""The kernel of this node ended without a shutdown: a panic, a reset, a loss of power.

Signature: the first recorder of the next boot finds that the recording of the boot before was cut
off, and what its kernel said last in pstore, in a crash dump or in the journal.
Confirming signal: the kernel's own line `Kernel panic - not syncing`. Without it only that it ended
is known: a watchdog of the hardware, a hypervisor and a power supply leave no words.
Source: kernel/panic.c, Documentation/admin-guide/ramoops.rst, kdump(8), systemd-pstore(8).
"""

from typing import Final

from necroscope.analysis.case import Case
from necroscope.analysis.cause import Assessment, Cause
from necroscope.analysis.episodes import touches
from necroscope.analysis.evidence import of_event
from necroscope.analysis.happenings import ENDED_KINDS
from necroscope.analysis.report import Evidence, WillNotHelp
from necroscope.model.span import Span
from necroscope.model.units import NS_PER_S, format_moment

_BEFORE_NS: Final = 120 * NS_PER_S
_MOST: Final = 4
# Panics that a core or task which gets nowhere causes by a setting (kernel.softlockup_panic, ...).
_BY_STALL: Final = ("softlockup", "hard LOCKUP", "hung_task", "RCU Stall", "rcu", "watchdog")


def assess(case: Case) -> Assessment | None:
    events = case.events_of(*ENDED_KINDS)
    if not events:
        return None
    reason = next(
        (reason for event in events if isinstance(reason := event.fields.get("reason"), str)), None
    )
    end_ns = max(event.time_ns for event in events)
    before = _seconds_before(case, end_ns)
    what = f"kernel panic: {reason}" if reason else "no panic or shutdown was recorded"
    return Assessment(
        explains=1.0 if reason else 0.6,
        is_confirmed=reason is not None,
        evidence=[*(of_event(case, event) for event in events[:_MOST]), *before],
        summary=f"this node's kernel ended at {format_moment(end_ns)}: {what}",
        fix=_fix(reason, bool(before)),
    )


def _seconds_before(case: Case, end_ns: int) -> list[Evidence]:
    """What was wrong in the last two minutes that were recorded."""
    around = Span(end_ns - _BEFORE_NS, end_ns + 1)
    held = [
        episode
        for episode in case.node.episodes
        if episode.is_strong and touches(episode.span, around)
    ]
    held.sort(key=lambda episode: episode.span[1], reverse=True)
    return [case.evidence(e.text, e.table, e.cpu, e.span) for e in held[:_MOST]]


def _fix(reason: str | None, has_before: bool) -> tuple[str, ...]:
    if reason is None:
        return (
            "look for a reset at that time in `ipmitool sel list` or the cloud's console output",
            "keep the next kernel's last log lines: set up pstore (ramoops or EFI) or kdump",
        )
    if any(one in reason for one in _BY_STALL):
        look = (
            "see the incidents just before it for what held the core: a setting made that a panic"
        )
        return (look,) if has_before else ()
    return ("search for known bugs in the function at RIP in the trace and in its module",)


CAUSE = Cause(
    slug="boot-ended",
    title="the kernel of this node ended without a shutdown",
    confirming="the kernel's own panic message, kept by pstore, a crash dump or the journal",
    would_confirm="pstore or kdump: neither kept the end of the kernel's log",
    assess=assess,
    fix=("the last seconds are in this recording: `necroscope view --at` the time of the end",),
    verify=("no further event `boot_ended`",),
    will_not_help=(
        WillNotHelp("rebooting again", "what brought the kernel down is still installed"),
    ),
)
