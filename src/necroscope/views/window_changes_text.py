"""What changed between two stretches, as text: the largest differences of each kind."""

from collections.abc import Iterator, Sequence

from necroscope.analysis.differential import PathChange
from necroscope.analysis.window_changes import ValueChange, WindowChanges
from necroscope.model.units import format_moment, format_share
from necroscope.views.format import literal, time_of_day

_NAME = 28
_PATH_SHOWN = 7
_MOST_EVENTS = 12


def window_changes_to_text(changes: WindowChanges) -> str:
    head = (
        f"{format_moment(changes.window.from_ns)} to {time_of_day(changes.window.to_ns)}, compared"
        f" with {format_moment(changes.baseline.from_ns)} to {time_of_day(changes.baseline.to_ns)}"
    )
    if changes.is_empty:
        return f"{head}\n\nNothing changed that is worth a line."
    return "\n".join([head, *_sections(changes)])


def _sections(changes: WindowChanges) -> Iterator[str]:
    yield from _list("cores, share of time", _pairs(changes.cores, format_share))
    yield from _list("programs, in cores", _pairs(changes.programs, "{:.2f}".format))
    yield from _list("paths that grew, in cores", map(_path, changes.grown))
    yield from _list("paths that shrank, in cores", map(_path, changes.shrunk))
    yield from _list("pressure, share of time", _pairs(changes.pressure, format_share))
    yield from _list("rates per second", _pairs(changes.rates, "{:,.0f}".format))
    events = [
        f"{time_of_day(one.time_ns)}  {one.kind:<18} {literal(one.message, 160)}"
        for one in changes.events[:_MOST_EVENTS]
    ]
    yield from _list("happened only in the later stretch", events)


def _list(title: str, lines: Iterator[str] | Sequence[str]) -> Iterator[str]:
    found = list(lines)
    if found:
        yield from ["", f"  {title}", *(f"    {line}" for line in found)]


def _pairs(changes: Sequence[ValueChange], shown: object) -> Iterator[str]:
    assert callable(shown)
    for one in changes:
        yield f"{literal(one.what, _NAME):<{_NAME}} {shown(one.before):>10} -> {shown(one.now)}"


def _path(change: PathChange) -> str:
    inner = [literal(name, 60) for name in change.path[-_PATH_SHOWN:]]
    left_out = len(change.path) - len(inner)
    path = " > ".join([*([f"({left_out} more)"] if left_out else []), *inner])
    return f"{change.before:.2f} -> {change.now:.2f}  {path}"
