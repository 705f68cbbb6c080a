"""The case of one incident, as one rule sees it: its times, counters and samples, and what the rule
may ask of them.
"""

from dataclasses import dataclass, replace
from functools import cached_property
from typing import Any, Final

from necroscope.analysis.case_counters import CaseCounters
from necroscope.analysis.case_samples import CaseSamples
from necroscope.analysis.case_times import CaseTimes
from necroscope.analysis.clusters import Cluster
from necroscope.analysis.episodes import Episode, EpisodeKind, touches
from necroscope.analysis.event_cores import JoinedEvent
from necroscope.analysis.functions import Functions
from necroscope.analysis.node import Node, NodeView
from necroscope.analysis.periodicity import describe_period
from necroscope.analysis.report import Culprit, Evidence
from necroscope.analysis.stacks import SOFTIRQ
from necroscope.analysis.task_waits import TaskWait
from necroscope.analysis.thresholds import NO_THRESHOLDS, Thresholds
from necroscope.model.span import Span
from necroscope.model.units import NS_PER_S

_IN_SOFTIRQ: Final = 0.5


@dataclass(frozen=True)
class Case:
    """`limits` are the thresholds of the rule that looks at it; `node` knows which tables that rule
    asked for.
    """

    node: NodeView
    cluster: Cluster
    times: CaseTimes
    samples: CaseSamples
    mode: str | None
    limits: Thresholds

    def for_rule(self, limits: Thresholds) -> "Case":
        """What is expensive is shared; the tables that a rule asks for are its own."""
        return replace(self, node=NodeView(self.node), limits=limits)

    @cached_property
    def counters(self) -> CaseCounters:
        return CaseCounters(self.node, self.times, self.core)

    @property
    def window(self) -> Span:
        return self.cluster.span

    @property
    def core(self) -> int | None:
        return self.cluster.core

    @property
    def episodes(self) -> tuple[Episode, ...]:
        return self.cluster.episodes

    @property
    def events(self) -> tuple[JoinedEvent, ...]:
        return self.cluster.events

    @property
    def seconds(self) -> float:
        return self.times.seconds

    @cached_property
    def period_s(self) -> float | None:
        return self.times.period_s(self.mode)

    @property
    def place(self) -> str:
        """`core 39`, or `the node` where it is on no core in particular."""
        return "the node" if self.core is None else f"core {self.core}"

    @property
    def beat(self) -> str:
        """`, every 10 s`, or nothing."""
        return f", {describe_period(self.period_s)}" if self.period_s else ""

    def culprit(
        self, group: Functions | None = None, inside: Functions | None = None
    ) -> Culprit | None:
        """Who was in these functions; without a group: whose weight rose most on the core."""
        return self.samples.culprit(self.node, group, inside, self.mode in ("softirq", "irq"))

    def rows(self, table: str, before_s: float = 0, after_s: float = 2) -> list[dict[str, Any]]:
        """Rows of any table around the incident, as dictionaries; of one that lasts for hours, of
        its first.
        """
        end_ns = min(self.window[1], self.node.span[1]) + round(after_s * NS_PER_S)
        return self.node.rows(table, Span(self.window[0] - round(before_s * NS_PER_S), end_ns))

    @cached_property
    def tasks(self) -> list[dict[str, Any]]:
        """Rows of `tasks` of the core, captured in the incident by a trigger: policy, cpus_allowed,
        syscall, file, stack.
        """
        return [row for row in self.rows("tasks") if self.core in (None, row["cpu"])]

    @cached_property
    def waits(self) -> list[TaskWait]:
        """Tasks that wanted this core, or slept for something that was held, in the incident."""
        self.node.asked.add("waits")
        return [wait for wait in self.node.waits if touches(wait.span, self.window)]

    def waits_for(self, kind: str) -> list[TaskWait]:
        """Sleeps for this kind of thing, of those that the incident is about."""
        subjects = {e.subject for e in self.episodes if e.kind is EpisodeKind.TASK_BLOCKED}
        return [w for w in self.waits if w.channel.kind == kind and w.subject in subjects]

    def events_of(self, *kinds: str) -> list[JoinedEvent]:
        return [event for event in self.events if event.kind in kinds]

    def has(self, *kinds: EpisodeKind) -> bool:
        """Whether such an episode belongs to the incident, on its core or the machine."""
        return any(
            episode.kind in kinds and episode.cpu in (self.core, None) for episode in self.episodes
        )

    def evidence(
        self, text: str, table: str | None = None, cpu: int | None = None, span: Span | None = None
    ) -> Evidence:
        """A piece of evidence; without a stretch of its own it speaks of the incident."""
        from_ns, to_ns = span or self.window
        return Evidence(text, from_ns, to_ns, cpu, table)


def case_of(node: Node, cluster: Cluster) -> Case:
    """Of all that was found, not yet as a rule sees it."""
    times = CaseTimes(node, cluster)
    samples = CaseSamples(node, times, cluster.core)
    mode = times.main_mode
    # Without IRQ_TIME_ACCOUNTING softirqs are booked as whatever the tick finds; samples see them.
    if mode in ("system", None) and cluster.core is not None and samples.now.total:
        mode = "softirq" if samples.now.share(SOFTIRQ) >= _IN_SOFTIRQ else mode
    return Case(NodeView(node), cluster, times, samples, mode, NO_THRESHOLDS)
