"""What an assistant may ask of recordings: the same questions as the command line, as plain data.

Every answer is bounded, because a model reads it whole, and cleaned, because names and log lines
were chosen by the programs of the node. Recordings are named by the server's owner: a question
chooses one of them and cannot name another path.
"""

import json
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any, Final

from necroscope.analysis.engine import diagnose
from necroscope.analysis.report import Incident, Report
from necroscope.analysis.victim import victim_report
from necroscope.analysis.window_changes import window_changes
from necroscope.errors import NecroscopeError, UsageError
from necroscope.model.names import clean
from necroscope.model.span import Span
from necroscope.model.tables import TABLES
from necroscope.model.units import NS_PER_S, format_moment, parse_moment_ns
from necroscope.segment.lock import is_recorded
from necroscope.stacks.differential import compare
from necroscope.store.flame import read_flame
from necroscope.store.functions import top_functions
from necroscope.store.query import Store
from necroscope.store.selection import Selection
from necroscope.store.time_limit import TimeLimit
from necroscope.store.wait_flame import read_wait_flame
from necroscope.verdicts.reading import read_report
from necroscope.views.flame.functions import differential_text, functions_text, pair_functions
from necroscope.views.flame.heading import Heading, HeadingWindow

LONGEST_ANSWER: Final = 24_000
_TEXT: Final = 400
_MOST_ROWS: Final = 200
_MOST_READ_NS: Final = 3600 * NS_PER_S
_MOST_INCIDENTS: Final = 50
_TOP: Final = 25
_TIME_LIMIT_S: Final = 10.0

Answer = dict[str, Any]


