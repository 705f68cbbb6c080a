"""What a recording says of itself, taken at its type and within bounds: its author can claim
anything, and a checksum stops accidents, not authors.
"""

from collections.abc import Mapping
from typing import Any, Final, TypeVar

from necroscope.errors import CorruptData

# NR_CPUS of the largest kernels is 8,192.
MOST_CPUS: Final = 1 << 15
_MOST_CHARACTERS: Final = 4096
_Kind = TypeVar("_Kind")


def take(content: Any, name: str, kind: type[_Kind]) -> _Kind:
    """The value of this name; CorruptData if it is absent or of another type."""
    value = content.get(name) if isinstance(content, Mapping) else None
    if type(value) is not kind:
        raise CorruptData(f"{name} is not {_WORDS[kind]}")
    return value


def take_count(content: Any, name: str, most: int = (1 << 63) - 1) -> int:
    value = take(content, name, int)
    if not 0 <= value <= most:
        raise CorruptData(f"{name} is {value:.3e}, which is not between 0 and {most}")
    return value


def take_moment(content: Any, name: str) -> int:
    """Nanoseconds that fit into 64 bits; rows of before 1970 are useless, but harmless."""
    value = take(content, name, int)
    if not -(1 << 63) <= value < 1 << 63:
        raise CorruptData(f"{name} is not a moment")
    return value


def take_text(content: Any, name: str) -> str:
    return take(content, name, str)[:_MOST_CHARACTERS]


def take_cpus(content: Any, name: str = "cpus") -> int | None:
    if isinstance(content, Mapping) and content.get(name) is None:
        return None
    return take_count(content, name, MOST_CPUS)


_WORDS: Final = {
    int: "a whole number",
    str: "a text",
    bool: "true or false",
    list: "a list",
    dict: "an object",
}
