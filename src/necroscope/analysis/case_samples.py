"""Who ran: the samples of an incident's time and core, and of its quiet time."""

from functools import cached_property
from typing import Final

from necroscope.analysis.attribution import culprit_of
from necroscope.analysis.case_times import CaseTimes
from necroscope.analysis.differential import Differential, compare_stacks
from necroscope.analysis.functions import Functions
from necroscope.analysis.node import Node
from necroscope.analysis.report import Culprit
from necroscope.analysis.stacks import Stacks
from necroscope.model.span import Span, merge
from necroscope.model.units import NS_PER_S

_MACHINE_BEFORE_NS: Final = 20 * NS_PER_S
_FEW_CORES: Final = 4


class CaseSamples:
    """`now` and `before` are of the incident's core, `machine` and `machine_before` of all
    cores.
    """

    def __init__(self, node: Node, times: CaseTimes, core: int | None) -> None:
        self._node = node
        self._times = times
        self._core = core

    @cached_property
    def now(self) -> Stacks:
        """What ran on the core in the incident; of an incident without a core, on all cores."""
        if self._core is None:
            return self.machine
        return self._core_samples.where([self._core], self._times.spans)

    @cached_property
    def before(self) -> Stacks:
        """What ran on the core in quiet time."""
        if self._core is None:
            return self.machine_before
        return self._core_samples.where([self._core], self._times.quiet)

    @cached_property
    def machine(self) -> Stacks:
        """What ran on all cores in the incident."""
        return self._machine_samples.where(None, self._times.spans, self._node.cores)

    @cached_property
    def elsewhere(self) -> Stacks:
        """What ran on the other cores in the incident."""
        others = [cpu for cpu in self._node.cpus if cpu != self._core]
        return self._machine_samples.where(others, self._times.spans)

    @cached_property
    def machine_before(self) -> Stacks:
        """What ran on all cores in quiet time."""
        return self._machine_samples.where(None, self._machine_quiet, self._node.cores)

    @cached_property
    def differential(self) -> Differential:
        """Paths that came and went on the core, compared with quiet time."""
        return compare_stacks(self.now, self.before)

    def culprit(
        self, node: Node, group: Functions | None, inside: Functions | None, is_interrupt: bool
    ) -> Culprit | None:
        """Who was in these functions on the core, else on the machine; without a group: whose
        weight rose most on the core.
        """
        found = culprit_of(self.now, self.before, node, group, inside, is_interrupt)
        if found is None and self._core is not None and group is not None:
            return culprit_of(self.machine, self.machine_before, node, group, inside, False)
        return found

    def share_of(self, culprit: Culprit | None) -> float:
        """Of what ran on the core (of an incident without a core: on all): the culprit's own."""
        if culprit is None or culprit.comm is None or not self.now.total:
            return 0.0
        return self.now.of_task(culprit.comm, culprit.cgroup, culprit.pid).total / self.now.total

    @cached_property
    def _core_samples(self) -> Stacks:
        reach = merge([*self._times.spans, *self._times.quiet])
        # On few cores one read tells all there is.
        is_one = self._core is not None and self._node.cores > _FEW_CORES
        return self._node.stacks(
            Span(reach[0][0], reach[-1][1]), [self._core or 0] if is_one else None
        )

    @cached_property
    def _machine_samples(self) -> Stacks:
        if self._node.cores <= _FEW_CORES:
            return self._core_samples
        reach = merge([*self._times.spans, *self._machine_quiet])
        return self._node.stacks(Span(reach[0][0], reach[-1][1]), None)

    @property
    def _machine_quiet(self) -> list[Span]:
        last = self._times.quiet[-1] if self._times.quiet else None
        return [Span(max(last[0], last[1] - _MACHINE_BEFORE_NS), last[1])] if last else []
