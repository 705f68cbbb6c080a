"""`necroscope check`: observes this node for a second and reports what is wrong. Exit 0 healthy,
1 problem, 2 could not tell.
"""

import json
import sys
import time
from collections.abc import Sequence
from contextlib import suppress
from dataclasses import replace
from pathlib import Path
from typing import Final

import click

from necroscope.analysis.checkup import crash_loops, saturated_cores, zombie_cgroups
from necroscope.analysis.checkup.checkup import Checkup, check_up
from necroscope.analysis.checkup.finding import Finding, Level, NodeSnapshot
from necroscope.analysis.checkup.saturated_cores import SECONDS
from necroscope.analysis.recreations import START, RecreationLoop
from necroscope.cli.node_look import look
from necroscope.cli.recorder_options import chosen_settings, settings_options
from necroscope.errors import NecroscopeError
from necroscope.model.units import NS_PER_MS, NS_PER_S, format_duration
from necroscope.settings import Settings
from necroscope.sources.cgroupfs.timed_read import QUICK_NS, ProbeResult, probe
from necroscope.sources.containers import container_log
from necroscope.sources.containers.containers import SOCKETS
from necroscope.sources.containers.daemon import ContainerDaemon
from necroscope.sources.containers.docker_api import ContainerEvent
from necroscope.sources.containers.makers import MakerSearch
from necroscope.sources.systemd import own_log as systemd_log
from necroscope.verdicts.ledger import Ledger
from necroscope.views.checkup import render, render_plugin
from necroscope.views.incident_lines import incident_findings, recent

# One tick of a second; where that finds a core held, some more, to see whether it stays so.
_LOOK_NS: Final = 1_050 * NS_PER_MS
_LONG_LOOK_NS: Final = SECONDS * NS_PER_S + 50 * NS_PER_MS
_LONGEST_TURN_NS: Final = 15 * NS_PER_S
_LOGS_LIMIT: Final = 10


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
    help="also what this recorder has found recently [this node's recorder]",
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
    """Is this node healthy? Held cores, softirq stalls, resets in the log, dead cgroups, crash
    loops, colliding interrupts.

    Takes under two seconds and writes nothing to disk. It looks three seconds longer if a core is
    held, to see whether that lasts, or if a container daemon is slow; and up to eighteen if a
    container is re-created again and again, to see what does so. Exit 0 healthy, 1 problem, 2 could
    not tell.

    \b
    Examples:
      necroscope check
      necroscope check --json | jq '.findings[].title'
      necroscope check --probe          what does a walk over all cgroups cost here?
      necroscope check --recording D    also what another recorder found: locks, quotas
      necroscope check --plugin         as a custom plugin of node-problem-detector
    """
    settings = chosen_settings(settings_file, options)
    node = look(settings, _LOOK_NS)
    is_held = any(finding.level is Level.NOTICE for finding in saturated_cores.examine(node))
    # A container daemon that systemd starts for the question takes longer than a short look.
    if is_held or node.silent:
        node = look(settings, _LONG_LOOK_NS)
    if settings.containers_ns:
        node = replace(node, makers=_makers(settings.host_root, node))
    if settings.own_log_lines:
        node = replace(node, own_logs=_own_logs(settings, node))
    more = _time_reads(settings, node) if is_probing else ()
    recorded = recording if recording is not None else node.recording
    if recorded is not None:
        more += incident_findings(recent(Ledger.open(Path(recorded))), str(recorded))
    checkup = check_up(node, more)
    _print(checkup, as_json=as_json, plugin=plugin)
    sys.exit(checkup.exit_code)


def _makers(root: Path, node: NodeSnapshot) -> dict[str, tuple[str, str]]:
    """By title: who makes them is seen when they are re-created the next time."""
    loops = [
        loop
        for loop in crash_loops.recreated(node)
        if loop.unit is None and crash_loops.is_going_on(loop, node.now_ns)
    ]
    if not loops:
        return {}
    search = MakerSearch(root, [path for _, path in SOCKETS])
    for loop in loops:
        for container in loop.containers:
            search.saw_start(loop.title, container, loop.last_ns)
    turn_ns = _turn_ns(loops) + _LONG_LOOK_NS
    search.search(turn_ns / NS_PER_S, min(loop.last_ns for loop in loops))
    if any(loop.title not in search.found for loop in loops):
        for event in _events_since(root, turn_ns):
            if event.kind == START:
                search.saw_start(event.name, event.container, event.time_ns)
        search.settle()
    return {title: (maker.unit, maker.how) for title, maker in search.found.items()}


def _turn_ns(loops: Sequence[RecreationLoop]) -> int:
    return min(2 * max(loop.period_ns for loop in loops), _LONGEST_TURN_NS)


def _events_since(root: Path, back_ns: int) -> list[ContainerEvent]:
    """A daemon that does not answer now has been reported already."""
    found: list[ContainerEvent] = []
    for runtime, path in SOCKETS:
        daemon = ContainerDaemon(root, runtime, path, history_ns=back_ns)
        with suppress(NecroscopeError):
            found += daemon.look(time.time_ns()).events if daemon.is_there() else []
    return found


def _own_logs(settings: Settings, node: NodeSnapshot) -> dict[str, tuple[str, ...]]:
    root, lines = settings.host_root, settings.own_log_lines
    units = crash_loops.units_to_ask(node)[:_LOGS_LIMIT]
    found = {unit: systemd_log.read_last_lines(root, unit, lines) for unit in units}
    loops = [loop for loop in crash_loops.recreated(node) if loop.name is not None]
    deadline = time.monotonic() + _LONGEST_TURN_NS / NS_PER_S
    for loop in loops[:_LOGS_LIMIT] if settings.containers_ns else ():
        is_going_on = crash_loops.is_going_on(loop, node.now_ns)
        left_s = max(0.0, deadline - time.monotonic()) if is_going_on else 0.0
        seconds = min(left_s, _turn_ns([loop]) / NS_PER_S)
        found[loop.title] = container_log.read_last_lines(root, SOCKETS, loop.title, lines, seconds)
    return found


def _time_reads(settings: Settings, node: NodeSnapshot) -> tuple[Finding, ...]:
    cpus = [row["cpu"] for row in node.newest("cores", "cpu") if isinstance(row["cpu"], int)]
    of_network = [
        row["cpu"]
        for row in node.rows("interrupts")
        if row["device"] is not None and isinstance(row["cpu"], int)
    ]
    try:
        probed = probe(settings.host_root, cpus, of_network, zombie_cgroups.held(node))
    except (NecroscopeError, OSError) as error:
        return (Finding("probe", Level.UNKNOWN, f"cgroup statistics could not be timed: {error}"),)
    return (_report_slowest(probed),) if probed.reads or probed.left_out else ()


def _report_slowest(probed: ProbeResult) -> Finding:
    left_out = (f"the root was not read: {probed.left_out}",) if probed.left_out else ()
    if not probed.reads:
        return Finding("probe", Level.UNKNOWN, "no read of cgroup statistics was timed", left_out)
    slowest = max(probed.reads, key=lambda read: read.duration_ns or NS_PER_S * 3600)
    took = "over 2 s" if slowest.duration_ns is None else format_duration(slowest.duration_ns)
    is_slow = slowest.duration_ns is None or slowest.duration_ns > QUICK_NS
    title = f"the slowest read of cgroup statistics took {took}: {slowest.path}"
    hint = (
        "every reader of it (kubelet, cAdvisor, agents) holds a core for that long: find which"
        " unit or container leaks cgroups"
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
