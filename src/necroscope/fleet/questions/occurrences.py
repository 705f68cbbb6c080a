"""On which nodes an event or a cause happened: how often, and when first."""

from dataclasses import dataclass
from typing import Any, Final, NamedTuple

from necroscope.errors import UsageError
from necroscope.fleet.ask import LakeQuestions, View
from necroscope.fleet.lake_tables import NodeKey
from necroscope.fleet.questions.job_outcomes import read_hit_nodes
from necroscope.fleet.questions.newest_incidents import NEWEST_INCIDENTS
from necroscope.model.span import Span
from necroscope.model.units import NS_PER_S, format_moment

_MOST_LISTED: Final = 20
# What people did about earlier failures looks like a cause of later ones.
_LOOK_BACK_NS: Final = 90 * 86400 * NS_PER_S


@dataclass(frozen=True, slots=True)
class Subject:
    """What is asked about: an event by its kind, the verdicts of a cause by its slug, or jobs that
    died (`job`).
    """

    what: str
    name: str

    def __str__(self) -> str:
        return self.name

    def as_json(self) -> dict[str, str]:
        return {"what": self.what, "name": self.name}


class Occurrences(NamedTuple):
    """`moments` are all that are known, in order, also before the span; `times` are of the span."""

    moments: list[int]
    times: int

    @property
    def first_ns(self) -> int:
        return self.moments[0]


JOB_FAILED: Final = Subject("job", "job_failed")


def about(event: str | None, cause: str | None, *, of_jobs: bool = False) -> Subject:
    if (event is not None) + (cause is not None) + of_jobs != 1:
        raise UsageError(
            "say what to explain: one event or one cause",
            "for example --event nic_reset, or --cause zombie-memcg-walk",
        )
    if of_jobs:
        return JOB_FAILED
    return Subject("event", event) if event is not None else Subject("cause", str(cause))


def read_occurrences(
    questions: LakeQuestions, subject: Subject, span: Span
) -> dict[NodeKey, Occurrences]:
    """Nodes on which it happened in the span, and when first, also before it. None is an error that
    lists what there is.
    """
    if subject == JOB_FAILED:
        hit = read_hit_nodes(questions, span)
        if not hit:
            raise _no_chain(span)
        return {key: Occurrences(moments, len(moments)) for key, moments in hit.items()}
    source, views = _source(subject, Span(max(0, span.from_ns - _LOOK_BACK_NS), span.to_ns))
    query = f"""
        SELECT cluster, node, list_sort(list(time)), count(*) FILTER (time >= ?) AS times
        FROM ({source}) WHERE name = ? GROUP BY cluster, node
        HAVING times > 0 ORDER BY cluster, node
    """
    rows = questions.rows(query, views, [span.from_ns, subject.name])
    if not rows:
        raise _nothing(questions, subject, span)
    return {(cluster, node): Occurrences(moments, times) for cluster, node, moments, times in rows}


def read_moments(
    questions: LakeQuestions, subject: Subject, span: Span
) -> dict[NodeKey, list[int]]:
    """All moments, in order, by node; nothing is not an error."""
    if subject == JOB_FAILED:
        return read_hit_nodes(questions, span)
    source, views = _source(subject, span)
    rows = questions.rows(
        f"SELECT cluster, node, list_sort(list(time)) FROM ({source}) WHERE name = ? GROUP BY ALL",
        views,
        [subject.name],
    )
    return {(cluster, node): moments for cluster, node, moments in rows}


def read_nodes_by_name(questions: LakeQuestions, what: str, span: Span) -> dict[str, list[NodeKey]]:
    """Of each event, or each cause, the nodes it happened on; of those on most nodes first."""
    source, views = _source(Subject(what, ""), span)
    query = (
        f"SELECT name, list(DISTINCT (cluster, node)) AS nodes FROM ({source}) GROUP BY 1 ORDER BY"
        " len(nodes) DESC, name"
    )
    return {name: [_values(row) for row in nodes] for name, nodes in questions.rows(query, views)}


def _values(row: Any) -> tuple[str, str]:
    """DuckDB gives a row within a list as a dictionary or a tuple, by its version."""
    found = tuple(row.values()) if isinstance(row, dict) else tuple(row)
    return found[0], found[1]


def _source(subject: Subject, span: Span) -> tuple[str, dict[str, View]]:
    if subject.what == "event":
        view = View(span, ("boot_id", "source_sequence", "kind"))
        return "SELECT cluster, node, time, kind AS name FROM events", {"events": view}
    view = View(span, ("id", "cause", "analysed_ns"))
    return f"SELECT cluster, node, time, cause AS name FROM ({NEWEST_INCIDENTS})", {
        "incidents": view
    }


def _no_chain(span: Span) -> UsageError:
    when = f"from {format_moment(span.from_ns)} to {format_moment(span.to_ns)}"
    return UsageError(
        f"no job that failed {when} leads to a node",
        "see how they ended: necroscope fleet jobs; what programs did to themselves has no node",
    )


def _nothing(questions: LakeQuestions, subject: Subject, span: Span) -> UsageError:
    there = list(read_nodes_by_name(questions, subject.what, span).items())
    when = f"from {format_moment(span.from_ns)} to {format_moment(span.to_ns)}"
    if there:
        text = ", ".join(f"{name} ({len(nodes)} nodes)" for name, nodes in there[:_MOST_LISTED])
        more = f", and {len(there) - _MOST_LISTED} more" if len(there) > _MOST_LISTED else ""
        return UsageError(
            f"no node had the {subject.what} {subject.name!r} {when}", f"there are: {text}{more}"
        )
    table = "events" if subject.what == "event" else "incidents"
    days = questions.lake.days(table)
    if days:
        return UsageError(
            f"no {table} at all {when}",
            f"the lake holds {table} of {min(days)} to {max(days)}: give --since and --until",
        )
    hint = "push a recording to a collector first: necroscope fleet push D --to URL"
    return UsageError(f"the lake {questions.lake.url} holds no {table} yet", hint)
