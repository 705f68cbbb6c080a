"""A stretch of time in the words of the options, and what of it a recording holds."""

from dataclasses import dataclass
from typing import Final

from necroscope.errors import UsageError
from necroscope.model.span import Extent, Span
from necroscope.model.units import (
    NS_PER_S,
    format_moment,
    is_relative_moment,
    parse_duration_ns,
    parse_moment_ns,
)

# 1970 to 2116: what lies outside cannot be in a recording, and would not fit into its columns.
_FIRST_NS: Final = 0
_LAST_NS: Final = 1 << 62
_DEFAULT_AROUND: Final = "5s"


@dataclass(frozen=True, slots=True)
class Windows:
    """From the first time to before the second."""

    window: Span
    baseline: Span | None

    def outside(self, span: Extent) -> list[str]:
        """What of them the recording does not hold, in words; a window of which it holds nothing is
        an error.
        """
        asked = {"the window": self.window, "the baseline": self.baseline}
        return [
            text
            for what, one in asked.items()
            if one is not None and (text := _outside(what, one, span))
        ]


def _outside(what: str, asked: Span, span: Extent) -> str | None:
    held = Span(max(asked.from_ns, span[0]), min(asked.to_ns, span[1] + 1))
    if held.length_ns <= 0:
        raise UsageError(
            f"{what} from {span_text(asked)} is not in the recording",
            f"it holds {span_text(span)}, in UTC",
        )
    # A second at an edge is how people write the whole of a recording.
    if asked.length_ns - held.length_ns < NS_PER_S:
        return None
    return f"of {what}, which is {asked.length} long, the recording holds {held.length}"


@dataclass(frozen=True, slots=True)
class WindowWords:
    """As they were typed; `-5m` is before the end of the recording, because that of an old one is
    what its reader looks at.
    """

    start: str | None = None
    end: str | None = None
    at: str | None = None
    around: str | None = None
    baseline: str | None = None

    def __post_init__(self) -> None:
        if self.at and (self.start or self.end):
            raise UsageError(
                "--at cannot be combined with --from or --to",
                "give --at T --around 5s, or --from T --to T",
            )
        if self.around and not self.at:
            raise UsageError("--around needs the moment it is around", "give it by --at T")

    def within(self, span: Extent) -> Windows:
        """Of a recording from its first to its last time."""
        start_ns = _moment_ns(self.start, span[1]) if self.start else span[0]
        end_ns = _moment_ns(self.end, span[1]) if self.end else span[1] + 1
        return Windows(
            _check_window(self._around(span[1]) or Span(start_ns, end_ns)), self._baseline(span[1])
        )

    def reach(self) -> tuple[int | None, int | None]:
        """All that will be asked for, as far as it is known before the recording is: None is
        unbounded.
        """
        words = [self.start, self.end, self.at, *(self.baseline or "").split("..")]
        if any(word and is_relative_moment(word) for word in words):
            return None, None
        window: tuple[int | None, int | None] = self._around(0) or (
            _moment_ns(self.start, 0) if self.start else None,
            _moment_ns(self.end, 0) if self.end else None,
        )
        baseline = self._baseline(0)
        if baseline is None:
            return window
        return (
            None if window[0] is None else min(window[0], baseline[0]),
            None if window[1] is None else max(window[1], baseline[1]),
        )

    def _around(self, last_ns: int) -> Span | None:
        """The window of --at, which lies in its middle."""
        if self.at is None:
            return None
        length_ns = parse_duration_ns(self.around or _DEFAULT_AROUND)
        start_ns = _moment_ns(self.at, last_ns) - length_ns // 2
        return Span(max(start_ns, _FIRST_NS), min(start_ns + length_ns, _LAST_NS))

    def _baseline(self, last_ns: int) -> Span | None:
        if self.baseline is None:
            return None
        start, dots, end = self.baseline.partition("..")
        if not dots or not start or not end:
            raise UsageError(
                f"{self.baseline!r} is not a stretch of time",
                "write it as T..T, for example -10m..-5m",
            )
        return _check_window(Span(_moment_ns(start, last_ns), _moment_ns(end, last_ns)))


def _moment_ns(text: str, last_ns: int) -> int:
    return min(max(parse_moment_ns(text, last_ns), _FIRST_NS), _LAST_NS)


def _check_window(window: Span) -> Span:
    if window[0] >= window[1]:
        facts = f"the window from {format_moment(window[0])} to {format_moment(window[1])} is empty"
        raise UsageError(
            facts,
            "--from is the earlier moment; one that begins with - is before the end of the"
            " recording",
        )
    return window


def span_text(span: Extent) -> str:
    return f"{format_moment(span[0])} to {format_moment(span[1])}"
