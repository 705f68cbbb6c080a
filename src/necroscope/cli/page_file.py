"""The time machine as one file: the lanes around all incidents, and their report."""

from typing import Any, Final

from necroscope import __version__
from necroscope.analysis.gap_notes import gap_notes
from necroscope.analysis.report import Report
from necroscope.model.span import Span
from necroscope.model.units import NS_PER_S
from necroscope.store.query import Store
from necroscope.views.web.export import Export, describe, exported_page

_BEFORE_NS: Final = 60 * NS_PER_S
_AFTER_NS: Final = 20 * NS_PER_S
_MOST_GAP_NOTES: Final = 12


def page_file(store: Store, report: Report) -> bytes:
    """The time machine over all incidents, which opens at the worst."""
    first_ns, last_ns = store.span()
    windows = [
        Span(max(first_ns, each.from_ns - _BEFORE_NS), min(last_ns + 1, each.to_ns + _AFTER_NS))
        for each in report.incidents
    ]
    view = Span(first_ns, last_ns + 1)
    if windows:
        view = Span(min(start for start, _ in windows), max(end for _, end in windows))
    answer = page_report(report) | {"failed": [], "is_complete": True, "progress": 1.0}
    answer["notes"] = [*report.notes, *gap_notes(report.gaps)[:_MOST_GAP_NOTES]]
    export = Export(view, windows, "", answer)
    return exported_page(store, describe(store, __version__), export).encode()


def page_report(report: Report) -> dict[str, Any]:
    answer = report.as_json()
    for item, incident in zip(answer["incidents"], report.incidents, strict=True):
        item |= {"from_ns": str(incident.from_ns), "to_ns": str(incident.to_ns)}
        item["verdict"]["title"] = incident.verdict.title
    return answer
