"""A report as a page that a tired engineer understands: what happened, who, why we think so, what
to do, what will not help.
"""

import re
import textwrap
from collections.abc import Iterable, Iterator
from typing import Final

from necroscope.analysis.gap_notes import gap_notes, is_damage
from necroscope.analysis.report import (
    UNKNOWN,
    Culprit,
    Evidence,
    Incident,
    Report,
    ReportedEvent,
    Verdict,
)
from necroscope.model.units import format_duration, format_moment
from necroscope.views.format import literal, time_of_day

_MARGIN: Final = 2
_WORD: Final = 11
_LINE_LIMIT: Final = 400
_PATH_SHOWN: Final = 8
_MOST: Final = 6
# The word for the recording in the commands of a verdict, which does not know where it lies.
_DIR: Final = "DIR"
_COMMAND: Final = re.compile(r": (necroscope [^():]*(?::\d\d[^():]*)*)$")
_ABOUT: Final = ((0.9, "very sure"), (0.75, "sure"), (0.5, "likely"), (0.0, "not known"))


def report_to_text(report: Report, width: int = 100, place: str = _DIR) -> str:
    """All incidents, each a section; a healthy recording is one line. `place` is what commands name
    as the recording.
    """
    lines = _wrapped(_headline(report), width, "", "")
    for number, incident in enumerate(report.incidents, 1):
        count = f"{number} of {len(report.incidents)} ── " if incident.is_wrong else ""
        lines += ["", *_section(incident, f"{count}{_describe_span(incident)}", width, place)]
    return "\n".join([*lines, *_notes(report, width)])


def incident_to_text(incident: Incident, width: int = 100, *, goes_on: bool = False) -> str:
    """One incident, as `--watch` prints it when it is seen and when it is over."""
    when = (
        f"since {_day_and_time(incident.from_ns)} UTC, still going on"
        if goes_on
        else _describe_span(incident)
    )
    return "\n".join(_section(incident, when, width))


def _headline(report: Report) -> str:
    if report.from_ns is None or report.to_ns is None:
        return f"nothing is recorded yet of {_plain(report.node)}: ask again in a few seconds"
    length = format_duration(report.to_ns - report.from_ns)
    what = {0: "no incident", 1: "1 incident"}.get(
        len(report.wrong), f"{len(report.wrong)} incidents"
    )
    core = "" if report.asked_core is None else f" on core {report.asked_core}"
    damaged = (
        " (parts of it are damaged and cannot be read)" if any(map(is_damage, report.gaps)) else ""
    )
    if report.asked_ns is not None:
        found = "an incident" if report.wrong else "no incident"
        return (
            f"{found} at {format_moment(report.asked_ns)}{core} of {_plain(report.node)}{damaged}"
        )
    span = f"{format_moment(report.from_ns)} to {format_moment(report.to_ns)}"
    return f"{what}{core} in {length} of {_plain(report.node)}, {span}{damaged}"


def _section(incident: Incident, when: str, width: int, place: str = _DIR) -> Iterator[str]:
    verdict = incident.verdict
    yield _rule(incident, when, width)
    yield from _wrapped(_sentence(verdict.summary), width, "", "")
    yield ""
    yield from _facts(incident, width)
    yield from _list("why we think so", [_dated(item) for item in verdict.evidence], width)
    yield from _list(
        "what speaks against it", [_plain(item.text) for item in verdict.against], width
    )
    if not incident.is_wrong:
        return
    to_do = [_plain(item).replace(f" {_DIR} ", f" {place} ") for item in verdict.fix]
    yield from _list("what to do", to_do, width, is_numbered=True)
    yield from _list("how to see that it helped", [_plain(item) for item in verdict.verify], width)
    useless = [f"{_plain(item.what)}: {_plain(item.why)}" for item in verdict.will_not_help]
    yield from _list("what will not help", useless, width)
    others = [
        f"{other.cause} ({other.confidence:.0%}): {_plain(other.why_not)}"
        for other in incident.alternatives
    ]
    yield from _list("what else it could have been", others, width)


def _rule(incident: Incident, when: str, width: int) -> str:
    place = "the whole node" if incident.core is None else f"core {incident.core}"
    mode = f", {incident.mode}" if incident.mode else ""
    head = f"── {when} ── {place}{mode} "
    return head + "─" * max(0, width - len(head))


def _describe_span(incident: Incident) -> str:
    first, last = _day_and_time(incident.from_ns), _day_and_time(incident.to_ns)
    return f"{first} to {last.removeprefix(first[: len('2026-04-15 ')])} UTC"


