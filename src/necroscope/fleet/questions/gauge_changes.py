"""How large the numbers of nodes were before their change and after it, and how fast they grew:
whether dead cgroups stop to gather is known long before resets stop to come.
"""

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any, Final

import numpy as np
from numpy.typing import NDArray

from necroscope.fleet.ask import LakeQuestions
from necroscope.fleet.gauge_series import DAY_S, UPTIME, GaugeSeries
from necroscope.fleet.lake_tables import NodeKey
from necroscope.fleet.questions.dose_words import gauge_words, size_words
from necroscope.fleet.questions.doses import read_series
from necroscope.fleet.questions.fact_changes import Change
from necroscope.model.span import Span

Floats = NDArray[np.float64]
# Looked at before the change, and at the end: this long, at this many moments.
_LOOKED_S: Final = 2 * DAY_S
_MOMENTS: Final = 13


@dataclass(frozen=True, slots=True)
class GaugeSide:
    """Medians over the nodes; None where nothing is known."""

    nodes: int
    size: float | None
    a_day: float | None

    def as_json(self) -> dict[str, Any]:
        return {"nodes": self.nodes, "size": self.size, "per_day": self.a_day}


@dataclass(frozen=True, slots=True)
class GaugeChange:
    name: str
    before: GaugeSide
    after: GaugeSide

    @property
    def words(self) -> str:
        sides = [
            "not known"
            if side.size is None
            else size_words(self.name, side.size)
            + (
                ""
                if side.a_day is None
                else f" and {size_words(self.name, side.a_day)} more per day"
            )
            for side in (self.before, self.after)
        ]
        return f"{gauge_words(self.name)}, median of the nodes: {sides[0]} before, {sides[1]} after"

    def as_json(self) -> dict[str, Any]:
        sides = {"before": self.before.as_json(), "after": self.after.as_json()}
        return {"name": self.name, **sides, "words": self.words}


def read_gauge_changes(
    questions: LakeQuestions, changes: Mapping[NodeKey, Change], span: Span
) -> tuple[GaugeChange, ...]:
    """Of all numbers but uptime, which only reports reboots."""
    if not changes or not questions.lake.days("gauges"):
        return ()
    series = read_series(questions, list(changes), span)
    if series is None:
        return ()
    ends = [
        series.seconds([each.at_ns for each in changes.values()]),
        series.seconds([min(each.until_ns, span.to_ns) for each in changes.values()]),
    ]
    return tuple(
        GaugeChange(name, *(_side(series, name, end_s) for end_s in ends))
        for name in series.names
        if name != UPTIME
    )


def _side(series: GaugeSeries, name: str, end_s: Floats) -> GaugeSide:
    time_s = end_s[:, None] - np.linspace(_LOOKED_S, 0.0, _MOMENTS)[None, :] - 1.0
    node = np.repeat(np.arange(len(end_s)), _MOMENTS)
    boot = series.boot_at(node, time_s.ravel())
    sizes = np.where(boot >= 0, series.at(name, np.maximum(boot, 0), time_s.ravel()), np.nan)
    sizes, boots = sizes.reshape(time_s.shape), boot.reshape(time_s.shape)
    grown = np.where(boots[:, 1:] == boots[:, :-1], np.diff(sizes, axis=1), np.nan)
    step_days = _LOOKED_S / DAY_S / (_MOMENTS - 1)
    return GaugeSide(
        int(np.count_nonzero(~np.isnan(sizes[:, -1]))),
        _median(sizes[:, -1]),
        _median(grown.ravel() / step_days),
    )


def _median(values: Floats) -> float | None:
    known = values[~np.isnan(values)]
    return float(np.median(known)) if len(known) else None
