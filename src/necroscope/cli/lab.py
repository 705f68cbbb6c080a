"""`necroscope lab`: real incidents, provoked on this machine, measured and undone; and the score of
the verdicts on them.
"""

import contextlib
import json
import sys
import time
from pathlib import Path
from typing import Any

import click

from necroscope.lab import catalog, safety
from necroscope.lab.label import LABEL_FILE, read_label
from necroscope.lab.ledger import ActLedger, state_directory
from necroscope.lab.run import BASELINE_S, Request, run
from necroscope.lab.scenario import LabError, Scenario
from necroscope.lab.score.scoring import RunPlan, diagnose, judge, provoke
from necroscope.lab.score.text import score_to_text, variation_to_text
from necroscope.lab.undo import undo_all


@click.group("lab")
def command() -> None:
    """Provoke real incidents on this machine, record them, and undo them.

    Needs root, and a machine that no other person depends on.

    \b
    Examples:
      necroscope lab list
      necroscope lab run userspace-hog --dir ./hog
      necroscope lab score --dir ./scores --seeds 3
    """


@command.command("list")
@click.option("--json", "as_json", is_flag=True, help="as JSON")
def list_scenarios(as_json: bool) -> None:
    """The scenarios, what they need, and whether this machine has it."""
    found = [_describe(scenario) for scenario in catalog.scenarios().values()]
    if as_json:
        click.echo(json.dumps(found))
        return
    width = max(len(each["name"]) for each in found)
    for each in found:
        kind = each["cause"] or "healthy"
        missing = (
            click.style(f"  (needs {', '.join(each['missing'])})", fg="yellow")
            if each["missing"]
            else ""
        )
        click.echo(f"{each['name']:<{width}}  {kind:<24}  {each['title']}{missing}")


@command.command("run")
@click.argument("name")
@click.option(
    "--dir",
    "directory",
    type=click.Path(path_type=Path),
    required=True,
    help="new directory for recording and label",
)
@click.option("--seconds", type=float, help="length of the incident")
@click.option(
    "--seed",
    type=click.IntRange(min=0),
    help="chooses the core, names and numbers; the same again gives the same",
)
@click.option("--core", type=click.IntRange(min=0), help="the core to provoke it on")
@click.option(
    "--baseline",
    type=click.FloatRange(min=0, max=3600),
    default=BASELINE_S,
    help="seconds to record before it",
)
@click.option(
    "--force", is_flag=True, help="also on a Kubernetes node or a machine with many users"
)
@click.option("--json", "as_json", is_flag=True, help="print the label as JSON")
def run_scenario(
    name: str,
    directory: Path,
    seconds: float | None,
    seed: int | None,
    core: int | None,
    baseline: float,
    force: bool,
    as_json: bool,
) -> None:
    """Provoke one incident under the recorder, and write the truth next to the recording as
    label.json.

    \b
    Examples:
      necroscope lab run softirq-blackout --dir ./blackout --core 1
      necroscope lab run zombie-memcg-walk --dir ./zombies --seconds 60 --seed 7 --json
    """
    label = run(
        catalog.find(name), Request(directory, seconds, seed, core, baseline, force), Progress().say
    )
    click.echo(json.dumps(label) if as_json else label_to_text(label, directory))


@command.command("clean")
def clean() -> None:
    """Undo what a run that was killed has left behind."""
    safety.check(force=True)
    failures: list[str] = []
    count = 0
    for ledger in ActLedger.abandoned(state_directory()):
        count += 1
        failures += undo_all(ledger)
    if failures:
        raise LabError(f"could not undo: {'; '.join(failures)}")
    click.echo(f"{count} unfinished run{'s' * (count != 1)} undone")


