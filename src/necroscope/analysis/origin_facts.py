"""What is recorded of the origin itself: which file makes a unit run and who enabled it, which
image a container is of.
"""

from typing import Final

import numpy as np

from necroscope.analysis.case import Case
from necroscope.analysis.columns import ColumnArrays, Flags
from necroscope.analysis.report import Evidence, Origin

_TABLES: Final = {"unit": "units", "container": "containers"}


def about(case: Case, origin: Origin | None) -> list[Evidence]:
    """As it was last told before the incident was over; nothing where it was not recorded."""
    table = _TABLES.get(origin.kind) if origin else None
    if origin is None or table is None:
        return []
    rows = case.counters.columns(table)
    rows = rows.at(rows["time"] <= case.window[1])
    rows = rows.at(_is_of(rows, origin)) if len(rows) else rows
    facts = (_of_unit(rows) if table == "units" else _of_container(rows)) if len(rows) else []
    return [case.evidence(f"{origin.name}: {', '.join(facts)}", table)] if facts else []


def _is_of(rows: ColumnArrays, origin: Origin) -> Flags:
    if origin.kind == "unit":
        return np.asarray(rows["unit"] == origin.name, dtype=bool)
    # One without a name is known by the first digits of its id.
    ids = [str(container or "").startswith(origin.name) for container in rows["container"]]
    return np.asarray((rows["name"] == origin.name) | np.array(ids), dtype=bool)


def _of_unit(rows: ColumnArrays) -> list[str]:
    fragment, state, preset, result = (
        rows[name][-1] for name in ("fragment", "file_state", "preset", "result")
    )
    by_vendor = " as the vendor presets it" if state == preset == "enabled" else ""
    facts = [f"unit file {fragment}"] if fragment else []
    facts += [f"{state}{by_vendor}"] if state else []
    facts += [f"result {result}"] if result and result != "success" else []
    return [*facts, *_restarts(rows)]


def _of_container(rows: ColumnArrays) -> list[str]:
    image, exit_code = rows["image"][-1], rows["exit_code"][-1]
    facts = [f"image {image}"] if image else []
    facts += [f"exit code {exit_code:.0f}"] if exit_code > 0 else []
    return [*facts, *_restarts(rows)]


def _restarts(rows: ColumnArrays) -> list[str]:
    """Since somebody started it, which may be months ago."""
    count = rows["restarts"][-1]
    return [f"{count:,.0f} restarts so far"] if count > 0 else []
