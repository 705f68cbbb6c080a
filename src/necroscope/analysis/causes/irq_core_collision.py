"""Kernel work that does not yield is on the very core that polls a network device.

Signature: the core is 100 % in system mode (not softirq) in one path of one task, and the thread
that must take packets there (napi/DEVICE-N, or ksoftirqd up to Linux 6.4) is runnable all that time
and does not run. Softirq counters of packets stand still, time_squeeze stays flat, and a driver's
reset names this core.
Confirming signal: the thread's wait on that core during the stretches of system time, or a driver
that says that its poll was scheduled and did not run, joined to this core.
Source: ENA_Linux_Best_Practices.rst (amzn-drivers); GitHub 2019, "Debugging network stalls on
Kubernetes"; Pinterest 2026; commits 4cd13c21b207 (v4.9) and d15121be7485 (v6.5) for what ksoftirqd
has to do with it.
"""

from typing import Final

from necroscope.analysis.case import Case
from necroscope.analysis.cause import Assessment, Cause
from necroscope.analysis.episodes import Episode, EpisodeKind
from necroscope.analysis.event_cores import JoinedEvent
from necroscope.analysis.evidence import suffering, what_held_the_core
from necroscope.analysis.report import Culprit, Evidence, WillNotHelp
from necroscope.analysis.stacks import INTERRUPT, SOFTIRQ
from necroscope.analysis.task_origin import origin_of
from necroscope.analysis.thresholds import Threshold, Thresholds
from necroscope.model.definitions import STALL_NS
from necroscope.model.units import NS_PER_S

LIMITS: Final = Thresholds(
    mostly=Threshold(0.5, "of the core in system mode, and of its samples: who holds it"),
    waited=Threshold(0.3, "of the incident: the poll's thread waited a third of it"),
    enough_s=Threshold(5.0, "after 5 s a driver resets its queue, however long the rest lasts"),
    stall_s=Threshold(STALL_NS / NS_PER_S, "timers that stall too are not held by a task"),
)
# The pattern of ENA's line that its poll is scheduled and does not run.
_STARVED: Final = "ena.napi_starved"


def assess(case: Case) -> Assessment | None:
    waits = [
        e for e in case.episodes if e.kind is EpisodeKind.THREAD_DELAYED and e.cpu == case.core
    ]
    starved = [
        event for event in case.events if _says_poll_starved(event) and event.core == case.core
    ]
    system = case.counters.share("system") or 0.0
    if (
        case.core is None
        or case.mode != "system"
        or system < case.limits.mostly
        or not (waits or starved)
    ):
        return None
    if case.samples.now.share(SOFTIRQ) >= case.limits.mostly:
        return None
    waited_s = sum(episode.amount for episode in waits)
    culprit = case.culprit()
    against, doubt = _against(case, waits)
    path = f" in {culprit.path[-1]}" if culprit and culprit.path else ""
    who = culprit.comm if culprit else "a task"
    held = f"core {case.core} in the kernel{path} for {case.seconds:.1f} s{case.beat}"
    return Assessment(
        explains=system,
        is_confirmed=waited_s >= case.limits.waited * min(case.seconds, case.limits.enough_s)
        or bool(starved),
        evidence=[*what_held_the_core(case), *_work(case, culprit), *suffering(case)],
        against=against,
        doubt=doubt,
        would_confirm=(
            "the run delay of the napi or ksoftirqd thread of that core (/proc/PID/schedstat) in"
            " the same seconds"
        ),
        summary=f"{who} {_took(case, culprit)} {held}, and the network poll on it had to wait",
        culprit=culprit,
        origin=origin_of(culprit),
        fix=_fix(case, culprit),
    )


def _says_poll_starved(event: JoinedEvent) -> bool:
    """In a line of its own, or in one of those that the log tells as one reset."""
    lines = event.fields.get("line_counts")
    is_said = isinstance(lines, dict) and _STARVED in lines
    return event.kind == "nic_napi_starved" or is_said or event.fields.get("napi_scheduled") == 1


