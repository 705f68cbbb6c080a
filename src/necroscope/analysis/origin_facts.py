"""What is recorded of the origin itself: which file makes a unit run and who enabled it, which
image a container is of.
"""

from dataclasses import replace
from typing import Final

import numpy as np

from necroscope.analysis.case import Case
from necroscope.analysis.columns import ColumnArrays, Flags
from necroscope.analysis.node import Node
from necroscope.analysis.report import Evidence, Origin
from necroscope.model.definitions import LONGEST_SEGMENT_NS
from necroscope.model.span import Span

_TABLES: Final = {"unit": "units", "container": "containers"}


def about(case: Case, origin: Origin | None) -> list[Evidence]:
    """As it was last reported before the incident was over; nothing where it was not recorded."""
    table = _TABLES.get(origin.kind) if origin else None
    if origin is None or table is None:
        return []
    rows = case.counters.columns(table)
    rows = rows.at(rows["time"] <= case.window[1])
    rows = rows_of(rows, origin)
    facts = (_of_unit(rows) if table == "units" else _of_container(rows)) if len(rows) else []
    facts += _of_file(case.node, origin) if table == "units" else []
    return [case.evidence(f"{origin.name}: {', '.join(facts)}", table)] if facts else []


def with_package(node: Node, origin: Origin) -> Origin:
    """A unit with the file that makes it run and the package that brought it, where they are
    known.
    """
    rows = node.columns("units")
    files = rows["fragment"][rows["unit"] == origin.name] if len(rows) else []
    file = next((str(name) for name in reversed(files) if name), None)
    known = unit_facts(node, origin.name)
    links = [("file", file)] if file else []
    links += [("package", known["unit_package"])] if "unit_package" in known else []
    return replace(origin, chain=(*origin.chain, *links))


def unit_facts(node: Node, unit: str) -> dict[str, str]:
    """By kind, the latest value of each fact about a unit. Facts are reported when a segment
    begins.
    """
    span = Span(node.span[0] - LONGEST_SEGMENT_NS, node.span[1])
    return {
        str(row["kind"]): str(row["value"])
        for row in node.rows("facts", span)
        if row["name"] == unit and row["value"] is not None and row["kind"].startswith("unit_")
    }


def _of_file(node: Node, origin: Origin) -> list[str]:
    known = unit_facts(node, origin.name)
    words = {
        "unit_package": "of package {}",
        "unit_drop_ins": "changed by {}",
        "unit_since": "enabled since {}",
    }
    return [text.format(known[kind]) for kind, text in words.items() if kind in known]


def rows_of(rows: ColumnArrays, origin: Origin) -> ColumnArrays:
    """Those of `units` or `containers` that are of the origin."""
    return rows.at(_is_of(rows, origin)) if len(rows) else rows


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
    """Since it was started, which may be months ago."""
    count = rows["restarts"][-1]
    return [f"{count:,.0f} restarts so far"] if count > 0 else []
