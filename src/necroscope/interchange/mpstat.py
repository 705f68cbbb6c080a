"""`mpstat -P ALL`, as text or JSON (sysstat, mpstat.c): rows for the `cores` table.

The text has the clock of the machine and the language of whoever ran it: 12 or 24 hours, decimal
point or comma, any order of the date. It has no time zone: the caller gives one, or it is taken for
UTC and a note says so.
"""

import json
import re
from collections.abc import Iterator, Mapping
from itertools import chain, islice
from pathlib import Path
from typing import Any, Final, NamedTuple

from necroscope.errors import CorruptData, UsageError
from necroscope.interchange.read_tables import ReadTables
from necroscope.interchange.sysstat_text import (
    BANNER,
    STAMP,
    DayClock,
    hours_of,
    parse_date,
    percent,
)
from necroscope.interchange.text_pieces import read_pieces
from necroscope.model.names import clean
from necroscope.model.reading import Row
from necroscope.model.units import NS_PER_S

_JSON_MOST_BYTES: Final = 256 << 20
_MOST_CORES: Final = 1 << 15
# All rows are held at once, in some 400 bytes each: a second of 96 cores is 96 of them, and this is
# three hours.
MOST_ROWS: Final = 1_000_000
_LATEST_NS: Final = (1 << 63) - 1
# Columns of `cores` after the elapsed time, and what mpstat calls them now and called them.
_MODES: Final = (
    ("usr", "user"),
    ("nice",),
    ("sys", "system"),
    ("idle",),
    ("iowait",),
    ("irq",),
    ("soft",),
    ("steal",),
    ("guest",),
)


class _Report(NamedTuple):
    """One interval: the moment it ended, in seconds, and percent by mode of each core."""

    since_s: int | None
    at_s: int
    cores: dict[int, Mapping[str, float]]


def read_mpstat(
    path: Path, utc_offset_s: int = 0, from_ns: int = 0, to_ns: int = _LATEST_NS
) -> ReadTables:
    """Rows of every core of every report between the two times, up to a bound; averages are left
    out.

    `utc_offset_s` is what the machine's clock is ahead of UTC.
    """
    head = next((piece.content for piece in _pieces(path)), b"")
    use = ReadTables()
    reports = _json_reports(path, use) if head.lstrip()[:1] == b"{" else _text_reports(path, use)
    rows = _rows(reports, utc_offset_s)
    first = next(rows, None)
    if first is None:
        raise UsageError(
            f"{path} holds no report of single cores", "run `mpstat -P ALL 1`, not `mpstat 1`"
        )
    wanted = (
        row
        for row in chain((first,), rows)
        if isinstance(row[0], int) and from_ns <= row[0] < to_ns
    )
    use.rows["cores"] = list(islice(wanted, MOST_ROWS))
    left_out = sum(1 for _ in wanted)
    if left_out:
        use.notes.append(
            f"{left_out} rows after the first {MOST_ROWS} were left out: --from and --to choose"
            " others"
        )
    if utc_offset_s == 0:
        use.notes.append("mpstat writes no time zone: its times are taken for UTC")
    return use


def _pieces(path: Path) -> Iterator[Any]:
    try:
        yield from read_pieces(path)
    except CorruptData as error:
        raise UsageError(error.facts, "give the text or JSON that mpstat wrote") from None


