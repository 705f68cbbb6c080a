"""One handler holds a core inside softirqs or interrupts: a timer, a poll, the way of each packet.

Signature: the core is in softirqs or interrupts, and one function below the doors that all of them
share has most of that time: IPVS estimation in a timer, a driver's poll that does not end, a list
that each packet is held against. No task asks for it, so no task shows it.
Confirming signal: half of the core's time and more inside interrupts, and most of that below one
function; where packets are what it handles, they are few for that time: each takes ten times what a
packet takes. Many packets that are short are `softirq-storm`.
Source: Alibaba Cloud Linux, IPVS estimation_timer (100 to 200 ms); Cloudflare 2015, tcp_collapse;
NVIDIA/NVSentinel #1334 (a core for 63 h in a NAPI poll); kernel/softirq.c, kernel/time/timer.c.
"""

from collections.abc import Iterator
from dataclasses import dataclass
from typing import Final

from necroscope.analysis.case import Case
from necroscope.analysis.cause import Assessment, Cause
from necroscope.analysis.evidence import in_samples, suffering, what_held_the_core
from necroscope.analysis.functions import functions
from necroscope.analysis.interrupt_culprit import interrupt_culprit
from necroscope.analysis.kernel_sections import KernelSection, interrupt_section
from necroscope.analysis.packet_senders import LOCAL_SENDS, RECEIVE, packet_source
from necroscope.analysis.populations import Population, all_populations
from necroscope.analysis.report import Evidence, Origin, WalkedState, WillNotHelp
from necroscope.analysis.stacks import INTERRUPT
from necroscope.analysis.state_maker import maker_of
from necroscope.analysis.thresholds import Threshold, Thresholds
from necroscope.analysis.walked_names import likeness
from necroscope.model.span import Span
from necroscope.model.units import NS_PER_S

# How the core came there, and the column of `softirqs` that counts it.
_KINDS: Final = (
    ("timer", "timers", functions("run_timer_softirq __run_timers call_timer_fn expire_timers")),
    ("hrtimer", "timers", functions("hrtimer_run_softirq hrtimer_interrupt __hrtimer_run_queues")),
    ("net_rx", "packets", RECEIVE | LOCAL_SENDS),
    ("net_tx", "packets to send", functions("net_tx_action")),
    ("rcu", "freed objects", functions("rcu_core* rcu_do_batch")),
    ("block", "completed requests", functions("blk_done_softirq blk_complete_reqs")),
    ("tasklet", "tasklets", functions("tasklet_action* tasklet_hi_action")),
)
LIMITS: Final = Thresholds(
    least=Threshold(0.3, "of what runs in interrupts: less is what any core does"),
    in_interrupts=Threshold(0.5, "of the core's time: what is left is not enough for its tasks"),
    one_handler=Threshold(0.6, "of that time below one function: others hardly count"),
    slow_us=Threshold(50.0, "for one packet: it takes 1 to 10 us, 20 if a hundred sockets get it"),
    many=Threshold(200.0, "objects of the kind that the handler names: enough to be what is long"),
)


@dataclass(frozen=True, slots=True)
class _Held:
    """What one handler does on a core: `kind` and `words` say how it is entered."""

    section: KernelSection
    kind: str
    words: str
    packet_us: float | None

    @property
    def where(self) -> str:
        """`neigh_timer_handler`, or with the function in it that has most of the time."""
        inner = self.section.path[-1] if self.section.path else self.section.function
        outer = self.section.function
        return outer if inner == outer else f"{outer}, mostly in {inner},"


def assess(case: Case) -> Assessment | None:
    now = case.samples.now
    if case.core is None or now.share(INTERRUPT) < case.limits.least:
        return None
    section = interrupt_section(now)
    if section is None:
        return None
    own = now.share(functions(section.function), INTERRUPT)
    if own < case.limits.one_handler * now.share(INTERRUPT):
        return None
    held = _held(case, section)
    population = _population(case, section)
    origin, origin_evidence = _origin(case, held, population)
    made_of = f" over {_count(case, population):,} {population.words}" if population else ""
    fed_by = f", fed by {origin.name}" if origin else ""
    return Assessment(
        explains=section.share,
        is_confirmed=_is_long(case, held),
        evidence=[
            in_samples(case, section.functions, f"{section.function}, in interrupts"),
            *_rates(case, held),
            *origin_evidence,
            *what_held_the_core(case),
            *suffering(case),
        ],
        would_confirm="the core's time inside interrupts, and how many there were",
        summary=(
            f"{held.where} held core {case.core} inside {held.words} for {case.seconds:.1f} s"
            f"{case.beat}{made_of}{fed_by}"
        ),
        culprit=interrupt_culprit(case, section.functions),
        origin=origin,
        walked=WalkedState(
            section.function,
            population.kind if population else None,
            _count(case, population) if population else None,
        ),
    )