@dataclass(frozen=True, slots=True)
class RecordingQuestions:
    """`places` maps the name under which a recording may be asked about to its directory."""

    places: Mapping[str, Path]

    def recordings(self) -> Answer:
        return {"recordings": [self._describe_recording(name) for name in self.places]}

    def incidents(
        self, recording: str | None = None, since: str | None = None, until: str | None = None
    ) -> Answer:
        """The newest first, each with what a reader needs to choose one."""
        store = self._open(recording)
        span = _window(store, since, until)
        found = [
            one
            for one in read_report(store).wrong
            if Span(one.from_ns, one.to_ns + 1).overlaps(span)
        ]
        newest = sorted(found, key=lambda one: one.from_ns, reverse=True)
        return {
            "incidents": [_line(one) for one in newest[:_MOST_INCIDENTS]],
            "left_out": max(0, len(newest) - _MOST_INCIDENTS),
        }

    def verdict(self, incident: str, recording: str | None = None) -> Answer:
        report = read_report(self._open(recording))
        for one in report.incidents:
            if one.id == incident:
                return one.as_json()
        raise UsageError(
            f"there is no incident {clean(incident, 80)!r}", "list_incidents gives their ids"
        )

    def moment(self, at: str, recording: str | None = None, core: int | None = None) -> Answer:
        """What happened around a moment, also if nothing was wrong."""
        store = self._open(recording)
        report: Report = diagnose(store, parse_moment_ns(at, store.span()[1]), core=core)
        return {"incidents": [one.as_json() for one in report.incidents], "notes": report.notes}

    def late(
        self,
        program: str,
        recording: str | None = None,
        since: str | None = None,
        until: str | None = None,
    ) -> Answer:
        store = self._open(recording)
        return victim_report(store, program, _window(store, since, until)).as_json()

    def changes(
        self, at: str, recording: str | None = None, seconds: int = 60, core: int | None = None
    ) -> Answer:
        """The stretch around a moment against the one before it."""
        store = self._open(recording)
        first_ns, last_ns = store.span()
        length_ns = min(max(seconds, 2), 3600) * NS_PER_S
        start_ns = max(parse_moment_ns(at, last_ns) - length_ns // 2, first_ns + length_ns)
        window = Span(start_ns, min(start_ns + length_ns, last_ns + 1))
        if window.length_ns <= 0:
            raise UsageError(
                "the recording is too short to compare there", f"it holds {_held(store)}"
            )
        return window_changes(store, window, Span(start_ns - length_ns, start_ns), core).as_json()

    def flame(
        self,
        recording: str | None = None,
        since: str | None = None,
        until: str | None = None,
        core: int | None = None,
        program: str | None = None,
        baseline_since: str | None = None,
        baseline_until: str | None = None,
        waits: bool = False,
    ) -> Answer:
        """Functions by weight; with a baseline those whose share changed most."""
        store = self._open(recording)
        chosen = Selection.of(
            cpus=None if core is None else [core], comms=None if program is None else [program]
        )
        tree = _flame(store, _window(store, since, until), chosen, waits=waits)
        heading = Heading("", store.info().node, HeadingWindow.of(tree))
        if not (baseline_since or baseline_until):
            return {"text": functions_text(top_functions(tree), heading, top=_TOP)}
        before = _flame(store, _window(store, baseline_since, baseline_until), chosen, waits=waits)
        pairs = pair_functions(top_functions(tree), top_functions(before))
        both = Heading(
            "", store.info().node, HeadingWindow.of(tree), baseline=HeadingWindow.of(before)
        )
        return {"text": differential_text(pairs, compare(tree, before), both, top=_TOP)}

    def rows(
        self,
        table: str,
        recording: str | None = None,
        since: str | None = None,
        until: str | None = None,
        core: int | None = None,
        columns: Sequence[str] | None = None,
        limit: int = 50,
    ) -> Answer:
        """The last rows of a window, as they were recorded."""
        if table not in TABLES or not TABLES[table].is_timed:
            timed = [name for name, one in TABLES.items() if one.is_timed]
            raise UsageError(
                f"there is no table {clean(table, 80)!r}", f"one of: {', '.join(timed)}"
            )
        known = [column.name for column in TABLES[table].columns]
        if unknown := [name for name in columns or () if name not in known]:
            raise UsageError(
                f"{table} has no column {clean(unknown[0], 80)!r}", f"one of: {', '.join(known)}"
            )
        store = self._open(recording)
        span = _window(store, since, until)
        span = Span(max(span.from_ns, span.to_ns - _MOST_READ_NS), span.to_ns)
        found = store.rows(table, *span, None if core is None else [core], columns)
        kept = found.slice(max(0, found.num_rows - min(max(limit, 1), _MOST_ROWS)))
        return {
            "window": span.as_json(),
            "rows": kept.to_pylist(),
            "earlier_rows_left_out": found.num_rows - kept.num_rows,
        }

    def tables(self) -> Answer:
        return {
            "tables": {
                name: {
                    "meaning": table.meaning,
                    "columns": {column.name: column.meaning for column in table.columns},
                }
                for name, table in TABLES.items()
            }
        }

    def _open(self, name: str | None) -> Store:
        if name is None and len(self.places) == 1:
            name = next(iter(self.places))
        if name is None or name not in self.places:
            known = ", ".join(self.places)
            facts = "say which recording" if name is None else f"no recording {clean(name, 80)!r}"
            raise UsageError(facts, f"one of: {known}")
        return Store.open(self.places[name])

    def _describe_recording(self, name: str) -> Answer:
        try:
            store = Store.open(self.places[name])
            info = store.info()
        except NecroscopeError as error:
            return {"recording": name, "error": error.facts}
        return {
            "recording": name,
            "node": info.node,
            "from": None if info.from_ns is None else format_moment(info.from_ns),
            "to": None if info.to_ns is None else format_moment(info.to_ns),
            "cores": info.cpus,
            "is_live": is_recorded(self.places[name]),
            "labels": info.labels,
        }


def _line(incident: Incident) -> Answer:
    verdict = incident.verdict
    return {
        "id": incident.id,
        "from": format_moment(incident.from_ns),
        "to": format_moment(incident.to_ns),
        "core": incident.core,
        "mode": incident.mode,
        "cause": verdict.cause,
        "confidence": round(verdict.confidence, 2),
        "summary": verdict.summary,
    }


def _window(store: Store, since: str | None, until: str | None) -> Span:
    """Moments are relative to the end of the recording, as on the command line."""
    first_ns, last_ns = store.span()
    from_ns = first_ns if since is None else max(parse_moment_ns(since, last_ns), first_ns)
    to_ns = last_ns + 1 if until is None else min(parse_moment_ns(until, last_ns), last_ns + 1)
    if from_ns >= to_ns:
        raise UsageError("this window is not in the recording", f"it holds {_held(store)}")
    return Span(from_ns, to_ns)


def _held(store: Store) -> str:
    first_ns, last_ns = store.span()
    return f"{format_moment(first_ns)} to {format_moment(last_ns)}"


def _flame(store: Store, span: Span, chosen: Selection, *, waits: bool) -> Any:
    if waits:
        return read_wait_flame(store, span, chosen)
    return read_flame(store, *span, chosen, limit=TimeLimit(_TIME_LIMIT_S))


def bounded(answer: Answer) -> str:
    """JSON of at most LONGEST_ANSWER characters: the longest lists are cut until it fits, and say
    by how much.
    """
    cleaned = _clean_all(answer)
    most = 100
    text = json.dumps(cleaned)
    while len(text) > LONGEST_ANSWER and most > 1:
        most //= 2
        text = json.dumps(_cut(cleaned, most))
    return text if len(text) <= LONGEST_ANSWER else json.dumps({"error": "the answer is too long"})


def _clean_all(value: Any) -> Any:
    if isinstance(value, str):
        return "\n".join(clean(line, _TEXT) for line in value.split("\n"))
    if isinstance(value, Mapping):
        return {clean(str(key), _TEXT): _clean_all(one) for key, one in value.items()}
    if isinstance(value, list | tuple):
        return [_clean_all(one) for one in value]
    return value


def _cut(value: Any, most: int) -> Any:
    if isinstance(value, str):
        return value if len(value) <= most * 200 else f"{value[: most * 200]} (cut)"
    if isinstance(value, dict):
        return {key: _cut(one, most) for key, one in value.items()}
    if isinstance(value, list):
        kept = [_cut(one, most) for one in value[:most]]
        return kept if len(value) <= most else [*kept, f"({len(value) - most} more left out)"]
    return value
