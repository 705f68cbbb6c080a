"""`necroscope fleet trial`: does it help? Treated against untreated nodes, chosen by lot."""

import json
import secrets
import time
from collections.abc import Callable
from pathlib import Path
from typing import Any, Final

import click

from necroscope.cli.fleet_asking import AnswerSource, with_source
from necroscope.errors import UsageError
from necroscope.fleet.trial.ledger import (
    SUFFIX,
    NodeState,
    Trial,
    draw_nodes,
    locked,
    read_trial,
    refuse_overlap,
    write_trial,
)
from necroscope.fleet.trial.steps import TrialSteps, command_words, run_command
from necroscope.model.units import NS_PER_S, parse_duration_ns

Json = dict[str, Any]
_HELPS, _UNKNOWN = "it helps", "not known yet"
# Exit codes of `run` and `status`.
DOES_NOT_HELP, NOT_KNOWN = 1, 8
_FILE: Final = click.Path(path_type=Path)
_JSON: Final = click.option("--json", "as_json", is_flag=True, help="as JSON")
_YES: Final = click.option("--yes", is_flag=True, help="do it; without it, only say what would be")


@click.group("trial")
def command() -> None:
    """Does a treatment help? Nodes chosen at random get it, others do not. The test may be looked
    at any time, and stops as soon as it knows; a treatment that did not help is taken back.

    The ledger FILE holds what was done to which node, and ends in .trial.json. Commands run on this
    machine, without a shell, once for each treated node; running them twice must do no harm.

    \b
    Examples:
      necroscope fleet trial plan ecs.trial.json --event nic_reset --where 'unit_outcome:ecs.service=crash-loop' \\
        --apply 'ssh {node} sudo systemctl disable --now ecs' --revert 'ssh {node} sudo systemctl enable --now ecs' --lake L
      necroscope fleet trial run ecs.trial.json --yes --lake L
      necroscope fleet trial status ecs.trial.json --lake L
      necroscope fleet trial revert ecs.trial.json --yes
    """  # noqa: E501 - commands are shown as they are typed


@command.command()
@click.argument("file", type=_FILE)
@click.option("--event", metavar="KIND", help="the event it should prevent")
@click.option("--cause", metavar="SLUG", help="or the verdicts of this cause")
@click.option("--where", required=True, metavar="EXPR", help="draw from these nodes")
@click.option(
    "--nodes", "count", default=40, show_default=True, help="number of nodes, half of them treated"
)
@click.option("--seed", type=int, help="of the lot [a new one]")
@click.option("--apply", "apply_", required=True, metavar="CMD", help="gives {node} the treatment")
@click.option("--revert", required=True, metavar="CMD", help="takes it back on {node}")
@with_source
@_JSON
def plan(
    file: Path,
    event: str | None,
    cause: str | None,
    where: str,
    count: int,
    seed: int | None,
    apply_: str,
    revert: str,
    source: AnswerSource,
    as_json: bool,
) -> None:
    """Draw the nodes, write the ledger, and say what would be done to which node."""
    if not file.name.endswith(SUFFIX) or file.exists():
        problem = "is there already" if file.exists() else f"does not end in {SUFFIX}"
        raise UsageError(f"{file} {problem}", f"name a new file, for example ecs{SUFFIX}")
    if (event is None) == (cause is None):
        raise UsageError("say what it should prevent", "--event nic_reset, or --cause SLUG")
    found = source.ask("nodes", {"where": where})["nodes"]
    keys = [(each["cluster"], each["node"]) for each in found if not each["is_silent"]]
    drawn = seed if seed is not None else secrets.randbits(31)
    what, name = ("event", event) if event is not None else ("cause", str(cause))
    nodes = draw_nodes(keys, count, drawn)
    trial = Trial(what, str(name), where, drawn, apply_, revert, time.time_ns(), nodes)
    for template in (apply_, revert):
        command_words(template, nodes[0])
    refuse_overlap(file, trial)
    write_trial(file, trial)
    click.echo(json.dumps(trial.as_json()) if as_json else _plan_text(trial, file))