def _held(case: Case, section: KernelSection) -> _Held:
    own = case.samples.now.of(section.functions)
    kind, words = "", "interrupts"
    shares = [(own.share(group, INTERRUPT), name, what) for name, what, group in _KINDS]
    share, name, what = max(shares)
    if share >= case.limits.one_handler:
        kind, words = name, f"softirqs ({what})"
    return _Held(section, kind, words, _packet_us(case) if kind == "net_rx" else None)


def _packet_us(case: Case) -> float | None:
    """The core's time in receiving, by packet; None if packets were not counted."""
    processed = case.counters.rate("softnet", "processed", cpu=case.core).now
    if processed is None:
        return None
    return 1e6 * case.samples.now.time_share(RECEIVE, INTERRUPT) / max(processed, 1.0)


def _is_long(case: Case, held: _Held) -> bool:
    if case.samples.now.time_share(INTERRUPT) < case.limits.in_interrupts:
        return False
    if held.kind != "net_rx":
        return True
    return held.packet_us is not None and held.packet_us >= case.limits.slow_us


def _population(case: Case, section: KernelSection) -> Population | None:
    """What the functions name, if there is much of it."""
    names = (section.function, *section.path)
    span = Span(case.node.span[0], case.node.span[1])
    found = [
        one
        for one in all_populations(case.node, span).values()
        if likeness(names, one) and _count(case, one) >= case.limits.many
    ]
    # One with a name of its own says more than the slab cache of the same objects.
    return max(
        found,
        key=lambda one: (likeness(names, one), not one.kind.startswith("slab:"), _count(case, one)),
        default=None,
    )


def _count(case: Case, population: Population) -> int:
    return round(float(population.at(case.window[1] + 11 * NS_PER_S)))


def _origin(
    case: Case, held: _Held, population: Population | None
) -> tuple[Origin | None, list[Evidence]]:
    """Who made what is walked, else who sends what is handled."""
    made = maker_of(case, population, held.section, None) if population else None
    if made is not None:
        return made[0], [case.evidence(made[1], "populations")]
    return (packet_source(case) if held.kind == "net_rx" else None), []


def _rates(case: Case, held: _Held) -> Iterator[Evidence]:
    share = case.samples.now.time_share(INTERRUPT)
    yield case.evidence(
        f"the core spent {share:.0%} of its time inside interrupts", "samples", case.core
    )
    if held.packet_us is not None:
        processed = case.counters.rate("softnet", "processed", cpu=case.core)
        yield case.evidence(
            f"{processed.now or 0:,.0f} packets/s ({processed.before or 0:,.0f}/s before):"
            f" {held.packet_us:,.0f} us each; 10 us is usual",
            "softnet",
            case.core,
        )
    elif held.kind:
        runs = case.counters.rate("softirqs", held.kind, cpu=case.core).now
        if runs:
            took_ms = 1e3 * share / runs
            text = f"{runs:,.0f} runs of the {held.kind} softirq per second, {took_ms:,.1f} ms each"
            yield case.evidence(text, "softirqs", case.core)


CAUSE = Cause(
    slug="interrupt-handler",
    title="one handler holds a core inside softirqs or interrupts",
    confirming=(
        "half of the core's time inside interrupts, most of it below one function; packets take"
        " ten times as long each as they should"
    ),
    assess=assess,
    thresholds=LIMITS,
    fix=(
        "give the handler less to walk: fewer objects, sockets, rules or ports of that kind",
        "until then move the interrupt or the timer's owner to a core that nothing else needs",
        "if a driver's poll does not end, reset the device: ip link set DEVICE down and up",
    ),
    verify=("the core's softirq share falls to a few per cent, and the handler's runs are short",),
    will_not_help=(
        WillNotHelp(
            "a higher priority for the tasks on that core",
            "interrupts run before any task, whatever its priority",
        ),
        WillNotHelp(
            "more CPU for the container", "the time is not charged to it, and it is one core's"
        ),
        WillNotHelp(
            "a longer backlog or receive ring", "packets behind the handler only wait longer"
        ),
    ),
    yields_to=frozenset(
        [
            "netfilter-rules",
            "spinlock-contention",
            "ebpf-overhead",
            "tlb-shootdown",
            "nic-device-fault",
            "vm-steal",
        ]
    ),
)
