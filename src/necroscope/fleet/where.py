"""Expressions that choose nodes: `zone=a and image!=x`, `unit_file:ecs-agent.service=enabled or not
event=nic_reset`.

    expression  = all { "or" all }
    all         = each { "and" each }
    each        = "not" each | "(" expression ")" | NAME [ ("=" | "!=") VALUE ]

A NAME is a label, `kind:name` of a fact, or `node`, `cluster`, `event`, `cause`. A VALUE may hold
`*` and `?`. What has blanks or signs stands in quotes. A bare NAME chooses nodes that have it; a
node without a label is chosen by `!=`.
"""

import re
from collections.abc import Callable
from dataclasses import dataclass
from fnmatch import translate
from typing import Final, NamedTuple, Protocol

from necroscope.errors import UsageError

Node = tuple[str, str]
_TOKEN: Final = re.compile(
    r"""\s*(?:(?P<quoted>"[^"]*"|'[^']*')|(?P<sign>!=|==|=|\(|\))|(?P<word>[^\s()=!"']+))"""
)
_RESERVED: Final = frozenset({"and", "or", "not"})
_LONGEST: Final = 4096
_DEEPEST: Final = 50
_EXAMPLE: Final = (
    "write it like: zone=a and not image=old*, with and, or, not, = , != and parentheses"
)


class Nodes(Protocol):
    """What an expression is asked of."""

    def all(self) -> frozenset[Node]: ...

    def having(self, name: str, matches: Callable[[str], bool]) -> frozenset[Node]:
        """Nodes with a value of this name that matches."""
        ...


class Expression(Protocol):
    def choose(self, nodes: Nodes) -> frozenset[Node]: ...


@dataclass(frozen=True, slots=True)
class Has:
    name: str
    pattern: str | None

    def choose(self, nodes: Nodes) -> frozenset[Node]:
        if self.pattern is None:
            return nodes.having(self.name, lambda _: True)
        matches = re.compile(translate(self.pattern.replace("[", "[[]"))).match
        return nodes.having(self.name, lambda value: matches(value) is not None)


@dataclass(frozen=True, slots=True)
class Not:
    inner: Expression

    def choose(self, nodes: Nodes) -> frozenset[Node]:
        return nodes.all() - self.inner.choose(nodes)


@dataclass(frozen=True, slots=True)
class Both:
    first: Expression
    second: Expression

    def choose(self, nodes: Nodes) -> frozenset[Node]:
        return self.first.choose(nodes) & self.second.choose(nodes)


@dataclass(frozen=True, slots=True)
class Either:
    first: Expression
    second: Expression

    def choose(self, nodes: Nodes) -> frozenset[Node]:
        return self.first.choose(nodes) | self.second.choose(nodes)


class _Token(NamedTuple):
    """`kind` is word, quoted, sign or end; `place` counts from 1."""

    kind: str
    text: str
    place: int


def parse(text: str) -> Expression:
    """UsageError with the place of what cannot be read."""
    return _Parser(text).parse_all()


class _Parser:
    def __init__(self, text: str) -> None:
        if len(text) > _LONGEST:
            raise UsageError(
                f"the expression has {len(text):,} characters", f"at most {_LONGEST:,}"
            )
        self._text = text
        self._tokens = _tokens(text)
        self._next = 0
        self._depth = 0

    def parse_all(self) -> Expression:
        found = self._either()
        if self._token.kind != "end":
            raise self._wrong("'and' or 'or'")
        return found

    @property
    def _token(self) -> _Token:
        return self._tokens[self._next]

    def _either(self) -> Expression:
        found = self._both()
        while self._takes("word", "or"):
            found = Either(found, self._both())
        return found

    def _both(self) -> Expression:
        found = self._each()
        while self._takes("word", "and"):
            found = Both(found, self._each())
        return found

    def _each(self) -> Expression:
        self._depth += 1
        if self._depth > _DEEPEST:
            raise UsageError(f"the expression is nested deeper than {_DEEPEST}", _EXAMPLE)
        try:
            if self._takes("word", "not"):
                return Not(self._each())
            if self._takes("sign", "("):
                found = self._either()
                if not self._takes("sign", ")"):
                    raise self._wrong("')'")
                return found
            return self._comparison()
        finally:
            self._depth -= 1

    def _comparison(self) -> Expression:
        name = self._name("a name")
        if self._takes("sign", "=") or self._takes("sign", "=="):
            return Has(name, self._name("a value"))
        if self._takes("sign", "!="):
            return Not(Has(name, self._name("a value")))
        return Has(name, None)

    def _name(self, wanted: str) -> str:
        token = self._token
        if token.kind not in ("word", "quoted") or (
            token.kind == "word" and token.text in _RESERVED
        ):
            raise self._wrong(wanted)
        self._next += 1
        return token.text

    def _takes(self, kind: str, text: str) -> bool:
        if (self._token.kind, self._token.text) != (kind, text):
            return False
        self._next += 1
        return True

    def _wrong(self, wanted: str) -> UsageError:
        token = self._token
        met = "it ends" if token.kind == "end" else f"there is {token.text!r}"
        return UsageError(
            f"cannot read {self._text!r} at character {token.place}: {met}, where {wanted}"
            " should be",
            _EXAMPLE,
        )


def _tokens(text: str) -> list[_Token]:
    found, at = [], 0
    while text[at:].strip():
        match = _TOKEN.match(text, at)
        if match is None:
            place = at + len(text[at:]) - len(text[at:].lstrip()) + 1
            what = (
                "a quote is not closed"
                if text[place - 1] in "\"'"
                else f"{text[place - 1]!r} means nothing here"
            )
            raise UsageError(f"cannot read {text!r} at character {place}: {what}", _EXAMPLE)
        kind = str(match.lastgroup)
        value = match[kind]
        found.append(
            _Token(kind, value[1:-1] if kind == "quoted" else value, match.start(kind) + 1)
        )
        at = match.end()
    return [*found, _Token("end", "", len(text) + 1)]
