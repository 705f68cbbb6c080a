"""Questions over HTTP, for readers: the same words and the same JSON as the command line; bundles
as they were pushed.
"""

import io
from collections.abc import Callable
from typing import Annotated, Any, Final, Literal

from fastapi import APIRouter, Query, Response

from necroscope.errors import UsageError
from necroscope.fleet.ask import LakeQuestions
from necroscope.fleet.collector.access import CollectorOf, Reader
from necroscope.fleet.collector.admission import Refusal, Turns
from necroscope.fleet.collector.collector import Collector
from necroscope.fleet.flame_files import write_flame
from necroscope.fleet.questions.answer import answer
from necroscope.fleet.questions.choices import ChoicesAnswer, WorstCoresAnswer, choices, worst_cores
from necroscope.fleet.questions.timeline import as_rows
from necroscope.fleet.questions.words import Json, Words
from necroscope.fleet.tokens import Grant
from necroscope.model.span import Span

router: Final = APIRouter(prefix="/v1")
# A question over a large fleet takes a gigabyte: two at a time. The pool has 40 threads.
_TURNS: Final = Turns(at_once=2, waiting=20, longest_wait_s=30.0)
_LONGEST_S: Final = 30.0
_LONGEST_TEXT: Final = 4096
_LONGEST_LIST: Final = 32_768

Text = Annotated[str | None, Query(max_length=_LONGEST_TEXT)]
Name = Annotated[str | None, Query(max_length=200)]
Moment = Annotated[str | None, Query(max_length=64, description="ISO 8601, or -7d before now")]
# Small questions, asked by every page that opens: one at a time is enough, and leaves the machine
# to the large ones.
_PAGE_TURNS: Final = Turns(at_once=1, waiting=10, longest_wait_s=20.0)
_PAGE_LONGEST_S: Final = 20.0
Since = Annotated[str, Query(max_length=64, description="ISO 8601, or -7d before now")]
PageAnswer = ChoicesAnswer | WorstCoresAnswer
_FLAME_TYPES: Final = {
    "folded": "text/plain; charset=utf-8",
    "svg": "image/svg+xml",
    "html": "text/html; charset=utf-8",
}
# A picture is shown by itself, and must not act for the user who is logged in.
_PICTURE_HEADERS: Final = {
    "X-Content-Type-Options": "nosniff",
    "Content-Security-Policy": "sandbox allow-scripts",
}


def _ask(name: str, grant: Grant, collector: Collector, words: Words) -> Json:
    with _TURNS.turn():
        return answer(
            name,
            LakeQuestions(collector.lake, collector.clock_ns(), grant.clusters, _LONGEST_S),
            words,
        )


# Plain functions: FastAPI runs them in a thread, next to the intake.
@router.get("/nodes")
def nodes(
    grant: Reader,
    collector: CollectorOf,
    where: Text = None,
    since: Moment = None,
    until: Moment = None,
) -> Json:
    """Who is there, with labels, last sign of life and events."""
    return _ask("nodes", grant, collector, {"where": where, "since": since, "until": until})


@router.get("/incidents")
def incidents(
    grant: Reader,
    collector: CollectorOf,
    where: Text = None,
    cause: Name = None,
    since: Moment = None,
    until: Moment = None,
    limit: Annotated[int, Query(ge=1, le=10_000)] = 100,
) -> Json:
    """The newest incidents, and how many there are of each cause."""
    words = {"where": where, "cause": cause, "since": since, "until": until, "limit": str(limit)}
    return _ask("incidents", grant, collector, words)


@router.get("/incidents/{cluster}/{node}/{incident}")
def incident(grant: Reader, collector: CollectorOf, cluster: str, node: str, incident: str) -> Json:
    """One incident with its whole report."""
    return _ask("incident", grant, collector, {"cluster": cluster, "node": node, "id": incident})


@router.get("/why")
def why(
    grant: Reader,
    collector: CollectorOf,
    event: Name = None,
    cause: Name = None,
    job_failed: bool = False,
    where: Text = None,
    since: Moment = None,
    until: Moment = None,
) -> Json:
    """Which difference between the nodes goes with an event, a cause, or the deaths of jobs."""
    words = {"event": event, "cause": cause, "where": where, "since": since, "until": until}
    return _ask("why", grant, collector, {**words, "job_failed": "true" if job_failed else None})


@router.get("/next")
def next_to_be_hit(
    grant: Reader,
    collector: CollectorOf,
    event: Name = None,
    cause: Name = None,
    where: Text = None,
    since: Moment = None,
    until: Moment = None,
) -> Json:
    """Which nodes carry what was named and are not hit yet, and when they will be."""
    return _ask(
        "next",
        grant,
        collector,
        {"event": event, "cause": cause, "where": where, "since": since, "until": until},
    )


@router.get("/diff")
def diff(
    grant: Reader,
    collector: CollectorOf,
    a: Annotated[str, Query(max_length=_LONGEST_TEXT)],
    b: Annotated[str, Query(max_length=_LONGEST_TEXT)],
    since: Moment = None,
    until: Moment = None,
    all: bool = False,  # noqa: A002 - the word of the question
) -> Json:
    """The facts in which two nodes or groups differ."""
    return _ask(
        "diff",
        grant,
        collector,
        {"a": a, "b": b, "since": since, "until": until, "all": "true" if all else None},
    )


