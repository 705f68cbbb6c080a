"""The case of one incident: all that causes ask for, of its time and core, beside the quiet time
before it.
"""

from functools import cached_property
from typing import Any, Final

from necroscope.analysis.attribution import culprit_of
from necroscope.analysis.case_counters import CaseCounters
from necroscope.analysis.correlate import Gathered, JoinedEvent
from necroscope.analysis.differential import Differential, compared
from necroscope.analysis.episodes import Kind, Span, joined
from necroscope.analysis.functions import Functions
from necroscope.analysis.node import Node
from necroscope.analysis.report import Culprit, Evidence
from necroscope.analysis.stacks import Stacks
from necroscope.model.units import NS_PER_S

_MACHINE_BEFORE_NS: Final = 20 * NS_PER_S
_FEW_CORES: Final = 4


class Case(CaseCounters):
    """`now` and `before` are samples of the incident's core, `machine` and `machine_before` of all
    cores.
    """

    def __init__(self, node: Node, gathered: Gathered) -> None:
        super().__init__(node, gathered)
        self.events: tuple[JoinedEvent, ...] = gathered.events

    @cached_property
    def now(self) -> Stacks:
        """What ran on the core in the incident; of an incident without a core, on all cores."""
        if self.core is None:
            return self.machine
        return self._core_samples.where([self.core], self.spans)

    @cached_property
    def before(self) -> Stacks:
        """What ran on the core in quiet time."""
        if self.core is None:
            return self.machine_before
        return self._core_samples.where([self.core], self.quiet)

    @cached_property
    def machine(self) -> Stacks:
        """What ran on all cores in the incident."""
        return self._machine_samples.where(None, self.spans, self.node.cores)

    @cached_property
    def elsewhere(self) -> Stacks:
        """What ran on the other cores in the incident."""
        others = [cpu for cpu in self.node.cpus if cpu != self.core]
        return self._machine_samples.where(others, self.spans)

    @cached_property
    def machine_before(self) -> Stacks:
        """What ran on all cores in quiet time."""
        return self._machine_samples.where(None, self._machine_quiet, self.node.cores)

    def culprit(
        self, group: Functions | None = None, inside: Functions | None = None
    ) -> Culprit | None:
        """Who was in these functions on the core, else on the machine; without a group: whose
        weight rose most on the core.
        """
        found = culprit_of(
            self.now,
            self.before,
            self.node,
            group,
            inside,
            is_interrupt=self.mode in ("softirq", "irq"),
        )
        if found is None and self.core is not None and group is not None:
            return culprit_of(
                self.machine, self.machine_before, self.node, group, inside, is_interrupt=False
            )
        return found

    @cached_property
    def differential(self) -> Differential:
        """Paths that came and went on the core, beside quiet time."""
        return compared(self.now, self.before)

    def has_share(self, culprit: Culprit | None) -> float:
        """Of what ran on the core (of an incident without a core: on all): the culprit's own."""
        if culprit is None or culprit.comm is None or not self.now.total:
            return 0.0
        return self.now.of_task(culprit.comm, culprit.cgroup, culprit.pid).total / self.now.total

    def rows(self, table: str, before_s: float = 0, after_s: float = 2) -> list[dict[str, Any]]:
        """Rows of any table around the incident, as dictionaries; of one that lasts for hours, of
        its first.
        """
        end_ns = min(self.window[1], self.node.span[1])
        span = self.window[0] - round(before_s * NS_PER_S), end_ns + round(after_s * NS_PER_S)
        self.node.looked_at.add(table)
        found: list[dict[str, Any]] = self.node.recording.rows(table, *span).to_pylist()
        return found

    @property
    def tasks(self) -> list[dict[str, Any]]:
        """Rows of `tasks` of the core, captured in the incident by a trigger: policy, cpus_allowed,
        syscall, file, stack.
        """
        self.node.looked_at.add("tasks")
        return self._tasks

    @cached_property
    def _tasks(self) -> list[dict[str, Any]]:
        return [row for row in self.rows("tasks") if self.core is None or row["cpu"] == self.core]

    def events_of(self, *kinds: str) -> list[JoinedEvent]:
        return [event for event in self.events if event.kind in kinds]

    def has(self, *kinds: Kind) -> bool:
        """Whether such an episode belongs to the incident, on its core or the machine."""
        return any(
            episode.kind in kinds and episode.cpu in (self.core, None) for episode in self.episodes
        )

    def seen(
        self, text: str, table: str | None = None, cpu: int | None = None, span: Span | None = None
    ) -> Evidence:
        """A piece of evidence; without a stretch of its own it speaks of the incident."""
        from_ns, to_ns = span or self.window
        return Evidence(text, from_ns, to_ns, cpu, table)

    @cached_property
    def _core_samples(self) -> Stacks:
        reach = joined([*self.spans, *self.quiet])
        # On few cores one read tells all there is.
        cpus = [self.core] if self.core is not None and self.node.cores > _FEW_CORES else None
        return self.node.stacks((reach[0][0], reach[-1][1]), cpus)

    @cached_property
    def _machine_samples(self) -> Stacks:
        if self.node.cores <= _FEW_CORES:
            return self._core_samples
        reach = joined([*self.spans, *self._machine_quiet])
        return self.node.stacks((reach[0][0], reach[-1][1]), None)

    @property
    def _machine_quiet(self) -> list[Span]:
        last = self.quiet[-1] if self.quiet else None
        return [(max(last[0], last[1] - _MACHINE_BEFORE_NS), last[1])] if last else []
