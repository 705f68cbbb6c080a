"""`necroscope stakeout`: the overnight experiment, as one command."""

import json
import shutil
import signal
import sys
from pathlib import Path
from typing import Any, Final

import click

from necroscope.analysis.report import Report
from necroscope.cli.stakeout_nodes import run_over_nodes
from necroscope.errors import UsageError
from necroscope.model.units import format_bytes, format_duration, parse_duration_ns
from necroscope.sources.kernel_log.patterns import PATTERNS
from necroscope.stakeout.outcome import FAILURE, Outcome, Run
from necroscope.stakeout.plan import Plan
from necroscope.stakeout.relevant import relevant
from necroscope.stakeout.remote_run import OVER_SSH
from necroscope.stakeout.stakeout import CATCHES, SUMMARY, Stakeout
from necroscope.store.query import Store
from necroscope.verdicts.reading import read_report
from necroscope.views.format import count, literal, percent, time_of_day
from necroscope.views.report_text import report_to_text

_OTHER_KINDS: Final = (
    "core_saturated softirq_stall unit_restart unit_failed container_die container_start"
    " container_oom ray_node_dead ray_actor_died ray_job_failed ray_job_hang ray_object_lost"
    " ray_fetch_timeout ray_health_check_failed"
)
_SHOWN_RUNS: Final = 12


@click.command(context_settings={"ignore_unknown_options": True})
@click.option(
    "--until",
    multiple=True,
    metavar="EVENT",
    help=f"event kind to wait for, or {FAILURE} [{FAILURE}]; may be repeated",
)
@click.option("--for", "length", metavar="T", help="stop after this long, for example 8h")
@click.option("--repeat", type=click.IntRange(min=1), metavar="N", help="stop after this many runs")
@click.option(
    "--parallel",
    type=click.IntRange(1, 64),
    default=1,
    metavar="K",
    help="runs at the same time [1]",
)
@click.option(
    "--count", "counts_all", is_flag=True, help="do not stop at the first: count them all"
)
@click.option(
    "--on",
    "nodes",
    multiple=True,
    metavar="NODE",
    help="on this node, under its own recorder; may be repeated",
)
@click.option(
    "--over",
    metavar="TEMPLATE",
    default=OVER_SSH,
    show_default=True,
    help="how a node is reached; {command} is one word for a shell there",
)
@click.option(
    "--against", metavar="CMD", help="with --on: another variant, run in pairs until one is better"
)
@click.option(
    "--dir",
    "directory",
    type=click.Path(path_type=Path),
    required=True,
    metavar="D",
    help="new directory to keep it in",
)
@click.option(
    "--json", "as_json", is_flag=True, help="runs, events, success rate and report as JSON"
)
@click.argument("job", nargs=-1, required=True, type=click.UNPROCESSED, metavar="-- CMD...")
def command(
    until: tuple[str, ...],
    length: str | None,
    repeat: int | None,
    parallel: int,
    counts_all: bool,
    nodes: tuple[str, ...],
    over: str,
    against: str | None,
    directory: Path,
    as_json: bool,
    job: tuple[str, ...],
) -> None:
    """Run a job again and again under the recorder until an event is caught or the job fails; then
    say what did it.

    Each run's outcome, cost and output are kept in D/runs and D/stakeout.json, the recording in
    D/recording. Ctrl-C ends it and prints what is known until then. It reports incidents that
    overlap a run, first those of caught events and of failed runs.

    Exit 0: it ended (--for, --repeat, Ctrl-C) and what was waited for did not happen. Exit 1: it
    happened, --count or not; `ended_by` of --json says what ended it. Exit 2 to 6: an error.

    \b
    Examples:
      necroscope stakeout --dir night --until nic_reset --for 8h -- ./train.sh
      necroscope stakeout --dir tries --until failure --repeat 50 --parallel 2 -- python job.py
      necroscope stakeout --dir ab --on gpu-1 --on gpu-2 --for 8h --against ./new.sh -- ./old.sh
      necroscope stakeout --dir rate --count --until oom_kill --for 1h -- ./load-test
    """
    limit_ns = parse_duration_ns(length) if length else None
    plan = Plan(_check_kinds(until), limit_ns, repeat, parallel, counts_all)
    if nodes:
        sys.exit(run_over_nodes(directory, nodes, job, against, plan, over, as_json=as_json))
    if against is not None:
        raise UsageError("--against compares runs on nodes", "say on which: --on NODE")
    sys.exit(_run_here(directory, job, plan, as_json=as_json))


