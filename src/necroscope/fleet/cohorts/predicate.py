"""What a node has or has not, in words: a fact and a value, or any other value."""

from typing import Any, NamedTuple

from necroscope.fleet.cohorts.fact_rules import is_place


class Predicate(NamedTuple):
    """`value` None means that the node does not have the fact; negated: all nodes but those with
    this value.
    """

    kind: str
    name: str
    value: str | None
    is_negated: bool = False

    @property
    def is_place(self) -> bool:
        return is_place(self.kind, self.name)

    @property
    def subject(self) -> str:
        return self.name if self.kind == "label" else f"{self.kind} {self.name}"

    def __str__(self) -> str:
        if self.value is None:
            return f"{self.subject} is there" if self.is_negated else f"{self.subject} is not there"
        return f"{self.subject} is {'not ' if self.is_negated else ''}{self.value}"

    def as_json(self) -> dict[str, Any]:
        return {**self._asdict(), "text": str(self)}
