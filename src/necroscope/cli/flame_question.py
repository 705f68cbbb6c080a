"""What `necroscope flame` asks of a recording, and what answers it: call trees, samples, heat maps.
Nothing found is an error.
"""

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Final

from necroscope.cli.flame_window import Span, Windows
from necroscope.errors import UsageError
from necroscope.model.units import NS_PER_S, format_moment
from necroscope.stacks.differential import DifferentialTree, compare
from necroscope.stacks.flame_tree import FlameTree
from necroscope.store.flame import read_flame
from necroscope.store.groups import GroupBy
from necroscope.store.heatmap import DEFAULT_ROWS, HeatMap, read_heat_map
from necroscope.store.query import Store
from necroscope.store.samples import SelectedSampleWindow, read_samples
from necroscope.store.selection import Selection
from necroscope.store.time_limit import TimeLimit
from necroscope.views.flame.heading import Heading, Window, literal_line

_COLUMN_STEPS_S: Final = (1, 2, 5, 10, 15, 30, 60, 120, 300, 600, 1800, 3600, 7200, 21600, 86400)
_MOST_COLUMNS: Final = 900
_TOLD: Final = 3
_FOR_MORE: Final = (
    "ask for more time or drop a filter; --state idle shows idle cores where they were kept"
)


@dataclass(frozen=True, slots=True)
class Comparison:
    window: FlameTree
    baseline: FlameTree
    tree: DifferentialTree


@dataclass(frozen=True, slots=True)
class Question:
    """`span` is that of the recording; `filters` says the selection in words."""

    store: Store
    span: Span
    windows: Windows
    selection: Selection
    limit: TimeLimit
    cores: str = "all cores"
    filters: tuple[str, ...] = ()
    group_by: tuple[GroupBy, ...] = ()
    is_turned: bool = False
    rows: int = DEFAULT_ROWS
    column_s: int | None = None

    @property
    def node(self) -> str:
        identity = self.store.catalog.identity
        return identity.node if identity else "unknown node"

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
        window = (
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
        self, title: str, window: Window, left_out: Sequence[str], baseline: Window | None = None
    ) -> Heading:
        return Heading(
            title, self.node, window, self.cores, self.filters, baseline, tuple(left_out)
        )

    def _flame(self, window: Span) -> FlameTree:
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
        # What the filter left out is told last, and is what the reader needs first.
        why = "" if is_outside else "".join(f"; {words}" for words in [*left_out][::-1][:_TOLD])
        facts = (
            f"no samples from {_told(window)}{asked}{why}; the recording is from {_told(self.span)}"
        )
        hint = (
            "ask for a window within the recording; times without a zone are UTC"
            if is_outside
            else _FOR_MORE
        )
        return UsageError(literal_line(facts), hint)


def _column_s(window: Span) -> int:
    """The shortest columns that a picture has room for."""
    seconds = (window[1] - window[0]) / NS_PER_S
    return next(
        (step for step in _COLUMN_STEPS_S if seconds / step <= _MOST_COLUMNS), _COLUMN_STEPS_S[-1]
    )


def _told(span: Span) -> str:
    return f"{format_moment(span[0])} to {format_moment(span[1])}"
