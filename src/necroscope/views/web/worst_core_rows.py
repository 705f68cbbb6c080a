"""The worst core of each moment as flat rows, for dashboards that read plain JSON."""

from collections.abc import Sequence
from typing import Any

import numpy as np

from necroscope.model.span import Span
from necroscope.model.units import NS_PER_S, format_moment
from necroscope.store.core_modes import MODES, CoreModes, read_core_modes
from necroscope.store.query import Store
from necroscope.store.time_limit import TimeLimit


def worst_core_rows(
    store: Store, span: Span, columns: int, cpus: Sequence[int], limit: TimeLimit
) -> dict[str, Any]:
    """One row per stretch in which anything was recorded; what was not recorded has no value."""
    modes = read_core_modes(store, span.from_ns, span.to_ns, columns, cpus, limit)
    recorded = ~np.isnan([modes.worst[mode] for mode in MODES])
    filled = np.flatnonzero(recorded.any(axis=(0, 1)))
    return {"rows": [_row(modes, int(column)) for column in filled], "left_out": modes.left_out}


def _row(modes: CoreModes, column: int) -> dict[str, Any]:
    row: dict[str, Any] = {"time": format_moment(modes.start_ns + column * modes.column_ns)}
    for mode in MODES:
        shares = modes.worst[mode][:, column]
        if not np.isnan(shares).all():
            place = int(np.nanargmax(shares))
            row |= {mode: round(float(shares[place]), 4), f"{mode}_core": modes.cpus[place]}
    place = int(np.argmax(modes.delay_ns[:, column]))
    if delay_ns := int(modes.delay_ns[place, column]):
        row |= {"softirq_delay_s": delay_ns / NS_PER_S, "softirq_delay_core": modes.cpus[place]}
    return row