@command.command()
@click.argument("file", type=_FILE)
@click.option("--every", default="10m", show_default=True, metavar="T", help="how often to look")
@click.option(
    "--for", "for_", default="14d", show_default=True, metavar="T", help="the longest it may take"
)
@_YES
@with_source
@_JSON
def run(file: Path, every: str, for_: str, yes: bool, source: AnswerSource, as_json: bool) -> None:
    """Treat the nodes, look until it is known whether it helps, and take it back if it does not.

    Exit code: 0 it helps, 1 it does not and was taken back, 8 not known when the time was over (the
    treatment stays). May be ended and started again at any time.
    """
    every_s, longest_ns = parse_duration_ns(every) / NS_PER_S, parse_duration_ns(for_)
    with locked(file):
        trial = read_trial(file)
        if not yes:
            click.echo(_plan_text(trial, file))
            return
        if trial.ended_ns is not None:
            raise UsageError(f"the trial has ended: {trial.finding}", "plan a new one")
        refuse_overlap(file, trial)
        steps = TrialSteps(file, trial, time.time_ns, run_command, _say)
        steps.apply()
        answer = _watch(trial, source, every_s, longest_ns, time.sleep)
        _finish(steps, answer, as_json=as_json)


@command.command()
@click.argument("file", type=_FILE)
@with_source
@_JSON
def status(file: Path, source: AnswerSource, as_json: bool) -> None:
    """What is known by now; exit codes as of `run`."""
    answer = _ask(read_trial(file), source)
    click.echo(json.dumps(answer) if as_json else answer["summary"])
    _exit(answer["finding"])


@command.command()
@click.argument("file", type=_FILE)
@_YES
def revert(file: Path, yes: bool) -> None:
    """Take the treatment back on every node that may have something of it, and end the trial."""
    with locked(file):
        trial = read_trial(file)
        left = [node for node in trial.nodes if node.needs_undo]
        if not yes:
            for node in left:
                click.echo(" ".join(command_words(trial.revert, node)))
            return
        steps = TrialSteps(file, trial, time.time_ns, run_command, _say)
        is_clean = steps.revert()
        if is_clean:
            steps.end(trial.finding or "taken back")
        stuck = [node.node for node in trial.nodes if node.state is NodeState.STUCK]
        click.echo(
            f"taken back on {len(left) - len(stuck)} of {len(left)} nodes"
            + (f"; still on: {', '.join(stuck[:20])}" if stuck else "")
        )
        if not is_clean:
            raise SystemExit(1)


def _watch(
    trial: Trial,
    source: AnswerSource,
    every_s: float,
    longest_ns: int,
    sleep: Callable[[float], None],
) -> Json:
    until_ns = (trial.started_ns or time.time_ns()) + longest_ns
    while True:
        answer = _ask(trial, source)
        if answer["finding"] != _UNKNOWN or time.time_ns() >= until_ns:
            return answer
        _say(answer["summary"])
        sleep(every_s)


def _ask(trial: Trial, source: AnswerSource) -> Json:
    """Nodes that did not take the treatment take no part."""
    if trial.started_ns is None:
        raise UsageError("the trial has not begun", "begin with: fleet trial run FILE --yes")
    sides = {
        "treated": [
            (node, node.applied_ns) for node in trial.treated if node.applied_ns is not None
        ],
        "untreated": [(node, trial.started_ns) for node in trial.nodes if not node.is_treated],
    }
    words: dict[str, str | None] = {
        side: ",".join(f"{node.cluster}/{node.node}@{at_ns}" for node, at_ns in nodes)
        for side, nodes in sides.items()
    }
    return source.ask("trial", {**words, trial.what: trial.name})


def _finish(steps: TrialSteps, answer: Json, *, as_json: bool) -> None:
    finding = answer["finding"]
    if finding != _UNKNOWN:
        is_clean = finding == _HELPS or steps.revert()
        if is_clean:
            steps.end(finding)
    click.echo(json.dumps(answer) if as_json else answer["summary"])
    _exit(finding)


def _exit(finding: str) -> None:
    if finding != _HELPS:
        raise SystemExit(NOT_KNOWN if finding == _UNKNOWN else DOES_NOT_HELP)


def _plan_text(trial: Trial, file: Path) -> str:
    lines = [" ".join(command_words(trial.apply, node)) for node in trial.treated]
    others = [node.node for node in trial.nodes if not node.is_treated]
    return "\n".join(
        [
            f"by lot (seed {trial.seed}) {len(lines)} nodes are treated:",
            *(f"  {line}" for line in lines),
            f"and {len(others)} are left as they are: {', '.join(others)}",
            f"begin with: necroscope fleet trial run {file} --yes",
        ]
    )


def _say(text: str) -> None:
    click.echo(text, err=True)
