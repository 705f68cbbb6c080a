"""`necroscope info`: what a recording holds."""

import json
from pathlib import Path

import click

from necroscope.cli.recording_place import recording_argument
from necroscope.store.query import Store
from necroscope.views.info import clock_lead_ns, info_to_json, info_to_text


@click.command()
@recording_argument("directory", "[DIR]")
@click.option("--json", "as_json", is_flag=True, help="as JSON")
def command(directory: Path, as_json: bool) -> None:
    """Span, cores, tables and rows, bytes, gaps, lost samples and pinned windows of a recording,
    also of a live one.

    \b
    Examples:
      necroscope info /var/lib/necroscope
      necroscope info --json ./trouble | jq .gaps
    """
    store = Store.open(directory)
    info, lead_ns = store.info(), clock_lead_ns(store)
    click.echo(json.dumps(info_to_json(info, lead_ns)) if as_json else info_to_text(info, lead_ns))