def _against(case: Case, waits: list[Episode]) -> tuple[list[Evidence], float]:
    """Where softirqs themselves are held back it is that; but up to 6.4 a ksoftirqd that waits
    holds them back too.
    """
    timer_s = case.counters.softirq_delay_s(["timer"]) or 0.0
    is_ksoftirqd = any((episode.subject or "").startswith("ksoftirqd/") for episode in waits)
    if is_ksoftirqd or (
        timer_s < case.limits.stall_s
        and not case.has(EpisodeKind.SOFTIRQ_FROZEN, EpisodeKind.TIME_MISSING)
    ):
        return [], 0.0
    return [
        case.evidence("softirqs of other kinds did not run either", "softirq_delay", case.core)
    ], 0.7


def _work(case: Case, culprit: Culprit | None) -> list[Evidence]:
    """The path, and the system call with its file where a trigger caught it."""
    found = []
    if culprit and culprit.path:
        kernel = case.samples.now.without(INTERRUPT).kernel_share
        found.append(
            case.evidence(
                f"{' > '.join(culprit.path[-4:])}; {kernel:.0%} in the kernel", "samples", case.core
            )
        )
    for row in case.tasks:
        if culprit and row["comm"] == culprit.comm and (row["file"] or row["syscall"]):
            what = (
                f"{row['syscall'] or 'a system call'} of {row['file']}"
                if row["file"]
                else f"system call {row['syscall']}"
            )
            return [*found, case.evidence(f"{culprit.comm} was in {what}", "tasks", case.core)]
    return found


def _took(case: Case, culprit: Culprit | None) -> str:
    share = case.samples.share_of(culprit)
    return "held" if share >= case.limits.mostly else f"had {share:.0%} of"


def _fix(case: Case, culprit: Culprit | None) -> tuple[str, ...]:
    if culprit is None or culprit.pid is None or case.node.cores < 2:
        return ()
    # A kernel thread that is bound to its core refuses it (PF_NO_SETAFFINITY).
    if "kthread" in culprit.path:
        return ()
    others = _ranges([cpu for cpu in case.node.cpus if cpu != case.core])
    what = (
        f"a stop-gap: moves all threads of {culprit.comm} off the polling core, and overwrites"
        " masks they set"
    )
    return (f"taskset -apc {others} {culprit.pid}  # {what}",)


def _ranges(cpus: list[int]) -> str:
    """`0-36,38-127`: a line that names each core of a large machine is too long to be shown."""
    first = [cpu for cpu in cpus if cpu - 1 not in cpus]
    last = [cpu for cpu in cpus if cpu + 1 not in cpus]
    return ",".join(str(a) if a == b else f"{a}-{b}" for a, b in zip(first, last, strict=True))


CAUSE = Cause(
    slug="irq-core-collision",
    title="kernel work that does not yield shares the core with a network poll",
    confirming=(
        "the napi or ksoftirqd thread of the core waits while a task is in the kernel, or the"
        " driver names this core"
    ),
    assess=assess,
    thresholds=LIMITS,
    fix=(
        "remove the long kernel section: stop the task, or make it ask for less at a time",
        (
            "until then keep it and the queue apart: IRQ affinity, IRQBALANCE_BANNED_CPUS, taskset,"
            " receive packet steering"
        ),
    ),
    verify=(
        (
            "the run delay of the napi and ksoftirqd threads of that core stays near zero (table"
            " `runqueue`)"
        ),
    ),
    will_not_help=(
        WillNotHelp(
            "a larger receive ring", "it holds milliseconds of packets; the section takes seconds"
        ),
        WillNotHelp("affinity of the application", "it is the victim; another task holds the core"),
        WillNotHelp(
            "a new network driver or instance",
            "the device was not to blame: its poll was due and got no time",
        ),
    ),
    # Work with a name of its own: what it is and how to be rid of it says more than whom it hit.
    yields_to=frozenset({"*"}),
)
