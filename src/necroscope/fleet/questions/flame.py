"""`fleet flame`: where the cores of a group of nodes spent their time, by the minute summaries they
push; also of two groups.
"""

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any, Final, NamedTuple

from necroscope.errors import UsageError
from necroscope.fleet.ask import LakeQuestions, cheap_span
from necroscope.fleet.lake_tables import NodeKey
from necroscope.fleet.questions.node_choice import NodeIndex
from necroscope.fleet.questions.stack_sums import most_rows, sum_stacks
from necroscope.fleet.where import parse
from necroscope.model.span import Span
from necroscope.model.units import format_moment

SCHEMA: Final = 1
_MOST_STACKS: Final = 20_000
LEFT_OUT: Final = "(left out)"
PERIOD_NS: Final = 10_000_000


class FleetStack(NamedTuple):
    """Functions outermost first, joined by `;`; samples of the group, and of the baseline."""

    comm: str
    path: str
    samples: int
    baseline: int


@dataclass(frozen=True, slots=True)
class FlameAnswer:
    """`span` is what was added up: the end of what was asked where that is too much. `left_out`
    says in words what is missing.
    """

    span: Span
    where: str | None
    baseline: str | None
    nodes: int
    baseline_nodes: int
    stacks: tuple[FleetStack, ...]
    left_out: tuple[str, ...]

    def as_json(self) -> dict[str, Any]:
        return {
            "schema": SCHEMA,
            **self.span.as_json(),
            "where": self.where,
            "baseline": self.baseline,
            "nodes": self.nodes,
            "baseline_nodes": self.baseline_nodes,
            "samples": sum(stack.samples for stack in self.stacks),
            "baseline_samples": sum(stack.baseline for stack in self.stacks),
            "stacks": [list(stack) for stack in self.stacks],
            "left_out": list(self.left_out),
        }


def flame(
    questions: LakeQuestions, span: Span, where: str | None = None, baseline: str | None = None
) -> FlameAnswer:
    """Nodes are chosen by what happened and held in all of the span."""
    known = NodeIndex(questions, span)
    window = known.all() if where is None else parse(where).choose(known)
    other = frozenset[NodeKey]() if baseline is None else parse(baseline).choose(known)
    for name, nodes in ((where, window), (baseline, other)):
        if name is not None and not nodes:
            raise UsageError(
                f"no node is chosen by {name!r}", "see labels with: necroscope fleet nodes"
            )
    sides = {node: (node in window) + 2 * (node in other) for node in sorted(window | other)}
    looked = cheap_span(questions, "stack_minutes", span, most_rows() // 2)
    sums = sum_stacks(questions, looked, sides, 2)
    stacks = sorted(
        (FleetStack(*stack, *map(_samples, times_ns)) for stack, times_ns in sums.items()),
        key=_heaviest,
    )
    if not any(stack.samples for stack in stacks):
        when = f"{format_moment(looked.from_ns)} to {format_moment(looked.to_ns)}"
        days = questions.lake.days("stack_minutes")
        hint = (
            f"the lake holds them of {min(days)} to {max(days)}; give --since"
            if days
            else "nodes push them with: fleet push"
        )
        raise UsageError(f"no samples of {where or 'any node'} from {when}", hint)
    left_out = _describe_omissions(stacks, window & other)
    if looked != span:
        left_out.append(
            f"all before the last {looked.length}: {span.length} of the fleet are too much to"
            " add up"
        )
    return FlameAnswer(
        looked,
        where,
        baseline,
        len(window),
        len(other),
        tuple(stacks[:_MOST_STACKS]),
        tuple(left_out),
    )


def _samples(time_ns: float) -> int:
    """Nodes sample at different rates: all are reported in samples of this period, so that a second
    weighs the same on each.
    """
    return round(time_ns / PERIOD_NS)


def _heaviest(stack: FleetStack) -> tuple[int, str, str]:
    return -(stack.samples + stack.baseline), stack.comm, stack.path


def _describe_omissions(stacks: Sequence[FleetStack], both: frozenset[NodeKey]) -> list[str]:
    total = sum(stack.samples + stack.baseline for stack in stacks)
    rest = sum(stack.samples + stack.baseline for stack in stacks if stack.path == LEFT_OUT)
    rest += sum(stack.samples + stack.baseline for stack in stacks[_MOST_STACKS:])
    notes = (
        [f"{rest / total:.1%} of the samples: nodes push their 200 heaviest stacks per minute"]
        if rest
        else []
    )
    return notes + ([f"{len(both)} nodes are in both groups"] if both else [])
