"""A report as one HTML page that needs no network: the verdict in words, the timeline, the heat map
and the flame graph.
"""

from base64 import b64encode
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from html import escape
from importlib.resources import files
from typing import Final

from necroscope.analysis.gap_notes import gap_notes, is_damage
from necroscope.analysis.report import (
    UNKNOWN,
    Alternative,
    Culprit,
    Evidence,
    Incident,
    Report,
    Verdict,
)
from necroscope.model.units import format_duration, format_moment
from necroscope.views.format import literal

_TEXT_LIMIT: Final = 600
_NOTHING: Final = (
    "<article><h2>Nothing was found</h2><p>No core was starved, as far as this recording"
    " shows.</p></article>"
)


@dataclass(frozen=True, slots=True)
class Pictures:
    """What was drawn for an incident; a picture that could not be drawn is None, with the reason in
    `notes`.

    `flame_page` is a whole page of its own, which runs `flame_script_hash` and nothing else.
    """

    timeline_svg: str | None = None
    heat_map_svg: str | None = None
    flame_page: str | None = None
    flame_script_hash: str = ""
    notes: tuple[str, ...] = ()


def report_html(report: Report, pictures: Mapping[str, Pictures]) -> str:
    hashes = {item.flame_script_hash for item in pictures.values() if item.flame_script_hash}
    scripts = (
        "script-src " + " ".join(f"'{item}'" for item in sorted(hashes)) + ";" if hashes else ""
    )
    policy = (
        f"default-src 'none'; style-src 'unsafe-inline'; img-src data:; frame-src data:; {scripts}"
        " base-uri 'none'"
    )
    title = f"What happened on {_text(report.node)}"
    articles = "\n".join(
        _incident(incident, pictures.get(incident.id, Pictures())) for incident in report.incidents
    )
    return f"""<!doctype html>
<html lang="en">
<head>
<meta charset="utf-8">
<meta http-equiv="Content-Security-Policy" content="{policy}">
<meta name="viewport" content="width=device-width, initial-scale=1">
<title>{title}</title>
<style>{files("necroscope.views.report").joinpath("page.css").read_text("utf-8")}</style>
</head>
<body>
<h1>{title}</h1>
<p class="faint">{_span(report)}</p>
{articles or _NOTHING}
{_listed("What could not be seen", [*report.notes, *gap_notes(report.gaps)[:12]])}
</body>
</html>
"""


def _span(report: Report) -> str:
    if report.from_ns is None or report.to_ns is None:
        return "the recording is empty"
    span = (
        f"{format_moment(report.from_ns)} to {format_moment(report.to_ns)}"
        f" ({format_duration(report.to_ns - report.from_ns)})"
    )
    asked = "" if report.asked_ns is None else f", asked about {format_moment(report.asked_ns)}"
    damaged = (
        "; parts of it are damaged and cannot be read" if any(map(is_damage, report.gaps)) else ""
    )
    return (
        f"{span}{asked}, {len(report.wrong)}"
        f" incident{'' if len(report.wrong) == 1 else 's'}{damaged}; all times are UTC"
    )


def _incident(incident: Incident, pictures: Pictures) -> str:
    verdict = incident.verdict
    where = (
        f"core {incident.core}, {incident.mode or 'mode unknown'}"
        if incident.core is not None
        else "the whole machine"
    )
    when = (
        f"{format_moment(incident.from_ns)}, {format_duration(incident.to_ns - incident.from_ns)}"
    )
    return f"""<article id="{escape(incident.id)}">
<h2>{_heading(incident)}</h2>
<p class="faint">{when}, {where}</p>
<p class="summary">{_text(verdict.summary)}</p>
{_figure(pictures.timeline_svg, "Each core, second by second; the incident is shaded.")}
{_who(verdict)}
{_evidence("Why we think so", verdict.evidence)}
{_evidence("What speaks against it", verdict.against)}
{_listed("What to do", verdict.fix)}
{_listed("How to see that it helped", verdict.verify)}
{_will_not_help(verdict)}
{_alternatives(incident.alternatives)}
{_events(incident)}
{_image(pictures.heat_map_svg, "Samples of the core within each second: dark is busy.")}
{_frame(pictures.flame_page, "Flame graph of the core during the incident: click to zoom, / to search.")}
{_listed("Not drawn", pictures.notes)}
</article>"""


