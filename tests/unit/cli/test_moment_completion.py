"""A shell is offered the times of a recording's incidents, its beginning and its end."""

import shutil
from pathlib import Path

from tests.ledger_entries import ledger_entry

from necroscope.cli import diagnose, flame
from necroscope.cli.moment_completion import complete_moment
from necroscope.model.units import format_moment
from necroscope.verdicts.ledger import LEDGER_FILE, line

LAB = Path(__file__).parents[2] / "data" / "lab" / "irq-core-collision"


def offered(source: Path, incomplete: str = "") -> list[tuple[str, str | None]]:
    context = diagnose.command.make_context("x", [str(source)], resilient_parsing=True)
    at = next(each for each in diagnose.command.params if "--at" in each.opts)
    return [(item.value, item.help) for item in at.shell_complete(context, incomplete)]


def test_the_beginning_and_the_end_are_offered() -> None:
    assert offered(LAB) == [
        ("2026-11-16T08:51:27.168Z", "the recording begins"),
        ("2026-11-16T08:52:05.168Z", "the recording ends"),
    ]
    assert offered(LAB, "2026-11-16T08:52") == [("2026-11-16T08:52:05.168Z", "the recording ends")]


def test_incidents_in_the_ledger_are_offered_with_their_cause(
    tmp_path: Path,
) -> None:
    recording = tmp_path / "recording"
    shutil.copytree(LAB, recording)
    entry = ledger_entry("zombie-memcg-walk", 5, 8)
    ledger = line({"schema": 1}) + line({"entry": entry.as_json()})
    (recording / LEDGER_FILE).write_bytes(ledger)
    moment = format_moment(entry.incident.from_ns)
    assert offered(recording)[0] == (moment, "zombie-memcg-walk")


def test_what_cannot_be_read_offers_nothing(tmp_path: Path) -> None:
    assert offered(tmp_path / "nowhere") == []


def test_every_command_that_takes_a_moment_completes_it() -> None:
    for command in (diagnose.command, flame.command):
        options = [each for each in command.params if {"--at", "--from", "--to"} & set(each.opts)]
        assert len(options) == 3
        assert all(each._custom_shell_complete is complete_moment for each in options)
