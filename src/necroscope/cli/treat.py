"""`necroscope treat`: plans the fix of a verdict, applies it with `--yes`, and takes it back."""

import json
import sys
from collections.abc import Callable
from pathlib import Path
from typing import Any, Final

import click

from necroscope.analysis.report import Incident
from necroscope.cli.opened_recording import opened_recording
from necroscope.cli.recording_place import recording_argument
from necroscope.errors import PermissionMissing, UsageError
from necroscope.model.names import LINE_LIMIT, clean
from necroscope.model.units import NS_PER_MS, NS_PER_S, format_moment, parse_duration_ns
from necroscope.treat import treatment
from necroscope.treat.act_ledger import ledgers, state_directory
from necroscope.treat.bites import Bites
from necroscope.treat.dead_pages import find_pins
from necroscope.treat.kernel_pages import KernelPages
from necroscope.treat.kernel_settings import move_interrupt, set_quota
from necroscope.treat.of_verdict import treatment_of
from necroscope.treat.purge import PurgeStep
from necroscope.treat.treatment import Treatment
from necroscope.treat.undo_kinds import UNDO_KINDS
from necroscope.treat.units import stop_unit
from necroscope.verdicts.reading import read_report

_LONGEST_HOLD_NS: Final = 1_000 * NS_PER_MS
_SAVED: Final = "saved-pages"
_yes = click.option("--yes", is_flag=True, help="do it; without this it is only shown")
_json = click.option("--json", "as_json", is_flag=True, help="the plan, and what came of it")
_host_root = click.option(
    "--host-root",
    "root",
    type=click.Path(path_type=Path),
    default=Path("/"),
    help="where the node's /proc and /sys are mounted, in a container [/]",
)


def _treats(command: Callable[..., None]) -> Callable[..., None]:
    """What every command that changes the node takes."""
    return _yes(_json(_host_root(command)))


_below = click.option(
    "--below", default="/", metavar="CGROUP", help="purge only dead cgroups below this one [/]"
)
_look_in = click.option(
    "--look-in",
    "folders",
    multiple=True,
    type=click.Path(path_type=Path),
    metavar="DIR",
    help="look for the files that pin them only here; may be repeated [all local file systems]",
)
_look_for = click.option(
    "--look-for", default="2m", metavar="DURATION", help="how long to look for them [2m]"
)
_hold = click.option(
    "--hold", default="50ms", metavar="DURATION", help="longest that a core may be held [50ms]"
)


@click.group("treat")
def command() -> None:
    """Apply the fix of a verdict. It is shown first, done with --yes, and undone by `treat undo`.

    One treatment runs at a time. One that fails or is killed half-way is taken back as a whole.

    \b
    Examples:
      necroscope treat verdict                 what would be done about the newest verdict
      necroscope treat purge --below /docker   what pins the dead memory cgroups there
      necroscope treat purge --below /docker --yes
      necroscope treat unit ecs.service --mask --yes
      necroscope treat undo
    """


@command.command("verdict")
@recording_argument("source")
@click.option("--incident", "identity", metavar="ID", help="of `diagnose --json` [the newest]")
@_below
@_look_in
@_look_for
@_hold
@_treats
def treat_verdict(
    source: Path, identity: str | None, yes: bool, as_json: bool, root: Path, **looking: Any
) -> None:
    """The treatment of an incident's verdict."""
    with opened_recording(source, None, None) as (store, _notes):
        incidents = read_report(store).incidents
    chosen = [each for each in incidents if identity in (None, each.id)]
    if not chosen:
        found = f"incident {clean(identity)}" if identity else "an incident"
        raise UsageError(f"{found} is not in {source}", "see: necroscope diagnose")
    incident: Incident = max(chosen, key=lambda each: each.from_ns)
    plan = treatment_of(incident, root, lambda: _purge(root, **looking))
    _run(plan, root, yes=yes, as_json=as_json)


@command.command("purge")
@_below
@_look_in
@_look_for
@_hold
@_treats
def treat_purge(yes: bool, as_json: bool, root: Path, **looking: Any) -> None:
    """Free dead memory cgroups without a reboot, by what pins them.

    Only pages of dead cgroups are touched: page cache is dropped, files of tmpfs are copied within
    it, shared memory is emptied and filled again. No content is lost, and no other cache.
    """
    title = f"purge of dead cgroups below {looking['below']}"
    _run(Treatment(title, (_purge(root, **looking),)), root, yes=yes, as_json=as_json)


