"""What a recording could not see of an incident, what that costs in confidence, and how to record
it.
"""

from collections.abc import Collection, Iterator
from dataclasses import dataclass
from typing import Final

from necroscope.analysis.case import Case
from necroscope.analysis.episodes import touches
from necroscope.analysis.node import Node
from necroscope.model.span import Span
from necroscope.model.units import NS_PER_S, format_duration

_FEW_SAMPLES: Final = 30
_SAMPLED: Final = 0.8
_SHORT_NS: Final = 10 * NS_PER_S
# Nothing has to happen in these: a gap says that they were not recorded of the table named,
# not by their having no rows. Events come from daemons too; those of the kernel are missing where
# its log is.
_OF_HAPPENINGS: Final = {"events": "log", "cgroup_ledger": "cgroup_ledger", "tasks": "tasks"}
# Read all the time, on a quiet node as well. The delay of softirqs is not: its probe rests where
# nothing waits.
_COUNTERS: Final = (
    "memory",
    "pressure",
    "softnet",
    "softirqs",
    "runqueue",
    "cgroups",
    "interrupts",
)
# Tables without which a class of causes cannot be named, and how to get them.
_WANTED: Final = {
    "samples": "record as root or with CAP_PERFMON, so that stacks are sampled",
    "softirq_delay": "record as root or with CAP_BPF, so that the delay of softirqs is measured",
    "events": "record with access to /dev/kmsg (CAP_SYSLOG), so that resets and lockups are seen",
    "interrupts": "record on the node itself: an import has no /proc/interrupts",
    "cgroup_ledger": "record as root, so that cgroups made and removed are counted by name",
    "memory": "/proc/vmstat has to be readable, or memory shortage is not seen",
    "cgroups": "/sys/fs/cgroup has to be mounted, or dead cgroups and quotas are not seen",
    "runqueue": "needs a kernel with CONFIG_SCHED_INFO, so that threads are seen to wait",
    "softnet": "/proc/net/softnet_stat has to be readable, or dropped packets are not seen",
    "pressure": (
        "needs a kernel with CONFIG_PSI (boot with psi=1), so that waits for memory and disks are"
        " seen"
    ),
    "tasks": "record as root, so that the task on a held core is described",
}


@dataclass(frozen=True, slots=True)
class Shortcoming:
    """In words; `factor` is what remains of the confidence."""

    text: str
    factor: float


def shortcomings(case: Case) -> list[Shortcoming]:
    """Of what this incident needs; empty where all was recorded."""
    return list(_of_case(case))


def find_gaps(case: Case, tables: Collection[str]) -> list[Shortcoming]:
    """Of what a rule looked at, what lies in a gap over the incident."""
    found = {table: case.counters.hidden_by(table) for table in _COUNTERS if table in tables}
    return [
        Shortcoming(f"the recording has a gap in {table} during the incident: {cause}", 0.9)
        for table, cause in found.items()
        if cause
    ]


def unrecorded(case: Case, tables: Collection[str]) -> str:
    """In words: which of these were not recorded, at all or in the incident. Silence of such a
    table says nothing.
    """
    found = [
        table
        for table in _COUNTERS
        if table in tables
        and (not case.counters.is_recorded(table) or case.counters.hidden_by(table))
    ]
    found += ["tasks"] if "tasks" in tables and not case.tasks else []
    return (
        f"{' and '.join(found)} {'was' if len(found) == 1 else 'were'} not recorded"
        if found
        else ""
    )


def lacking(node: Node) -> list[str]:
    """What the whole recording has not, in words, with how to record it."""
    found = _of_a_capture(node) if _is_capture(node) else _of_a_recording(node)
    if node.span[1] - node.span[0] < _SHORT_NS:
        length = format_duration(node.span[1] - node.span[0])
        found.insert(
            0,
            f"the recording is only {length} long: with a few minutes before the incident there is"
            " something to compare",
        )
    return found


def _is_capture(node: Node) -> bool:
    """Another tool's: the recorder reads these tables whatever it may do."""
    return not any(node.tables.get(table) for table in ("softirqs", "interrupts", "memory"))


def _of_a_capture(node: Node) -> list[str]:
    missing = ", ".join(table for table in _WANTED if not node.tables.get(table))
    estimated = "" if node.has_core_times else "the time of cores is estimated from samples; "
    return [
        (
            f"a capture of another tool: {estimated}{missing} are not in it: `necroscope record` on"
            " the node has them"
        )
    ]


def _of_a_recording(node: Node) -> list[str]:
    missed = {gap.table for gap in node.recording.gaps(*node.span)}
    found = [
        f"{table} was not recorded: {hint}"
        for table, hint in _WANTED.items()
        if _is_missing(table, node, missed)
    ]
    if not node.has_core_times:
        found.insert(
            0,
            "the time of cores was not recorded and is estimated from samples: use `necroscope"
            " record` on the node",
        )
    return found


def _is_missing(table: str, node: Node, missed: set[str]) -> bool:
    return not node.tables.get(table) and _OF_HAPPENINGS.get(table) in {None, *missed}


def _is_sampled(case: Case) -> bool:
    """Whether there are samples of nearly every second: at a lower rate, or with some lost, what
    ran is still seen.
    """
    seconds = {ns // NS_PER_S for ns in case.samples.now.samples.time_ns.tolist()}
    return (
        len(seconds)
        >= _SAMPLED * sum(to_ns - from_ns for from_ns, to_ns in case.times.spans) / NS_PER_S
    )


def _of_case(case: Case) -> Iterator[Shortcoming]:
    if case.node.span[1] - case.node.span[0] < _SHORT_NS:
        yield Shortcoming("the recording is too short to know what is usual", 0.9)
    if not case.node.has_core_times:
        yield Shortcoming("the time of cores is estimated from samples", 0.9)
    if not case.counters.is_recorded("samples"):
        yield Shortcoming("no stacks were sampled", 0.8)
    elif case.samples.now.total < _FEW_SAMPLES and case.mode in (
        "system",
        "softirq",
        "irq",
        "user",
    ):
        yield Shortcoming(
            f"only {case.samples.now.total} samples of the incident: record at a higher rate with"
            " --hz",
            0.85,
        )
    for gap in case.node.recording.gaps(*case.window):
        if (
            gap.table in ("*", "samples", "cores")
            and gap.to_ns > gap.from_ns
            and gap.cpu in (None, case.core)
        ):
            is_over = any(touches(span, Span(gap.from_ns, gap.to_ns)) for span in case.times.spans)
            if is_over and not (gap.table == "samples" and _is_sampled(case)):
                what = "everything" if gap.table == "*" else gap.table
                yield Shortcoming(
                    f"the recording has a gap in {what} during the incident: {gap.cause}", 0.85
                )
                break
    lines = [event.happening for event in case.events if event.happening.is_major]
    if lines and not any(line.by_kernel for line in lines):
        yield Shortcoming(
            "the log's lines were not written by the kernel itself but by a process with root's"
            " rights",
            0.85,
        )
    if not case.times.quiet:
        yield Shortcoming(
            "no quiet time was recorded to compare with: record some minutes before the incident",
            0.93,
        )