@command.command("score")
@click.option(
    "--dir",
    "directory",
    type=click.Path(path_type=Path),
    help="directory of the recordings, one each; with --vary by default those of the tests",
)
@click.option(
    "--scenario", "names", multiple=True, metavar="NAME", help="only this one, may be repeated"
)
@click.option("--seeds", type=click.IntRange(1, 1000), default=1, help="runs of each scenario")
@click.option(
    "--reuse", is_flag=True, help="keep the recordings that are there, and run only what is missing"
)
@click.option(
    "--no-run",
    is_flag=True,
    help="run nothing: score the recordings that are there (needs no root)",
)
@click.option(
    "--force", is_flag=True, help="also on a Kubernetes node or a machine with many users"
)
@click.option(
    "--vary",
    metavar="LOW..HIGH",
    help="run nothing: scale each threshold of the causes, and show which verdicts change",
)
@click.option("--json", "as_json", is_flag=True, help="as JSON")
def score_scenarios(
    directory: Path | None,
    names: tuple[str, ...],
    seeds: int,
    reuse: bool,
    no_run: bool,
    force: bool,
    vary: str | None,
    as_json: bool,
) -> None:
    """Run scenarios over seeds, diagnose each recording, and say how often the verdict is right.

    Three levels: core and mode; cause; culprit and origin. Beside it the same for three simple ways
    to answer, and how often something was named on a healthy machine.

    \b
    Examples:
      necroscope lab score --dir ./scores --seeds 3
      necroscope lab score --dir ./scores --reuse --scenario rt-hog --scenario fifo-spinner-harmless
      necroscope lab score --dir ./scores --no-run --json
      necroscope lab score --vary 0.7..1.4
    """
    if vary is not None:
        _vary_thresholds(directory, vary, as_json)
        return
    if directory is None:
        raise LabError("there is no directory to score", "say where: --dir ./scores")
    chosen = [catalog.find(name) for name in names] or list(catalog.scenarios().values())
    plan = RunPlan(directory, chosen, seeds, reuse, force)
    say = Progress().say
    unlabelled = [] if no_run else provoke(plan, say)
    there = (
        _list_labelled(directory, {scenario.name for scenario in chosen})
        if no_run
        else _list_planned(plan)
    )
    if not there:
        raise LabError(f"there is nothing to score in {directory}", "run without --no-run")
    scores, rows = judge(there, diagnose, say)
    if as_json:
        found = {
            "scores": {name: each.as_json() for name, each in scores.items()},
            "runs": rows,
            "not_scored": unlabelled,
        }
        click.echo(json.dumps(found))
    else:
        click.echo(score_to_text(scores, rows, unlabelled))


def _vary_thresholds(directory: Path | None, text: str, as_json: bool) -> None:
    """A tenth of a second per recording of the tests, more for longer ones, ten minutes in all."""
    from necroscope.lab.score import vary  # noqa: PLC0415 - the analysis is not needed to provoke

    factors = vary.parse_factors(text)
    found = vary.vary(vary.truths(directory or vary.kept_recordings()), factors, Progress().say)
    click.echo(json.dumps(found.as_json()) if as_json else variation_to_text(found, factors))


def _list_planned(plan: RunPlan) -> list[Path]:
    return [path for _, _, path in plan.recordings() if (path / LABEL_FILE).exists()]


def _list_labelled(directory: Path, names: set[str]) -> list[Path]:
    return [
        path.parent
        for path in sorted(directory.glob(f"*/{LABEL_FILE}"))
        if read_label(path.parent)["scenario"] in names
    ]


class Progress:
    """Lines on standard error with the seconds since the start."""

    def __init__(self) -> None:
        self._start = time.monotonic()

    def say(self, text: str) -> None:
        moment = click.style(f"{time.monotonic() - self._start:6.1f} s", dim=True)
        # A lost listener must not end a run before it is undone.
        with contextlib.suppress(OSError):
            click.echo(f"{moment}  {text}", err=True, color=sys.stderr.isatty())


def _describe(scenario: type[Scenario]) -> dict[str, Any]:
    return {
        "name": scenario.name,
        "cause": scenario.cause,
        "twin": scenario.twin,
        "seconds": scenario.seconds,
        "needs": list(scenario.needs),
        "missing": catalog.missing_needs(scenario),
        "title": " ".join(scenario.story().split("\n\n")[0].split()),
        "story": scenario.story(),
    }


def label_to_text(label: dict[str, Any], directory: Path) -> str:
    culprit, origin = label["culprit"], label["origin"]
    lines = [
        f"scenario  {label['scenario']}, seed {label['seed']}",
        f"cause     {label['cause'] or 'none: nothing is wrong'}",
        f"core      {'–' if label['core'] is None else label['core']}, mode {label['mode'] or '–'}",
        *([f"culprit   {culprit['comm']}"] if culprit else []),
        *([f"origin    {origin['kind']} {origin['name']}"] if origin else []),
        f"impact    {', '.join(f'{name} {value}' for name, value in label['impact'].items())}",
        *([f"emulated  {', '.join(label['emulated'])}"] if label["emulated"] else []),
        f"time      {label['from']} to {label['to']}",
        f"next      necroscope diagnose {directory}",
    ]
    return "\n".join(lines)