@command.command("unit")
@click.argument("name")
@click.option("--mask", "is_masked", is_flag=True, help="also let nothing start it again")
@_treats
def treat_unit(name: str, is_masked: bool, yes: bool, as_json: bool, root: Path) -> None:
    """Stop a unit, or mask it."""
    step = stop_unit(root, name, is_masked=is_masked)
    _run(Treatment(f"stop {name}", (step,)), root, yes=yes, as_json=as_json)


@command.command("interrupt")
@click.argument("irq", type=click.IntRange(min=0))
@click.option("--cores", required=True, metavar="LIST", help="for example 2 or 0-3,7")
@_treats
def treat_interrupt(irq: int, cores: str, yes: bool, as_json: bool, root: Path) -> None:
    """Move an interrupt to other cores."""
    step = move_interrupt(root, irq, cores)
    _run(Treatment(step.why, (step,)), root, yes=yes, as_json=as_json)


@command.command("quota")
@click.argument("cgroup")
@click.option("--cores", required=True, type=float, help="most cores it may use, for example 2.5")
@_treats
def treat_quota(cgroup: str, cores: float, yes: bool, as_json: bool, root: Path) -> None:
    """Set the CPU quota of a cgroup."""
    step = set_quota(root, cgroup, cores)
    _run(Treatment(step.why, (step,)), root, yes=yes, as_json=as_json)


@command.command("list")
@click.option("--json", "as_json", is_flag=True, help="with every act, as JSON")
def list_treatments(as_json: bool) -> None:
    """All treatments of this node, the newest first."""
    records = [ledger.record() for ledger in ledgers(state_directory())]
    if as_json:
        click.echo(json.dumps([record.as_json() for record in records]))
        return
    for record in records:
        outcome = record.outcome or "under way, or killed"
        click.echo(f"{record.id}  {format_moment(record.time_ns)}  {outcome}  {record.title}")


@command.command("undo")
@click.argument("identity", required=False)
@click.option("--json", "as_json", is_flag=True, help="what was undone, as JSON")
@_host_root
def undo_treatment(identity: str | None, as_json: bool, root: Path) -> None:
    """Take a treatment back [the newest that is applied]."""
    said: list[str] = []
    undone = treatment.undo(identity, root, state_directory(), UNDO_KINDS, _say(said, as_json))
    if as_json:
        click.echo(json.dumps({"id": undone, "outcome": "taken back", "said": said}))
    else:
        click.echo(f"{undone} is taken back")


def _purge(
    root: Path, folders: tuple[Path, ...], below: str, look_for: str, hold: str
) -> PurgeStep:
    hold_ns, look_ns = parse_duration_ns(hold), parse_duration_ns(look_for)
    if not NS_PER_MS <= hold_ns <= _LONGEST_HOLD_NS:
        raise UsageError(f"--hold {hold} is out of range", "1ms to 1s")
    pages = KernelPages(root)
    try:
        pins = find_pins(root, pages, folders, _show_progress, below, look_ns / NS_PER_S)
    finally:
        pages.close()
    return PurgeStep(pins, root, state_directory() / _SAVED, Bites(hold_ns))


def _show_progress(files: int, pages: int) -> None:
    if sys.stderr.isatty():
        click.echo(f"\r{files:,} files looked at, {pages:,} pages found", err=True, nl=False)


def _run(plan: Treatment, root: Path, *, yes: bool, as_json: bool) -> None:
    said: list[str] = []
    if not as_json:
        for step in plan.steps:
            for line in step.describe():
                click.echo(clean(line, LINE_LIMIT))
    identity = None
    if yes:
        try:
            identity = treatment.apply(
                plan, root, state_directory(), UNDO_KINDS, _say(said, as_json)
            )
        except PermissionError as error:
            raise PermissionMissing(str(error), "run as root") from None
    if as_json:
        answer: dict[str, Any] = plan.as_json() | {"id": identity, "applied": yes, "said": said}
        click.echo(json.dumps(answer))
    elif identity is not None:
        click.echo(f"applied; take it back with: necroscope treat undo {identity}")
    else:
        click.echo("nothing was done; to do it, add --yes")


def _say(said: list[str], as_json: bool) -> Callable[[str], None]:
    def say(text: str) -> None:
        said.append(clean(text, LINE_LIMIT))
        if not as_json:
            click.echo(said[-1])

    return say
