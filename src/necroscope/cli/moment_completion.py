"""Times that a shell offers for --at, --from and --to: when the recording begins and ends, and when
each of its incidents began.
"""

from pathlib import Path
from typing import Final

import click
from click.shell_completion import CompletionItem

from necroscope.cli.recording_place import find_recording
from necroscope.errors import NecroscopeError
from necroscope.model.units import format_moment

_MOST_INCIDENTS: Final = 50


def complete_moment(
    context: click.Context, _parameter: click.Parameter, incomplete: str
) -> list[CompletionItem]:
    """Nothing where nothing can be read: a shell that completes shows no errors."""
    try:
        offered = _moments(context.params.get("source") or find_recording(says_which=False))
    except (NecroscopeError, OSError):
        return []
    return [item for item in offered if item.value.startswith(incomplete)]


def _moments(directory: Path) -> list[CompletionItem]:
    # Not above: these load numpy and Arrow, and every command loads this file.
    from necroscope.store.query import Store  # noqa: PLC0415
    from necroscope.verdicts.ledger import Ledger  # noqa: PLC0415

    first_ns, last_ns = Store.open(directory).span()
    entries = sorted(
        Ledger.open(directory).incidents(), key=lambda entry: entry.incident.from_ns, reverse=True
    )
    return [
        *(
            CompletionItem(format_moment(entry.incident.from_ns), help=entry.incident.verdict.cause)
            for entry in entries[:_MOST_INCIDENTS]
        ),
        CompletionItem(format_moment(first_ns), help="the recording begins"),
        CompletionItem(format_moment(last_ns), help="the recording ends"),
    ]
