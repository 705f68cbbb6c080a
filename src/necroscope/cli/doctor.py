"""`necroscope doctor`: what this machine lets a recorder see, and the command that changes the
rest.
"""

import json
import os
import shutil
import sys
from collections.abc import Iterator, Sequence
from dataclasses import asdict, dataclass
from importlib.util import find_spec
from pathlib import Path
from typing import Final

import click

from necroscope.analysis.checkup.finding import NodeSnapshot
from necroscope.cli.extras import EXTRAS
from necroscope.cli.node_look import look
from necroscope.cli.recorder_options import chosen_settings, settings_options
from necroscope.cli.recording_place import default_directory, running_recordings
from necroscope.model.units import NS_PER_MS, format_bytes
from necroscope.settings import Settings
from necroscope.views.format import literal

_LOOK_NS: Final = 1_050 * NS_PER_MS
_LINE: Final = 400
_SIGNS: Final = {True: ("yes", "green"), False: ("NO", "red")}
# In the order in which an investigation asks for them: the tables behind each.
_ABILITIES: Final = (
    ("how each core spent each second", ("cores", "softirqs", "softnet")),
    ("stacks: who was on a core, in which function", ("samples", "stacks", "frames")),
    ("how long softirqs waited for their handler", ("softirq_delay", "runqueue")),
    ("which task waited, and who was in the way", ("waits", "run_delay")),
    ("resets, lockups and OOM kills in the kernel log", ("log",)),
    ("interrupts, NIC queues and their counters", ("interrupts", "nics")),
    ("memory and pressure", ("memory", "pressure")),
    ("cgroups alive and dead", ("cgroups",)),
    ("which unit or container leaks cgroups", ("cgroup_ledger",)),
    ("systemd units that fail or restart", ("units",)),
    ("containers that die or restart", ("containers",)),
    ("facts in which nodes differ", ("facts",)),
)


@dataclass(frozen=True, slots=True)
class Ability:
    """`causes` say why a part is missing, with the way out where there is one."""

    what: str
    is_seen: bool
    causes: tuple[str, ...]


@dataclass(frozen=True, slots=True)
class Diagnosis:
    abilities: tuple[Ability, ...]
    recorders: tuple[str, ...]
    directory: str
    free_bytes: int | None
    is_space_short: bool
    missing_extras: tuple[str, ...]
    advice: tuple[str, ...]

    @property
    def is_whole(self) -> bool:
        return all(one.is_seen for one in self.abilities) and not self.is_space_short


@click.command()
@click.option("--json", "as_json", is_flag=True, help="as JSON")
@settings_options
def command(as_json: bool, settings_file: Path | None, **options: str | None) -> None:
    """What can be recorded on this machine, what cannot, and the one command that changes it.

    Looks for a second and writes nothing. Exit 0 if everything can be recorded, 1 if not.

    \b
    Examples:
      necroscope doctor
      necroscope doctor --json | jq '.abilities[] | select(.is_seen | not)'
    """
    settings = chosen_settings(settings_file, options)
    found = examine(look(settings, _LOOK_NS), settings)
    click.echo(json.dumps(asdict(found)) if as_json else "\n".join(_lines(found)))
    sys.exit(0 if found.is_whole else 1)


def examine(node: NodeSnapshot, settings: Settings) -> Diagnosis:
    abilities = tuple(Ability(what, *_find_losses(node, tables)) for what, tables in _ABILITIES)
    running = tuple(str(path) for path in running_recordings())
    directory = Path(running[0]) if running else default_directory()
    free_bytes, is_short = _space(directory, settings)
    return Diagnosis(
        abilities,
        running,
        str(directory),
        free_bytes,
        is_short,
        tuple(_missing_extras()),
        tuple(_advice(abilities, running, is_short)),
    )


def _find_losses(node: NodeSnapshot, tables: Sequence[str]) -> tuple[bool, tuple[str, ...]]:
    """A gap without a core's number is of the whole table; a table without rows and without a gap
    had nothing to say in this second.
    """
    causes = dict.fromkeys(
        str(row["cause"])
        for row in node.rows("gaps")
        if row["table"] in tables and row["cpu"] is None and not row["lost"]
    )
    return not causes, tuple(causes)


def _space(directory: Path, settings: Settings) -> tuple[int | None, bool]:
    """Free bytes where it would record, and whether the floor is met already."""
    place = next((path for path in (directory, *directory.parents) if path.exists()), Path("/"))
    try:
        usage = shutil.disk_usage(place)
    except OSError:
        return None, False
    return usage.free, usage.free < settings.free_floor_ratio * usage.total


def _missing_extras() -> Iterator[str]:
    for extra in sorted({extra for extras in EXTRAS.values() for extra in extras}):
        modules = [module for module, extras in EXTRAS.items() if extra in extras]
        if any(find_spec(module) is None for module in modules):
            yield extra


def _advice(abilities: Sequence[Ability], running: Sequence[str], is_short: bool) -> Iterator[str]:
    if is_short:
        yield "free space, or record elsewhere with --dir: below the floor a recorder pauses"
    if running:
        yield f"a recorder runs: necroscope diagnose {running[0]}"
    elif all(one.is_seen for one in abilities):
        yield "start it: necroscope record"
    elif os.geteuid() != 0:
        yield "see it all: sudo necroscope record (least privileges: docs/privileges.md)"
    else:
        yield "start it all the same: necroscope record; what is missing becomes a gap"


def _lines(found: Diagnosis) -> Iterator[str]:
    for ability in found.abilities:
        sign, colour = _SIGNS[ability.is_seen]
        yield f"{click.style(f'{sign:>3}', fg=colour, bold=True)}  {ability.what}"
        for cause in ability.causes:
            yield f"       {literal(cause, _LINE)}"
    yield ""
    free = "" if found.free_bytes is None else f", {format_bytes(found.free_bytes)} free"
    yield f"directory  {found.directory}{free}"
    if found.missing_extras:
        extras = ",".join(found.missing_extras)
        yield f"optional   pip install 'necroscope[{extras}]'"
    for advice in found.advice:
        yield f"next       {advice}"