def _heading(incident: Incident) -> str:
    """What it is and how sure that is; nobody is sure of what is not known."""
    verdict = incident.verdict
    if not incident.is_wrong:
        return 'Nothing was wrong<span class="sure">asked about</span>'
    if verdict.cause == UNKNOWN:
        return f'{_text(verdict.title)}<span class="sure">not known</span>'
    return (
        f'{_text(verdict.title)}<span class="sure">{verdict.confidence:.0%} sure:'
        f" <code>{_text(verdict.cause)}</code></span>"
    )


def _who(verdict: Verdict) -> str:
    rows = _culprit_rows(verdict.culprit) if verdict.culprit else []
    if verdict.origin is not None:
        rows.append(("act on", f"{verdict.origin.kind} {verdict.origin.name}"))
    listed = "".join(f"<dt>{name}</dt><dd>{_text(value)}</dd>" for name, value in rows)
    path = (
        " → ".join(_text(function) for function in verdict.culprit.path) if verdict.culprit else ""
    )
    shown = f'<div class="path"><code>{path}</code></div>' if path else ""
    return f"<h3>Who</h3><dl>{listed}</dl>{shown}" if listed or shown else ""


def _culprit_rows(culprit: Culprit) -> list[tuple[str, str]]:
    task = f"{culprit.comm} (pid {culprit.pid})" if culprit.pid is not None else culprit.comm
    rows = [
        ("task", task),
        ("unit", culprit.unit),
        ("container", culprit.container),
        ("cgroup", culprit.cgroup),
    ]
    return [(name, value) for name, value in rows if value]


def _evidence(title: str, items: Sequence[Evidence]) -> str:
    def one(item: Evidence) -> str:
        place = [
            f"core {item.cpu}" if item.cpu is not None else "",
            f"table {item.table}" if item.table else "",
        ]
        told = ", ".join(filter(None, [format_moment(item.from_ns), *place]))
        return f'{_text(item.text)} <span class="faint">({_text(told)})</span>'

    return _section(title, [one(item) for item in items])


def _will_not_help(verdict: Verdict) -> str:
    return _section(
        "What will not help",
        [f"<b>{_text(item.what)}</b>: {_text(item.why)}" for item in verdict.will_not_help],
    )


def _alternatives(alternatives: Sequence[Alternative]) -> str:
    told = [
        f"<code>{_text(other.cause)}</code> ({other.confidence:.0%}): {_text(other.why_not)}"
        for other in alternatives
    ]
    return _section("What else it could have been", told)


def _events(incident: Incident) -> str:
    if not incident.events:
        return ""
    rows = "".join(
        f"<tr><td>{format_moment(event.time_ns)}</td><td>{_text(event.kind)}</td><td>{_place(event.core, event.joined_by)}</td>"
        f"<td>{_text(event.message)}</td></tr>"
        for event in incident.events
    )
    return f"<h3>Events</h3><table><tr><th>when</th><th>what</th><th>where</th><th>message</th></tr>{rows}</table>"


def _place(core: int | None, joined_by: str | None) -> str:
    if core is None:
        return ""
    return f"core {core}" + (f" (by {_text(joined_by)})" if joined_by else "")


def _listed(title: str, texts: Iterable[str]) -> str:
    return _section(title, [_text(text) for text in texts])


def _section(title: str, items: Sequence[str]) -> str:
    """`items` are markup already."""
    return (
        f"<h3>{title}</h3><ul>{''.join(f'<li>{item}</li>' for item in items)}</ul>" if items else ""
    )


def _figure(markup: str | None, caption: str) -> str:
    return f"<figure>{markup}<figcaption>{caption}</figcaption></figure>" if markup else ""


def _image(svg: str | None, caption: str) -> str:
    """As an image it can neither run a script nor lend its style to the page."""
    return _figure(
        f'<img alt="{caption}" src="{_data("image/svg+xml", svg)}">' if svg else None, caption
    )


def _frame(page: str | None, caption: str) -> str:
    markup = (
        f'<iframe title="{caption}" sandbox="allow-scripts"'
        f' src="{_data("text/html;charset=utf-8", page)}"></iframe>'
    )
    return _figure(markup if page else None, caption)


def _data(kind: str, content: str | None) -> str:
    return f"data:{kind};base64,{b64encode((content or '').encode()).decode()}"


def _text(text: str) -> str:
    return escape(literal(text, _TEXT_LIMIT))
