"""When a fact changed on which node, and how long it stayed so."""

from collections import defaultdict
from collections.abc import Callable
from dataclasses import dataclass
from fnmatch import fnmatchcase
from typing import NamedTuple

from necroscope.errors import UsageError
from necroscope.fleet.ask import LakeQuestions, View
from necroscope.fleet.lake_tables import NodeKey
from necroscope.model.span import Span


@dataclass(frozen=True, slots=True)
class FactState:
    """`unit_file:ecs-agent.service=disabled`, or `image=v2*` of a label; without a value: any other
    than before.
    """

    kind: str
    name: str
    value: str | None

    @classmethod
    def parse(cls, text: str) -> "FactState":
        fact, _, value = text.partition("=")
        kind, colon, name = fact.partition(":")
        if not colon:
            kind, name = "label", fact
        if not name or not kind:
            raise UsageError(
                f"{text!r} is not a valid fact",
                "write it as kind:name=value, for example unit_file:ecs-agent.service=disabled",
            )
        return cls(kind.strip(), name.strip(), value.strip() or None)

    def __str__(self) -> str:
        fact = self.name if self.kind == "label" else f"{self.kind} {self.name}"
        return f"{fact} changed" if self.value is None else f"{fact} is {self.value}"


class Change(NamedTuple):
    """From `at_ns` to `until_ns` the node was in the new state; the span's end if it still is."""

    at_ns: int
    until_ns: int


@dataclass(frozen=True, slots=True)
class Changes:
    """Nodes that changed within the span, and those that were in the other state all the time:
    those to compare with.
    """

    changed: dict[NodeKey, Change]
    unchanged: frozenset[NodeKey]


def read_changes(questions: LakeQuestions, state: FactState, span: Span) -> Changes:
    query = "SELECT cluster, node, time, value FROM facts WHERE kind = ? AND name = ? ORDER BY time"
    rows = questions.rows(
        query,
        {"facts": View(Span(0, span.to_ns), ("kind", "name", "value"))},
        [state.kind, state.name],
    )
    if not rows:
        raise UsageError(
            f"no node has pushed a fact {state.kind}:{state.name}",
            "see names of facts with: necroscope fleet diff A B --all",
        )
    histories: dict[NodeKey, list[tuple[int, str | None]]] = defaultdict(list)
    for cluster, node, time_ns, value in rows:
        histories[cluster, node].append((time_ns, value))
    changed = {
        node: found
        for node, history in histories.items()
        if (found := _change(history, _test(state, history), span)) is not None
    }
    never = frozenset(
        node
        for node, history in histories.items()
        if not any(map(_test(state, history), (value for _, value in history)))
    )
    if not changed:
        values = sorted({str(value) for _, _, _, value in rows})
        raise UsageError(
            f"on no node {state} since {span.as_json()['from']}",
            f"its values are: {', '.join(values[:10])}; give --since",
        )
    return Changes(changed, never)


def _test(state: FactState, history: list[tuple[int, str | None]]) -> Callable[[str | None], bool]:
    if state.value is None:
        first = history[0][1]
        return lambda value: value != first
    pattern = state.value
    return lambda value: value is not None and fnmatchcase(value, pattern)


def _change(
    history: list[tuple[int, str | None]], is_new: Callable[[str | None], bool], span: Span
) -> Change | None:
    """The first within the span: from not being so to being so."""
    was_new = is_new(history[0][1])
    for place, (time_ns, value) in enumerate(history):
        if not was_new and is_new(value) and time_ns >= span.from_ns:
            until = next(
                (later_ns for later_ns, other in history[place + 1 :] if not is_new(other)),
                span.to_ns,
            )
            return Change(time_ns, until)
        was_new = is_new(value)
    return None
