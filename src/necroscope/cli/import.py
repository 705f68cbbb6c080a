"""`necroscope import`: captures of other tools as one recording."""

# ruff: noqa: N999 - a command's file has its name, and is loaded by it

import json
import re
import sys
import time
from collections.abc import Sequence
from dataclasses import replace
from pathlib import Path
from typing import TYPE_CHECKING, Final

import click

from necroscope import __version__
from necroscope.cli.progress_bar import progress_bar
from necroscope.errors import UsageError
from necroscope.interchange.import_options import Options
from necroscope.interchange.importer import ImportReport, import_hosts
from necroscope.interchange.symbol_search import SymbolSearch
from necroscope.model.names import clean
from necroscope.model.reading import Rows
from necroscope.model.units import format_bytes, format_moment, parse_moment_ns

if TYPE_CHECKING:
    from necroscope.interchange.dmesg import LogText

_OFFSET: Final = re.compile(r"([+-])(\d\d):?(\d\d)")
_FILES_SHOWN: Final = 20
_FOLDER: Final = click.Path(path_type=Path)


@click.command()
@click.argument(
    "files", nargs=-1, required=True, type=click.Path(path_type=Path), metavar="FILE..."
)
@click.option(
    "--dir",
    "directory",
    type=_FOLDER,
    required=True,
    help="directory of the recording, new or empty",
)
@click.option(
    "--from",
    "from_text",
    metavar="TIME",
    help="leave out what comes before this moment, for example 2026-04-15T10:30:00Z",
)
@click.option(
    "--to", "to_text", metavar="TIME", help="leave out this moment and what comes after it"
)
@click.option(
    "--kallsyms", type=_FOLDER, help="copy of /proc/kallsyms of the machine the capture is from"
)
@click.option(
    "--binaries",
    multiple=True,
    type=_FOLDER,
    help="directory of that machine's programs and libraries",
)
@click.option("--perf-maps", type=_FOLDER, help="directory of perf-PID.map files")
@click.option(
    "--event", metavar="NAME", help="import this event's samples, of a capture that has several"
)
@click.option(
    "--utc-offset",
    metavar="+HH:MM",
    help="how far clocks that name no zone are ahead of UTC (mpstat, dmesg -T, names)",
)
@click.option(
    "--year", type=click.IntRange(1970, 2261), help="year of kernel log times that have none"
)
@click.option(
    "--label",
    "labels",
    multiple=True,
    metavar="KEY=VALUE",
    help="label of the recording, may be repeated",
)
@click.option("--json", "as_json", is_flag=True, help="print what was imported as JSON")
def command(
    files: tuple[Path, ...],
    directory: Path,
    from_text: str | None,
    to_text: str | None,
    kallsyms: Path | None,
    binaries: tuple[Path, ...],
    perf_maps: Path | None,
    event: str | None,
    utc_offset: str | None,
    year: int | None,
    labels: tuple[str, ...],
    as_json: bool,
) -> None:
    """Make a recording of captures: perf.data, perf script, folded stacks, mpstat, sar, dmesg and
    copies of /proc, directories of them, sosreports and EKS log bundles.

    Files of several hosts become several recordings, each in a directory below --dir.

    \b
    Examples:
      necroscope import perf.data --dir ./trouble
      necroscope import /var/captures dmesg.txt mpstat.txt --dir ./trouble --utc-offset +02:00
      necroscope import sosreport-node7.tar.xz /var/log/sa/sa15 --dir ./trouble
      necroscope import perf.data --dir ./trouble --kallsyms kallsyms.txt --binaries ./node-root
    """
    # The thread that reads calls C for parts of a millisecond: it would wait ten times as long for
    # the one that writes.
    sys.setswitchinterval(0.0003)
    now_ns = time.time_ns()
    options = Options(
        search=SymbolSearch(
            _existing(kallsyms),
            tuple(folder for folder in binaries if _existing(folder)),
            _existing(perf_maps),
        ),
        from_ns=None if from_text is None else parse_moment_ns(from_text, now_ns),
        to_ns=None if to_text is None else parse_moment_ns(to_text, now_ns),
        year=year,
        utc_offset_s=0 if utc_offset is None else _seconds(utc_offset),
        labels=_labels(labels) if labels else {},
        event=event,
        made_by=f"necroscope {__version__} import",
    )
    _refuse_empty(options)
    with progress_bar() as progress:
        reports = import_hosts(files, directory, replace(options, progress=progress), _events_of)
    click.echo(_reports_to_json(reports) if as_json else "\n\n".join(map(_to_text, reports)))


def _labels(labels: tuple[str, ...]) -> dict[str, str]:
    from necroscope.cli.recorder_options import chosen_labels  # noqa: PLC0415 - it knows all settings

    return chosen_labels(None, labels)


def _events_of(lines: Sequence[tuple[int, "LogText"]]) -> Rows:
    from necroscope.cli.opened_recording import events_of  # noqa: PLC0415 - only for a kernel log

    return events_of(lines)


def _refuse_empty(options: Options) -> None:
    if (
        options.from_ns is not None
        and options.to_ns is not None
        and options.from_ns >= options.to_ns
    ):
        raise UsageError("--from is not before --to", "give the earlier moment to --from")


def _reports_to_json(reports: list[ImportReport]) -> str:
    """Of one recording as ever; of several a list of them."""
    found = [_to_json(report) for report in reports]
    return json.dumps(found[0] if len(found) == 1 else {"recordings": found})


def _existing(path: Path | None) -> Path | None:
    if path is not None and not path.exists():
        raise UsageError(
            f"there is no {path}",
            "check the path, or omit the option: fewer functions will have names",
        )
    return path


def _seconds(text: str) -> int:
    found = _OFFSET.fullmatch(text)
    if found is None or int(found[2]) > 14 or int(found[3]) > 59:
        raise UsageError(f"{text!r} is not an offset from UTC", "write it as +02:00 or -07:00")
    return (int(found[2]) * 3600 + int(found[3]) * 60) * (-1 if found[1] == "-" else 1)


def _to_text(report: ImportReport) -> str:
    rows = report.rows
    lines = [
        f"{clean(file.path.name)}: {file.kind}, {file.rows} rows"
        for file in report.files[:_FILES_SHOWN]
    ]
    if len(report.files) > _FILES_SHOWN:
        lines.append(f"and {len(report.files) - _FILES_SHOWN} more files")
    lines += [f"note: {note}" for note in report.all_notes()]
    kept = ", ".join(
        f"{count} {name}" for name, count in rows.items() if name not in ("stacks", "frames")
    )
    lines.append(
        f"{format_moment(report.from_ns)} to {format_moment(report.to_ns)} of {report.node}"
    )
    lines.append(
        f"{kept}; {report.idle_samples} samples of idle cores dropped, {report.lost_samples} lost"
    )
    lines.append(
        f"{report.segments} segments, {format_bytes(report.size_bytes)}: necroscope info"
        f" {report.directory}"
    )
    return "\n".join(clean(line, 1000) for line in lines)


def _to_json(report: ImportReport) -> dict[str, object]:
    return {
        "dir": str(report.directory),
        "node": report.node,
        "from": format_moment(report.from_ns),
        "to": format_moment(report.to_ns),
        "segments": report.segments,
        "bytes": report.size_bytes,
        "rows": report.rows,
        "idle_samples": report.idle_samples,
        "lost_samples": report.lost_samples,
        "files": [
            {"path": str(f.path), "kind": f.kind, "rows": f.rows, "notes": f.notes}
            for f in report.files
        ],
        "unnamed": report.unnamed,
        "notes": report.notes,
    }
