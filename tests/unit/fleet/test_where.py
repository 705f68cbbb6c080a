"""Expressions that choose nodes."""

from collections.abc import Callable

import pytest

from necroscope.errors import UsageError
from necroscope.fleet.where import Node, parse

NODES = {
    ("eu", "n1"): {"zone": "a", "image": "v1"},
    ("eu", "n2"): {"zone": "a", "image": "old-3"},
    ("eu", "n3"): {"zone": "b"},
    ("eu", "n4"): {
        "zone": "b",
        "image": "v1",
        "unit_file:x.service": "enabled",
        "odd name": "with blank",
    },
}


class Drawn:
    def all(self) -> frozenset[Node]:
        return frozenset(NODES)

    def having(self, name: str, matches: Callable[[str], bool]) -> frozenset[Node]:
        return frozenset(
            node for node, labels in NODES.items() if name in labels and matches(labels[name])
        )


def choose(text: str) -> str:
    return " ".join(sorted(name for _, name in parse(text).choose(Drawn())))


@pytest.mark.parametrize(
    ("text", "expected"),
    [
        ("zone=a", "n1 n2"),
        ("zone=a and image!=v1", "n2"),
        ("zone=b or image=v1", "n1 n3 n4"),
        ("zone=b or zone=a and image=v1", "n1 n3 n4"),
        ("(zone=b or zone=a) and image=v1", "n1 n4"),
        ("not zone=a", "n3 n4"),
        ("not not zone=a", "n1 n2"),
        ("image", "n1 n2 n4"),
        ("not image", "n3"),
        ("image=old*", "n2"),
        ("image=v?", "n1 n4"),
        ("unit_file:x.service=enabled", "n4"),
        ("'odd name'=\"with blank\"", "n4"),
        ("zone == a", "n1 n2"),
        # A node without the label is not one with this value.
        ("image!=v1", "n2 n3"),
        # Brackets are no pattern.
        ("image=[v]1", ""),
    ],
)
def test_an_expression_chooses_these_nodes(text: str, expected: str) -> None:
    assert choose(text) == expected


@pytest.mark.parametrize(
    ("text", "place"),
    [
        ("", 1),
        ("zone=", 6),
        ("zone=a or", 10),
        ("(zone=a", 8),
        ("zone=a b", 8),
        ("zone='a", 6),
        ("zone ! a", 6),
        ("=a", 1),
        ("zone=and", 6),
    ],
)
def test_what_cannot_be_read_is_reported_with_its_place(text: str, place: int) -> None:
    with pytest.raises(UsageError, match=f"at character {place}:"):
        parse(text)


def test_a_million_brackets_are_refused_and_not_followed() -> None:
    with pytest.raises(UsageError, match="nested deeper"):
        parse("(" * 500 + "a" + ")" * 500)
    with pytest.raises(UsageError, match="characters"):
        parse("a" * 100_000)
