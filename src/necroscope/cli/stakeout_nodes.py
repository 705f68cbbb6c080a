"""`necroscope stakeout --on NODE...`: the same experiment on several nodes at once, also of two
variants.
"""

import json
import shlex
import signal
from collections.abc import Sequence
from pathlib import Path
from typing import Any, Final

import click

from necroscope.errors import UsageError
from necroscope.model.units import NS_PER_S
from necroscope.stakeout.over_nodes import NodesOutcome, StakeoutOverNodes
from necroscope.stakeout.plan import Plan
from necroscope.stakeout.remote_run import Remote
from necroscope.stakeout.stakeout import SUMMARY
from necroscope.views.format import literal

_SHOWN: Final = 12


def run_over_nodes(
    directory: Path,
    nodes: Sequence[str],
    job: Sequence[str],
    against: str | None,
    plan: Plan,
    over: str,
    *,
    as_json: bool,
) -> int:
    """The exit code: 1 if what was waited for happened, or one variant is known to be better."""
    if len(set(nodes)) < len(nodes) or not all(nodes):
        raise UsageError("a node is named twice, or not at all", "give each node once with --on")
    jobs = [list(job), *([_variant(against)] if against is not None else [])]
    if plan.limit_ns is None and plan.repeat is None and against is not None:
        raise UsageError(
            "two variants that are alike would be compared forever", "give --for T or --repeat N"
        )
    limit_s = None if plan.limit_ns is None else plan.limit_ns / NS_PER_S
    waits, remote = sorted(plan.until), Remote(over)
    stakeout = StakeoutOverNodes(
        directory, nodes, jobs, waits, remote, limit_s, plan.repeat, plan.counts_all
    )
    for number in (signal.SIGINT, signal.SIGTERM):
        signal.signal(number, lambda *_: stakeout.stop())
    outcome = stakeout.run()
    if outcome.lost and not outcome.runs:
        node, why = next(iter(outcome.lost.items()))
        raise UsageError(f"no node could be used: {node}: {why}", "try the command by hand")
    click.echo(json.dumps(outcome.as_json()) if as_json else _as_text(outcome, directory))
    comparison = outcome.comparison
    is_known = comparison is not None and comparison.better is not None
    return 1 if is_known or (comparison is None and outcome.caught) else 0


def _variant(text: str) -> list[str]:
    try:
        words = shlex.split(text)
    except ValueError as error:
        raise UsageError(f"{text!r} is not a command: {error}") from None
    if not words:
        raise UsageError("--against is empty", "give the other variant: --against './train.sh -b'")
    return words


def _as_text(outcome: NodesOutcome, directory: Path) -> str:
    answer = outcome.as_json()
    rate = _rate(answer["success_rate"])
    lines = [f"{outcome.ended}: {rate}; all of it is in {directory}/{SUMMARY}", ""]
    comparison = answer["comparison"]
    if comparison is not None:
        lines += [f"  {name.upper()}: {_rate(comparison[name])}" for name in ("a", "b")]
        pairs = f"  {comparison['pairs']} pairs: only A went well in {comparison['only_a']}, only B"
        known = f"in {comparison['only_b']}; evidence {comparison['evidence']:.1f}, 20 decides"
        lines += [f"{pairs} {known}", ""]
    lines += [
        f"  {literal(run.node, 80)}, run {run.number}{run.variant}: {', '.join(run.caught)}:"
        f" {directory / (run.kept or '')}"
        for run in outcome.caught[-_SHOWN:]
    ]
    lines += [f"  {literal(node, 80)} was left out: {why}" for node, why in outcome.lost.items()]
    return "\n".join(lines).rstrip()


def _rate(rate: dict[str, Any]) -> str:
    low, high = rate["interval"]
    return f"{rate['successes']} of {rate['runs']} runs succeeded (likely {low:.0%} to {high:.0%})"