def _run_here(directory: Path, job: tuple[str, ...], plan: Plan, *, as_json: bool) -> int:
    stakeout = Stakeout(directory, job, plan, _progress if sys.stderr.isatty() else lambda *_: None)
    for number in (signal.SIGINT, signal.SIGTERM):
        signal.signal(number, lambda *_: stakeout.stop())
    outcome = stakeout.run()
    if sys.stderr.isatty():
        click.echo("\r\x1b[K", nl=False, err=True)
    report = relevant(read_report(Store.open(stakeout.recording)), outcome)
    click.echo(
        json.dumps(_as_json(outcome, report)) if as_json else _as_text(outcome, report, directory)
    )
    return 1 if plan.found(outcome) else 0


def _check_kinds(until: tuple[str, ...]) -> frozenset[str]:
    known = {FAILURE, *_OTHER_KINDS.split(), *(pattern.kind for pattern in PATTERNS)}
    if unknown := sorted(set(until) - known):
        raise UsageError(
            f"no event is called {', '.join(unknown)}", f"one of: {', '.join(sorted(known))}"
        )
    return frozenset(until or (FAILURE,))


def _progress(outcome: Outcome, under_way: int) -> None:
    parts = (
        f"{outcome.finished} runs, {outcome.failures} failed, {under_way} under way,"
        f" {len(outcome.caught)} events"
    )
    click.echo(f"\r\x1b[K{parts}", nl=False, err=True)


def _as_json(outcome: Outcome, report: Report) -> dict[str, Any]:
    return {**outcome.as_json(), "report": report.as_json()}


def _as_text(outcome: Outcome, report: Report, directory: Path) -> str:
    low, high = outcome.interval
    rate = (
        f"{outcome.successes} of {outcome.finished} runs succeeded"
        if outcome.finished
        else "no run ended by itself"
    )
    sure = (
        f" ({percent(outcome.successes / outcome.finished)}, likely {low:.0%} to {high:.0%})"
        if outcome.finished
        else ""
    )
    lines = [
        (
            f"{outcome.ended.words if outcome.ended else 'ended'}: {rate}{sure}; all of it is in"
            f" {directory}/{SUMMARY}"
        ),
        "",
    ]
    lines += [_run_line(run) for run in outcome.runs[-_SHOWN_RUNS:]]
    if len(outcome.runs) > _SHOWN_RUNS:
        lines.append(f"  ({count(len(outcome.runs) - _SHOWN_RUNS)} earlier runs are not shown)")
    lines += [
        f"  {time_of_day(event.time_ns)} {event.kind}: {literal(event.message, 160)}"
        for event in outcome.caught[-_SHOWN_RUNS:]
    ]
    if outcome.excerpts:
        lines += [
            "",
            (
                "  the minutes around it are kept: necroscope diagnose"
                f" {directory / CATCHES / outcome.excerpts[0]}"
            ),
        ]
    width = min(shutil.get_terminal_size()[0], 120) if sys.stdout.isatty() else 100
    return "\n".join([*lines, "", report_to_text(report, width)])


def _run_line(run: Run) -> str:
    how = (
        "stopped"
        if run.stopped
        else f"FAILED with {run.exit_code}"
        if run.is_failure
        else "succeeded"
    )
    memory = "" if run.peak_rss_bytes is None else f", {format_bytes(run.peak_rss_bytes)} at most"
    return (
        f"  run {run.number} {how}: {format_duration(run.ended_ns - run.started_ns)},"
        f" {run.cpu_s:.1f} CPU s{memory}"
    )