@router.get("/baseline")
def baseline(
    grant: Reader,
    collector: CollectorOf,
    where: Text = None,
    expected: Annotated[str | None, Query(max_length=_LONGEST_LIST)] = None,
    since: Moment = None,
    until: Moment = None,
) -> Json:
    """What runs that no one asked for, and how often units succeed."""
    words = {"where": where, "expected": expected, "since": since, "until": until}
    return _ask("baseline", grant, collector, words)


@router.get("/change")
def change(
    grant: Reader,
    collector: CollectorOf,
    fact: Annotated[str, Query(max_length=_LONGEST_TEXT)],
    event: Name = None,
    cause: Name = None,
    since: Moment = None,
    until: Moment = None,
) -> Json:
    """How often something happened before and after a fact changed."""
    return _ask(
        "change",
        grant,
        collector,
        {"fact": fact, "event": event, "cause": cause, "since": since, "until": until},
    )


@router.get("/trial")
def trial(
    grant: Reader,
    collector: CollectorOf,
    treated: Annotated[str, Query(max_length=_LONGEST_LIST)],
    untreated: Annotated[str, Query(max_length=_LONGEST_LIST)],
    event: Name = None,
    cause: Name = None,
    until: Moment = None,
) -> Json:
    """Whether a treatment helps, by the nodes that have it and those that have not."""
    words = {"treated": treated, "untreated": untreated, "event": event, "cause": cause}
    words["until"] = until
    return _ask("trial", grant, collector, words)


@router.get("/timeline")
def timeline(
    grant: Reader,
    collector: CollectorOf,
    event: Name = None,
    cause: Name = None,
    by: Annotated[str, Query(max_length=200)] = "zone",
    where: Text = None,
    since: Moment = None,
    until: Moment = None,
    format: Literal["json", "rows"] = "json",  # noqa: A002 - the word of the question
) -> Json:
    """How often an event or a cause happened over time, by a label; as flat rows for dashboards."""
    words = {
        "event": event,
        "cause": cause,
        "by": by,
        "where": where,
        "since": since,
        "until": until,
    }
    found = _ask("timeline", grant, collector, words)
    return found if format == "json" else {"rows": as_rows(found)}


@router.get("/jobs")
def jobs(
    grant: Reader,
    collector: CollectorOf,
    where: Text = None,
    by: Annotated[str, Query(max_length=200)] = "kind",
    since: Moment = None,
    until: Moment = None,
    limit: Annotated[int, Query(ge=1, le=10_000)] = 100,
) -> Json:
    """Jobs over nodes, how they ended, and how often they succeed."""
    words = {"where": where, "by": by, "since": since, "until": until, "limit": str(limit)}
    return _ask("jobs", grant, collector, words)


@router.get("/job")
def job(
    grant: Reader,
    collector: CollectorOf,
    job: Name = None,
    at: Moment = None,
    since: Moment = None,
    until: Moment = None,
) -> Json:
    """Why a job died; without an id the one that failed last."""
    words = {"job": job, "at": at, "since": since, "until": until}
    return _ask("job", grant, collector, words)


@router.get("/flame", response_model=None)
def flame(
    grant: Reader,
    collector: CollectorOf,
    where: Text = None,
    baseline: Text = None,
    since: Moment = None,
    until: Moment = None,
    format: Literal["json", "folded", "svg", "html"] = "json",  # noqa: A002 - the word of the question
) -> Json | Response:
    """Where the cores of a group of nodes spent their time."""
    found = _ask(
        "flame",
        grant,
        collector,
        {"where": where, "baseline": baseline, "since": since, "until": until},
    )
    if format == "json":
        return found
    out = io.BytesIO()
    write_flame(found, format, out)
    return Response(out.getvalue(), media_type=_FLAME_TYPES[format], headers=_PICTURE_HEADERS)


@router.get("/bundles/{cluster}/{date}/{name}", response_class=Response)
def bundle(grant: Reader, collector: CollectorOf, cluster: str, date: str, name: str) -> Response:
    """An evidence bundle: a zstd'd tar of an excerpt recording."""
    if grant.clusters is not None and cluster not in grant.clusters:
        raise Refusal(
            403, f"this token may not read {cluster!r}", f"it reads {', '.join(grant.clusters)}"
        )
    if not name.endswith(".bundle"):
        raise UsageError(f"{name!r} is not a bundle", "its name ends in .bundle")
    data: Any = collector.lake.read(f"bundles/cluster={cluster}/date={date}/{name}")
    return Response(
        data, media_type="application/zstd", headers={"X-Content-Type-Options": "nosniff"}
    )


def _ask_for_page(
    ask: Callable[[LakeQuestions, Span], PageAnswer],
    grant: Grant,
    collector: Collector,
    since: str,
    until: str | None,
) -> Json:
    now_ns = collector.clock_ns()
    questions = LakeQuestions(collector.lake, now_ns, grant.clusters, _PAGE_LONGEST_S)
    with _PAGE_TURNS.turn():
        return ask(questions, Span.parse(since, until, now_ns)).as_json()


@router.get("/choices")
def offered(
    grant: Reader, collector: CollectorOf, since: Since = "-7d", until: Moment = None
) -> Json:
    """Events, causes and labels that there are."""
    return _ask_for_page(choices, grant, collector, since, until)


@router.get("/worst-cores")
def worst(
    grant: Reader, collector: CollectorOf, since: Since = "-7d", until: Moment = None
) -> Json:
    """Of each node the core that was held most."""
    return _ask_for_page(worst_cores, grant, collector, since, until)
