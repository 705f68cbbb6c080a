"""`necroscope job`: why did this job die? From the recordings of its nodes, without a collector."""

import json
from contextlib import ExitStack
from dataclasses import replace
from pathlib import Path
from typing import Any, Final

import click

from necroscope.analysis.jobs.blame import find_story, outcome_of
from necroscope.analysis.jobs.member import Member
from necroscope.analysis.jobs.reading import Standing, newest_members, read_node
from necroscope.analysis.jobs.runs import JobRun, choose, runs
from necroscope.analysis.jobs.story import JobStory
from necroscope.cli.fleet_asking import width
from necroscope.cli.opened_recording import opened_recording
from necroscope.cli.recording_place import find_recording
from necroscope.errors import UsageError
from necroscope.model.names import clean
from necroscope.model.span import Span
from necroscope.model.units import NS_PER_S, format_moment, parse_moment_ns
from necroscope.store.query import Store
from necroscope.verdicts.reading import read_incidents
from necroscope.views.fleet.jobs import job_to_text, jobs_to_text

_SEGMENT_NS: Final = 300 * NS_PER_S


@click.command()
@click.argument("words", nargs=-1, metavar="[ID] [RECORDING]...")
@click.option("--at", "at_text", metavar="T", help="the run at this moment, if there are several")
@click.option("--list", "lists", is_flag=True, help="list the jobs instead")
@click.option("--json", "as_json", is_flag=True, help="print JSON")
def command(words: tuple[str, ...], at_text: str | None, lists: bool, as_json: bool) -> None:
    """Why did this job die: which member stopped first, which one the others waited for, and what
    happened on that node and core in those seconds.

    Give the recordings of as many of its nodes as you have; without one, that of the recorder
    which runs here is read. Without an ID: the job that ended last, failed ones first. An ID may be
    the end of one: 4711 is slurm/4711. "Not the machine" is an answer.

    \b
    Examples:
      necroscope job
      necroscope job slurm/4711 node-a/recording node-b/recording node-c/recording
      necroscope job --list /var/lib/necroscope
    """
    name, paths = _split(words)
    with ExitStack() as stack:
        stores = [stack.enter_context(opened_recording(path, None, None))[0] for path in paths]
        named = _stores_by_node(stores)
        found = runs([member for node, store in named.items() for member in _all(store, node)])
        if lists:
            answer = jobs_answer(found)
            click.echo(json.dumps(answer) if as_json else jobs_to_text(answer, width()))
            return
        at_ns = None if at_text is None else parse_moment_ns(at_text, _last_ns(stores))
        run = _choose_run(found, name, at_ns)
        answer = story(run, named).as_json()
        click.echo(json.dumps(answer) if as_json else job_to_text(answer, width()))


def jobs_answer(found: list[JobRun]) -> dict[str, Any]:
    """Newest first."""
    span = Span(
        min((run.from_ns for run in found), default=0), max((run.to_ns for run in found), default=1)
    )
    jobs = [
        {
            "job": run.job,
            "submission": run.submission,
            "kind": run.members[0].kind,
            "outcome": outcome_of(run.members),
            "from": format_moment(run.from_ns),
            "to": format_moment(run.to_ns),
            "nodes": sorted({one.node for one in run.members}),
        }
        for run in sorted(found, key=lambda run: -run.to_ns)
    ]
    return {"schema": 1, **span.as_json(), "count": len(jobs), "jobs": jobs}


def story(run: JobRun, stores: dict[str, Store]) -> JobStory:
    """With how its members stood and the verdicts, of the minutes around its end."""
    nodes, members = [], []
    for node in run.nodes:
        store = stores[node]
        first_ns, end_ns = store.span()
        span = Span(max(run.end_span.from_ns, first_ns), min(run.end_span.to_ns, end_ns + 1))
        standing = Standing(store, span)
        own = [member for member in run.members if member.node == node]
        members += [standing.of(member, span.to_ns) for member in own]
        nodes.append(read_node(store, span, read_incidents(store, span), node))
    return replace(find_story(run.job, members, nodes), submission=run.submission)


def _all(store: Store, node: str) -> list[Member]:
    """A member that lives is written again with each segment."""
    extent = _extent(store)
    found = newest_members(store, extent, node)
    return [replace(one, seen_ns=min(one.seen_ns + _SEGMENT_NS, extent.to_ns)) for one in found]


def _extent(store: Store) -> Span:
    first_ns, last_ns = store.span()
    return Span(first_ns, last_ns + 1)


def failed_jobs(store: Store) -> list[str]:
    """Newest first."""
    if not store.info().tables.get("job_members"):
        return []
    found = runs(newest_members(store, _extent(store)))
    failed = [run for run in found if outcome_of(run.members) == "failed"]
    return [clean(run.job) for run in sorted(failed, key=lambda run: -run.to_ns)]


def _split(words: tuple[str, ...]) -> tuple[str | None, list[Path]]:
    """The first word is an id unless it is a recording or looks like one; without a recording, that
    of the recorder which runs here.
    """
    is_named = bool(words) and not Path(words[0]).exists()
    is_named = is_named and (len(words) > 1 or not words[0].startswith(("/", ".", "~")))
    paths = [Path(word) for word in (words[1:] if is_named else words)]
    return (words[0] if is_named else None), paths or [find_recording()]


def _stores_by_node(stores: list[Store]) -> dict[str, Store]:
    """By node; two recordings of one node get different names."""
    found: dict[str, Store] = {}
    for store in stores:
        node = store.info().node or "unknown"
        if node in found:
            raise UsageError(
                f"two of these recordings are of node {node}",
                "give one recording per node; record the nodes under different host names",
            )
        found[node] = store
    return found


def _choose_run(found: list[JobRun], name: str | None, at_ns: int | None) -> JobRun:
    if name is None and at_ns is None:
        failed = [run for run in found if outcome_of(run.members) == "failed"]
        return choose(sorted(failed or found, key=lambda run: run.to_ns), None)
    return choose(found, name, at_ns)


def _last_ns(stores: list[Store]) -> int:
    return max(store.span()[1] for store in stores)