def _day_and_time(time_ns: int) -> str:
    return format_moment(time_ns)[: len("2026-04-15T10:30:07")].replace("T", " ")


def _facts(incident: Incident, width: int) -> Iterator[str]:
    verdict = incident.verdict
    if incident.is_wrong:
        yield from _fact("cause", _cause(verdict), width)
    if verdict.culprit is not None and verdict.culprit.comm:
        yield from _fact("who", _describe_culprit(verdict.culprit), width)
    if verdict.culprit is not None and verdict.culprit.path:
        yield from _fact("where", _path(verdict.culprit.path), width)
    if verdict.origin is not None:
        yield from _fact("act on", f"{verdict.origin.kind} {_plain(verdict.origin.name)}", width)
    for event in incident.events[:3]:
        yield from _fact("log", _event(event), width)


def _cause(verdict: Verdict) -> str:
    if verdict.cause == UNKNOWN:
        return "unknown: no known mechanism explains it"
    words = next(word for least, word in _ABOUT if verdict.confidence >= least)
    return f"{verdict.cause}: {_plain(verdict.title)} ({words}, {verdict.confidence:.0%})"


def _describe_culprit(culprit: Culprit) -> str:
    parts = [_plain(culprit.comm or "")]
    parts += [f"pid {culprit.pid}"] if culprit.pid else []
    if culprit.container:
        parts.append(f"container {_plain(culprit.container)}")
    elif culprit.unit:
        parts.append(f"unit {_plain(culprit.unit)}")
    elif culprit.cgroup and culprit.cgroup != "/":
        parts.append(f"cgroup {_plain(culprit.cgroup)}")
    return ", ".join(parts)


def _path(path: tuple[str, ...]) -> str:
    """The innermost functions; what is left out is counted."""
    shown = [_plain(name, 80) for name in path[-_PATH_SHOWN:]]
    left_out = len(path) - len(shown)
    return " > ".join([*([f"({left_out} more)"] if left_out else []), *shown])


def _event(event: ReportedEvent) -> str:
    how = f" [core {event.core}: {event.joined_by}]" if event.joined_by else ""
    return f"{time_of_day(event.time_ns)}  {_plain(event.message)}{how}"


def _dated(evidence: Evidence) -> str:
    return f"{time_of_day(evidence.from_ns)}  {_plain(evidence.text)}"


def _fact(word: str, text: str, width: int) -> Iterator[str]:
    yield from _wrapped(text, width, f"{'':{_MARGIN}}{word:<{_WORD - _MARGIN}}", " " * _WORD)


def _list(title: str, items: Iterable[str], width: int, is_numbered: bool = False) -> Iterator[str]:
    unique = list(dict.fromkeys(items))
    if not unique:
        return
    yield ""
    yield f"{'':{_MARGIN}}{title}"
    for number, item in enumerate(unique[:_MOST], 1):
        mark = f"{number}. " if is_numbered else "- "
        indent = " " * (2 * _MARGIN + len(mark))
        text, command = _apart(item)
        yield from _wrapped(text, width, f"{'':{2 * _MARGIN}}{mark}", indent)
        yield from ([f"{indent}{command}"] if command else [])
    if len(unique) > _MOST:
        yield f"{'':{2 * _MARGIN}}and {len(unique) - _MOST} more, see --json"


def _apart(item: str) -> tuple[str, str]:
    """A command at the end of a text stands on a line of its own, whole: a shell takes it as it
    is.
    """
    found = _COMMAND.search(item)
    return (item[: found.start(1)].rstrip(), found[1]) if found else (item, "")


def _notes(report: Report, width: int) -> Iterator[str]:
    """What is damaged first: it is most likely to hide something."""
    damaged = gap_notes(gap for gap in report.gaps if is_damage(gap))
    others = gap_notes(gap for gap in report.gaps if not is_damage(gap))
    yield from _list(
        "what could not be seen",
        [_plain(note) for note in (*damaged, *report.notes, *others)],
        width,
    )


def _wrapped(text: str, width: int, first: str, rest: str) -> list[str]:
    return textwrap.wrap(
        text, max(width, 40), initial_indent=first, subsequent_indent=rest, break_on_hyphens=False
    ) or [first]


def _sentence(text: str) -> str:
    """Its first word may be a program's name, so it stays as it is."""
    return f"{_plain(text)}."


def _plain(text: str, limit: int = _LINE_LIMIT) -> str:
    """Names and lines came from the machine: nothing in them may steer the terminal."""
    return literal(text, limit)
