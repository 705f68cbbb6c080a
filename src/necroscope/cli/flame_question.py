"""What `necroscope flame` asks of a recording, and what answers it: a stretch of time in the words
of the options, call trees, samples, heat maps. Nothing found is an error.
"""

from collections.abc import Sequence
from dataclasses import dataclass, replace
from typing import Final, TypeVar

from necroscope.errors import UsageError
from necroscope.model.span import Extent, Span
from necroscope.model.units import (
    NS_PER_S,
    format_moment,
    is_relative_moment,
    parse_duration_ns,
    parse_moment_ns,
)
from necroscope.stacks.differential import DifferentialTree, compare
from necroscope.stacks.flame_tree import FlameTree
from necroscope.store.flame import read_flame
from necroscope.store.groups import GroupBy
from necroscope.store.heatmap import DEFAULT_ROWS, HeatMap, read_heat_map
from necroscope.store.query import Store
from necroscope.store.samples import SelectedSampleWindow, read_samples
from necroscope.store.selection import Selection
from necroscope.store.time_limit import TimeLimit
from necroscope.store.wait_flame import UNIT, read_wait_flame
from necroscope.views.flame.heading import Heading, HeadingWindow, literal_line

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
            f"{what} from {_span_text(asked)} is not in the recording",
            f"it holds {_span_text(span)}, in UTC",
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


_Value = TypeVar("_Value", int, str)
_COLUMN_STEPS_S: Final = (1, 2, 5, 10, 15, 30, 60, 120, 300, 600, 1800, 3600, 7200, 21600, 86400)
_MOST_COLUMNS: Final = 900
_MOST_REASONS: Final = 3
_FOR_MORE: Final = (
    "ask for more time or drop a filter; --state idle shows idle cores where they were kept"
)
_FOR_MORE_WAITS: Final = (
    "ask for more time or drop a filter; waits under the setting `waits` (20ms) are not kept"
)


@dataclass(frozen=True, slots=True)
class Comparison:
    window: FlameTree
    baseline: FlameTree
    tree: DifferentialTree


@dataclass(frozen=True, slots=True)
class FlameQuestion:
    """`span` is that of the recording; `filters` says the selection in words."""

    store: Store
    span: Extent
    windows: Windows
    selection: Selection
    limit: TimeLimit
    cores: str = "all cores"
    filters: tuple[str, ...] = ()
    group_by: tuple[GroupBy, ...] = ()
    is_turned: bool = False
    rows: int = DEFAULT_ROWS
    column_s: int | None = None
    is_of_waits: bool = False

    @property
    def node(self) -> str:
        identity = self.store.catalog.identity
        return identity.node if identity else "unknown node"

    @property
    def choice(self) -> str:
        """What samples were chosen by, in words; empty: all."""
        cores = [self.cores] if self.selection.cpus is not None else []
        return ", ".join([*cores, *self.filters])

    def page_words(self) -> dict[str, str | int | None]:
        """The question as far as the page has words for it: one core, one process or name."""
        chosen = self.selection
        return {
            "core": _only(chosen.cpus),
            "pid": _only(chosen.pids),
            "comm": _only(chosen.comms),
            "cgroup": chosen.cgroup,
            "group": ",".join(self.group_by) or None,
            "turned": 1 if self.is_turned else None,
        }

    def flame(self) -> FlameTree:
        return self._flame(self.windows.window)

    def comparison(self) -> Comparison:
        assert self.windows.baseline is not None
        window, baseline = self._flame(self.windows.window), self._flame(self.windows.baseline)
        return Comparison(window, baseline, compare(window, baseline))

    def samples(self) -> SelectedSampleWindow:
        found = read_samples(self.store, *self.windows.window, self.selection, limit=self.limit)
        if not found.count:
            raise self._nothing(self.windows.window, found.left_out)
        return found

    def heat_map(self) -> HeatMap:
        """Within the recording: what lies outside would only be hatched."""
        window = Span(
            max(self.windows.window[0], self.span[0]),
            min(self.windows.window[1], self.span[1] + 1),
        )
        if window[0] >= window[1]:
            raise self._nothing(self.windows.window, [])
        column_s = self.column_s or _column_s(window)
        heat = read_heat_map(
            self.store, *window, self.selection, rows=self.rows, column_s=column_s, limit=self.limit
        )
        if not heat.is_known.any():
            raise self._nothing(window, heat.left_out)
        return heat

    def heading(
        self,
        title: str,
        window: HeadingWindow,
        left_out: Sequence[str],
        baseline: HeadingWindow | None = None,
    ) -> Heading:
        if self.is_of_waits:
            title = title.replace("lame graph", "lame graph of waits")
            window = replace(window, unit=UNIT)
            baseline = replace(baseline, unit=UNIT) if baseline is not None else None
        return Heading(
            title, self.node, window, self.cores, self.filters, baseline, tuple(left_out)
        )

    def _flame(self, window: Span) -> FlameTree:
        if self.is_of_waits:
            tree = read_wait_flame(self.store, window, self.selection)
        else:
            tree = read_flame(
                self.store,
                *window,
                self.selection,
                self.group_by,
                is_turned=self.is_turned,
                limit=self.limit,
            )
        if not tree.samples:
            raise self._nothing(window, tree.left_out)
        return tree

    def _nothing(self, window: Span, left_out: Sequence[str]) -> UsageError:
        asked = "".join(f", {words}" for words in (self.cores, *self.filters))
        is_outside = window[0] > self.span[1] or window[1] <= self.span[0]
        # What the filter left out is listed last, and is what the reader needs first.
        reasons = () if is_outside else [*left_out][::-1][:_MOST_REASONS]
        why = "".join(f"; {words}" for words in reasons)
        what = "waits" if self.is_of_waits else "samples"
        facts = (
            f"no {what} from {_span_text(window)}{asked}{why};"
            f" the recording is from {_span_text(self.span)}"
        )
        hint = (
            "ask for a window within the recording; times without a zone are UTC"
            if is_outside
            else (_FOR_MORE_WAITS if self.is_of_waits else _FOR_MORE)
        )
        return UsageError(literal_line(facts), hint)


def _only(values: frozenset[_Value] | None) -> _Value | None:
    return next(iter(values)) if values is not None and len(values) == 1 else None


def _column_s(window: Span) -> int:
    """The shortest columns that a picture has room for."""
    seconds = (window[1] - window[0]) / NS_PER_S
    return next(
        (step for step in _COLUMN_STEPS_S if seconds / step <= _MOST_COLUMNS), _COLUMN_STEPS_S[-1]
    )


def _span_text(span: Extent) -> str:
    return f"{format_moment(span[0])} to {format_moment(span[1])}"
