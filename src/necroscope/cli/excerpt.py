"""`necroscope excerpt`: the minutes that matter, as a recording of their own."""

import json
from pathlib import Path

import click

from necroscope.cli.moment_completion import complete_moment
from necroscope.cli.opened_recording import opened_recording
from necroscope.cli.recording_place import recording_argument
from necroscope.errors import UsageError
from necroscope.model.units import format_bytes, format_moment, parse_moment_ns
from necroscope.store.excerpt import write_excerpt


@click.command()
@recording_argument("source", "[DIR]")
@click.option(
    "--from",
    "from_text",
    required=True,
    metavar="T",
    shell_complete=complete_moment,
    help="ISO 8601 in UTC, or -5m before the end of the recording",
)
@click.option(
    "--to", "to_text", metavar="T", shell_complete=complete_moment, help="likewise [the end]"
)
@click.option(
    "--dir",
    "directory",
    type=click.Path(path_type=Path),
    required=True,
    metavar="D",
    help="new directory",
)
@click.option(
    "--rename",
    "renames",
    multiple=True,
    metavar="OLD=NEW",
    help="replace a text in every name; may be repeated",
)
@click.option(
    "--redact",
    "is_redacted",
    is_flag=True,
    help="leave out the log, labels, packages, command lines, paths and the node's name",
)
@click.option("--json", "as_json", is_flag=True, help="what it holds, as JSON")
def command(
    source: Path,
    from_text: str,
    to_text: str | None,
    directory: Path,
    renames: tuple[str, ...],
    is_redacted: bool,
    as_json: bool,
) -> None:
    """Cut a window out of a recording: a recording of its own, to send to a colleague or to keep
    with the incident.

    \b
    Examples:
      necroscope excerpt D --from 2026-04-15T10:28 --to 2026-04-15T10:32 --dir incident-7
      necroscope excerpt D --from -5m --dir public --redact --rename secret-job=job
      tar czf incident-7.tar.gz incident-7
    """
    pairs = dict(_pair(text) for text in renames)
    with opened_recording(source, None, None) as (store, _):
        first_ns, last_ns = store.span()
        from_ns = max(parse_moment_ns(from_text, last_ns), first_ns)
        to_ns = min(parse_moment_ns(to_text, last_ns), last_ns + 1) if to_text else last_ns + 1
        if from_ns >= to_ns:
            span = f"{format_moment(first_ns)} to {format_moment(last_ns)}"
            raise UsageError(
                "the window is empty",
                f"the recording is from {span}; times without a zone are UTC",
            )
        manifest = write_excerpt(store, from_ns, to_ns, directory, pairs, is_redacted=is_redacted)
    rows = {name: entry.rows for name, entry in manifest.tables.items()}
    size_bytes = sum(entry.bytes for entry in manifest.tables.values())
    if as_json:
        answer = {
            "dir": str(directory),
            "from": format_moment(from_ns),
            "to": format_moment(to_ns),
            "bytes": size_bytes,
        }
        click.echo(json.dumps({**answer, "tables": rows}))
    else:
        click.echo(
            f"{sum(rows.values()):,} rows in {format_bytes(size_bytes)}: necroscope info"
            f" {directory}"
        )


def _pair(text: str) -> tuple[str, str]:
    old, sign, new = text.partition("=")
    if not old or not sign:
        raise UsageError(f"{text!r} is not a valid renaming", "write --rename OLD=NEW")
    return old, new
