"""`necroscope check`: a second of looking at this node, and what is wrong with it. Exit 0 well, 1
problem, 2 could not tell.
"""

import json
import sys
from pathlib import Path
from typing import Final

import click

from necroscope.analysis.checkup import saturated_cores, zombie_cgroups
from necroscope.analysis.checkup.checkup import Checkup, check_up
from necroscope.analysis.checkup.finding import Finding, Level, Seen
from necroscope.analysis.checkup.saturated_cores import SECONDS
from necroscope.cli.node_look import look
from necroscope.cli.recorder_options import chosen_settings, settings_options
from necroscope.errors import NecroscopeError
from necroscope.model.units import NS_PER_MS, NS_PER_S, format_duration
from necroscope.settings import Settings
from necroscope.sources.cgroupfs.timed_read import QUICK_NS, Probed, probe
from necroscope.verdicts.ledger import Ledger
from necroscope.views.checkup import render, render_plugin
from necroscope.views.incident_lines import incident_findings, recent

# One tick of a second; where that finds a core held, some more, to see whether it stays so.
_LOOK_NS: Final = 1_050 * NS_PER_MS
_LONG_LOOK_NS: Final = SECONDS * NS_PER_S + 50 * NS_PER_MS


@click.command()
@click.option(
    "--probe",
    "is_probing",
    is_flag=True,
    help="also time a read of cgroup statistics, from small to large, with care",
)
@click.option(
    "--recording",
    type=click.Path(path_type=Path),
    metavar="DIR",
    help="also what this recorder has found recently [the one of this node]",
)
@click.option("--plugin", is_flag=True, help="one line, for node-problem-detector")
@click.option("--json", "as_json", is_flag=True, help="findings as JSON")
@settings_options
def command(
    is_probing: bool,
    recording: Path | None,
    plugin: bool,
    as_json: bool,
    settings_file: Path | None,
    **options: str | None,
) -> None:
    """Is this node well? Held cores, softirq stalls, resets in the log, dead cgroups, crash loops,
    colliding interrupts.

    Takes under two seconds (three more if a core is held, to see whether it stays so) and writes
    nothing to disk. Exit 0 well, 1 problem, 2 could not tell.

    \b
    Examples:
      necroscope check
      necroscope check --json | jq '.findings[].title'
      necroscope check --probe          what does a walk over all cgroups cost here?
      necroscope check --recording D    also what another recorder found: locks, quotas
      necroscope check --plugin         as a custom plugin of node-problem-detector
    """
    settings = chosen_settings(settings_file, options)
    seen = look(settings, _LOOK_NS)
    if any(finding.level is Level.NOTICE for finding in saturated_cores.examine(seen)):
        seen = look(settings, _LONG_LOOK_NS)
    more = _probed(settings, seen) if is_probing else ()
    recorded = recording if recording is not None else seen.recording
    if recorded is not None:
        more += incident_findings(recent(Ledger.open(Path(recorded))), str(recorded))
    checkup = check_up(seen, more)
    _print(checkup, as_json=as_json, plugin=plugin)
    sys.exit(checkup.exit_code)


def _probed(settings: Settings, seen: Seen) -> tuple[Finding, ...]:
    cpus = [row["cpu"] for row in seen.newest("cores", "cpu") if isinstance(row["cpu"], int)]
    of_network = [
        row["cpu"]
        for row in seen.rows("interrupts")
        if row["device"] is not None and isinstance(row["cpu"], int)
    ]
    try:
        probed = probe(settings.host_root, cpus, of_network, zombie_cgroups.held(seen))
    except (NecroscopeError, OSError) as error:
        return (Finding("probe", Level.UNKNOWN, f"cgroup statistics could not be timed: {error}"),)
    return (_timed(probed),) if probed.reads or probed.left_out else ()


def _timed(probed: Probed) -> Finding:
    left_out = (f"the root was not read: {probed.left_out}",) if probed.left_out else ()
    if not probed.reads:
        return Finding("probe", Level.UNKNOWN, "no read of cgroup statistics was timed", left_out)
    slowest = max(probed.reads, key=lambda read: read.duration_ns or NS_PER_S * 3600)
    took = "over 2 s" if slowest.duration_ns is None else format_duration(slowest.duration_ns)
    is_slow = slowest.duration_ns is None or slowest.duration_ns > QUICK_NS
    title = f"the slowest read of cgroup statistics took {took}: {slowest.path}"
    hint = (
        "every reader of it (kubelet, cAdvisor, agents) holds a core for so long: find who leaks"
        " cgroups"
        if is_slow
        else ""
    )
    return Finding("probe", Level.PROBLEM if is_slow else Level.NOTICE, title, left_out, hint)


def _print(checkup: Checkup, *, as_json: bool, plugin: bool) -> None:
    if as_json:
        click.echo(json.dumps(checkup.as_json()))
    elif plugin:
        click.echo(render_plugin(checkup))
    else:
        click.echo(render(checkup, lambda text, colour: click.style(text, fg=colour, bold=True)))