def _text_reports(path: Path, use: ReadTables) -> Iterator[_Report]:
    clock = DayClock(None)
    columns: list[str] = []
    report = _Report(None, 0, {})
    for line in (line for piece in _pieces(path) for line in piece.content.split(b"\n")):
        banner = BANNER.match(line)
        if banner is not None:
            clock = DayClock(parse_date(banner["date"].decode("ascii", "replace")))
            use.host, use.kernel_release, use.cpus = (
                clean(banner["host"]),
                clean(banner["release"]),
                int(banner["cpus"]),
            )
            continue
        stamp = STAMP.match(line)
        if stamp is None or clock.day is None:
            continue
        fields = stamp[5].split()
        moment_s = clock.at_s(*hours_of(stamp))
        is_heading = fields[:1] == [b"CPU"]
        if is_heading:
            columns = (
                [name.decode("ascii", "replace").lstrip("%") for name in fields[1:]]
                if b"%idle" in fields
                else []
            )
        if is_heading or moment_s != report.at_s:
            if report.cores:
                yield report
            # The line of names has the time at which the interval began.
            report = _Report(report.at_s or None, moment_s, {})
        if (
            columns
            and fields
            and fields[0].isdigit()
            and len(fields) == len(columns) + 1
            and len(report.cores) < _MOST_CORES
        ):
            report.cores[int(fields[0][:5])] = dict(
                zip(columns, map(percent, fields[1:]), strict=True)
            )
    if report.cores:
        yield report


def _json_reports(path: Path, use: ReadTables) -> Iterator[_Report]:
    content = bytearray()
    for piece in _pieces(path):
        content += piece.content
        if len(content) > _JSON_MOST_BYTES:
            raise UsageError(
                f"{path} has more than {_JSON_MOST_BYTES} bytes of JSON",
                "import the text of mpstat, which is read in pieces",
            )
    try:
        found = json.loads(content)
        for host in found["sysstat"]["hosts"]:
            use.host, use.kernel_release = (
                clean(str(host.get("nodename"))),
                clean(str(host.get("release"))),
            )
            use.cpus = int(host.get("number-of-cpus", 0)) or None
            yield from _host_reports(host)
    except (ValueError, KeyError, TypeError, AttributeError, RecursionError) as error:
        raise CorruptData(
            f"{path} is not JSON of mpstat: {clean(str(error))}",
            "a mpstat that was killed leaves its JSON open",
        ) from None


def _host_reports(host: dict[str, Any]) -> Iterator[_Report]:
    clock = DayClock(parse_date(str(host["date"])))
    for report in host["statistics"]:
        found = re.match(
            rb"(\d{1,2}):(\d\d):(\d\d)(?:\s*([AaPp])[Mm])?", str(report["timestamp"]).encode()
        )
        if found is None or clock.day is None:
            continue
        loads = [load for load in report.get("cpu-load", []) if str(load["cpu"]).isdigit()]
        cores: dict[int, Mapping[str, float]] = {
            int(str(load["cpu"])[:5]): {
                name: percent(str(value).encode()) for name, value in load.items() if name != "cpu"
            }
            for load in loads[:_MOST_CORES]
        }
        if cores:
            yield _Report(None, clock.at_s(*hours_of(found)), cores)


def _rows(reports: Iterator[_Report], utc_offset_s: int) -> Iterator[Row]:
    """Percent of the time a report covers; in JSON the first does not say, and has the length of
    the second.

    A core that is all zero is offline and has no row.
    """
    head = list(islice(reports, 2))
    usual_s = next(filter(None, (_length_s(report, head[0].at_s) for report in head)), 1)
    before_s: int | None = None
    for report in chain(head, reports):
        usual_s = _length_s(report, before_s) or usual_s
        before_s = report.at_s
        for cpu, shares in sorted(report.cores.items()):
            if any(shares.values()) and cpu < _MOST_CORES:
                yield core_row(
                    (report.at_s - utc_offset_s) * NS_PER_S, cpu, usual_s * NS_PER_S, shares
                )


def _length_s(report: _Report, before_s: int | None) -> int | None:
    since_s = report.since_s or before_s
    return report.at_s - since_s if since_s is not None and report.at_s > since_s else None


def core_row(time_ns: int, cpu: int, elapsed_ns: int, shares: Mapping[str, float]) -> Row:
    """As in `cores`, guests are in neither user nor nice; niced ones are guests too."""
    modes = [next((shares[name] for name in names if name in shares), 0.0) for names in _MODES]
    modes[-1] += shares.get("gnice", 0.0)
    return (time_ns, cpu, elapsed_ns, *(round(share * elapsed_ns / 100) for share in modes))
