"""What `necroscope flame` asks of a recording, and what answers it: call trees, samples, heat maps.
Nothing found is an error.
"""

from collections.abc import Sequence
from dataclasses import dataclass, replace
from typing import Final, TypeVar

from necroscope.cli.flame_windows import Windows, span_text
from necroscope.errors import UsageError
from necroscope.model.span import Extent, Span
from necroscope.model.units import NS_PER_S
from necroscope.stacks.differential import DifferentialTree, compare
from necroscope.stacks.flame_tree import FlameTree
from necroscope.store.choices import DEFAULT_ROWS, GroupBy
from necroscope.store.flame import read_flame
from necroscope.store.heatmap import HeatMap, read_heat_map
from necroscope.store.query import Store
from necroscope.store.samples import SelectedSampleWindow, read_samples
from necroscope.store.selection import Selection
from necroscope.store.time_limit import TimeLimit
from necroscope.store.wait_flame import UNIT, read_wait_flame
from necroscope.views.flame.heading import Heading, HeadingWindow
from necroscope.views.format import literal_line

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

    def flame_heading(self, tree: FlameTree) -> Heading:
        return self.heading(f"Flame graph of {self.node}", HeadingWindow.of(tree), tree.left_out)

    def comparison_heading(self, found: Comparison) -> Heading:
        title = f"Differential flame graph of {self.node}"
        window, baseline = HeadingWindow.of(found.window), HeadingWindow.of(found.baseline)
        return self.heading(title, window, found.tree.left_out, baseline)

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
            f"no {what} from {span_text(window)}{asked}{why};"
            f" the recording is from {span_text(self.span)}"
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
