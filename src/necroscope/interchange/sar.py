"""What `sar` and `sadf` tell of a day: text of `sar -A`, JSON of `sadf -j`, and by `sadf`, where
that is installed, the binary file itself (sysstat, pr_stats.c, json_stats.c).

Of a day's report the cores, paging, memory, TCP and softnet are taken: rates per second become
counts since the row before. The text is one section after the other, each over the whole day: a
section is known by the names of its columns, and has a clock of its own.
"""

import json
import re
import shutil
import subprocess
from collections.abc import Iterator, Mapping
from datetime import date
from pathlib import Path
from typing import Any, Final

from necroscope.errors import CorruptData, UsageError
from necroscope.interchange.mpstat import MOST_ROWS, core_row
from necroscope.interchange.read_tables import ReadTables
from necroscope.interchange.sysstat_text import BANNER, STAMP, DayClock, hours_of, parse_date
from necroscope.interchange.text_pieces import read_pieces
from necroscope.model.names import clean
from necroscope.model.reading import Row
from necroscope.model.tables import TABLES
from necroscope.model.units import NS_PER_S

# The first two bytes of every sysstat file (sa.h, SYSSTAT_MAGIC), in either byte order.
MAGICS: Final = (b"\x96\xd5", b"\xd5\x96")
JSON_MOST_BYTES: Final = 256 << 20
_SADF_S: Final = 60
_MOST_CORES: Final = 1 << 15
_LATEST_NS: Final = (1 << 63) - 1
_LONGEST_S: Final = 86_400
# sar -A has some forty.
_MOST_SECTIONS: Final = 200
# Columns of `memory`, `network` and `softnet` by what sar, and sadf, call them. Amounts are in kB.
_EVENTS: Final = {
    "fault": "pgfault",
    "majflt": "pgmajfault",
    "pgscank": "pgscan_kswapd",
    "pgscand": "pgscan_direct",
    "pswpin": "pswpin",
    "pswpout": "pswpout",
}
_AMOUNTS: Final = {
    "kbmemfree": "free_bytes",
    "memfree": "free_bytes",
    "kbavail": "available_bytes",
    "avail": "available_bytes",
    "kbcached": "cached_bytes",
    "cached": "cached_bytes",
    "kbdirty": "dirty_bytes",
    "dirty": "dirty_bytes",
    "kbanonpg": "anon_bytes",
    "anonpg": "anon_bytes",
    "kbslab": "slab_bytes",
    "slab": "slab_bytes",
    "kbkstack": "kernel_stack_bytes",
    "kstack": "kernel_stack_bytes",
    "kbpgtbl": "page_tables_bytes",
    "pgtbl": "page_tables_bytes",
    "kbswpused": "swap_used_bytes",
    "swpused": "swap_used_bytes",
}
_TRAFFIC: Final = {
    "iseg": "tcp_in_segments",
    "oseg": "tcp_out_segments",
    "active": "tcp_active_opens",
    "passive": "tcp_passive_opens",
    "retrans": "tcp_retransmits",
    "orsts": "tcp_out_resets",
    "atmptf": "tcp_attempt_fails",
    "estres": "tcp_established_resets",
}
_SOFTNET: Final = {
    "total": "processed",
    "dropd": "dropped",
    "squeezd": "time_squeeze",
    "rx_rps": "received_rps",
    "flw_lim": "flow_limit",
}
_SHARE_NAMES: Final = re.compile(r"idle$")


class SarRows:
    """Figures of moments, as they come, section by section: rows of a moment are put together."""

    def __init__(self, utc_offset_s: int, from_ns: int, to_ns: int) -> None:
        self.utc_offset_s = utc_offset_s
        self._window = from_ns, to_ns
        self._cores: dict[tuple[int, int], Row] = {}
        self._softnet: dict[tuple[int, int], Row] = {}
        self._of_node: dict[str, dict[int, dict[str, int]]] = {"memory": {}, "network": {}}
        self._elapsed_ns: dict[int, int] = {}
        self.left_out = 0

    def add(self, at_s: int, elapsed_s: int, cpu: int | None, figures: Mapping[str, float]) -> None:
        """`cpu` is None for figures of the node, and -1 for the mean of all cores."""
        time_ns = (at_s - self.utc_offset_s) * NS_PER_S
        if not self._window[0] <= time_ns < self._window[1] or not 0 < elapsed_s <= _LONGEST_S:
            return
        if len(self._cores) + len(self._softnet) + len(self._elapsed_ns) >= MOST_ROWS:
            self.left_out += 1
            return
        if cpu is not None:
            self._add_core(time_ns, elapsed_s, cpu, figures)
            return
        if "call" in figures:
            # NFS counts calls that were sent again under the name that TCP has for segments.
            return
        for names, table, unit in (
            (_EVENTS, "memory", float(elapsed_s)),
            (_AMOUNTS, "memory", 1024.0),
            (_TRAFFIC, "network", float(elapsed_s)),
        ):
            found = {
                column: round(figures[name] * unit)
                for name, column in names.items()
                if name in figures
            }
            if found:
                self._of_node[table].setdefault(time_ns, {}).update(found)
                self._elapsed_ns[time_ns] = elapsed_s * NS_PER_S

    def _add_core(
        self, time_ns: int, elapsed_s: int, cpu: int, figures: Mapping[str, float]
    ) -> None:
        if not 0 <= cpu < _MOST_CORES:
            return
        if any(_SHARE_NAMES.search(name) for name in figures):
            if any(figures.values()):
                shares = {name.lstrip("%"): value for name, value in figures.items()}
                row = core_row(time_ns, cpu, elapsed_s * NS_PER_S, shares)
                self._cores.setdefault((time_ns, cpu), row)
        elif "squeezd" in figures:
            counts = {
                column: round(figures.get(name, 0.0) * elapsed_s)
                for name, column in _SOFTNET.items()
            }
            named = {"time": time_ns, "cpu": cpu, "elapsed_ns": elapsed_s * NS_PER_S, **counts}
            self._softnet[time_ns, cpu] = _row("softnet", named)

    def rows(self) -> dict[str, list[Row]]:
        found = {
            "cores": [self._cores[key] for key in sorted(self._cores)],
            "softnet": [self._softnet[key] for key in sorted(self._softnet)],
        }
        for table, moments in self._of_node.items():
            found[table] = [
                _row(table, {"time": time_ns, "elapsed_ns": self._elapsed_ns[time_ns], **figures})
                for time_ns, figures in sorted(moments.items())
            ]
        return {table: rows for table, rows in found.items() if rows}


def _row(table: str, named: Mapping[str, int]) -> Row:
    return tuple(named.get(column.name) for column in TABLES[table].columns)


def read_sar(
    path: Path, utc_offset_s: int = 0, from_ns: int = 0, to_ns: int = _LATEST_NS
) -> ReadTables:
    """Rows between the two times, up to a bound; averages are left out. `utc_offset_s` is what the
    machine's clock is ahead of UTC, where the report does not say that its times are UTC.
    """
    with path.open("rb") as file:
        head = file.read(2)
    use, rows = ReadTables(), SarRows(utc_offset_s, from_ns, to_ns)
    if head in MAGICS:
        _take_json(_by_sadf(path), path, use, rows)
    elif head[:1] == b"{":
        content = b"".join(piece.content for piece in _bounded(path))
        _take_json(content, path, use, rows)
    else:
        _take_text(path, use, rows)
        if utc_offset_s == 0:
            use.notes.append("sar writes no time zone: its times are taken for UTC")
    use.rows = rows.rows()
    if not use.rows and not rows.left_out and (from_ns, to_ns) == (0, _LATEST_NS):
        raise UsageError(
            f"{path} holds no figures of cores, paging, memory or TCP",
            "give what `sar -A` prints, or `sadf -j FILE -- -A`",
        )
    if use.rows and "cores" not in use.rows:
        use.notes.append("no figures of single cores: `sar -P ALL` has them")
    if rows.left_out:
        use.notes.append(f"{rows.left_out} figures beyond {MOST_ROWS} rows were left out")
    return use


def _bounded(path: Path) -> Iterator[Any]:
    size = 0
    for piece in read_pieces(path):
        size += len(piece.content)
        if size > JSON_MOST_BYTES:
            raise UsageError(
                f"{path} has more than {JSON_MOST_BYTES} bytes of JSON",
                "give a part of the day: sadf -s 10:00:00 -e 11:00:00",
            )
        yield piece


def _by_sadf(path: Path) -> bytes:
    program = shutil.which("sadf")
    if program is None:
        raise UsageError(
            f"{path} is a binary file of sar, and sadf is not installed here",
            "install sysstat, or where it is installed: sadf -j FILE -- -A > FILE.json",
        )
    # A file of an older version is read after `sadf -c`; the words of sadf say so.
    command = [program, "-j", str(path.absolute()), "--", "-A"]
    try:
        done = subprocess.run(command, capture_output=True, timeout=_SADF_S, check=False)
    except (OSError, subprocess.TimeoutExpired) as error:
        raise UsageError(f"sadf could not read {path}: {error}", "run it by hand") from None
    if done.returncode or not done.stdout:
        said = clean(done.stderr.strip() or b"nothing", 300)
        raise UsageError(
            f"sadf could not read {path}: it said {said}", "convert it first: sadf -c FILE > NEW"
        )
    return done.stdout[:JSON_MOST_BYTES]


class _Section:
    """Lines of the same columns: times go on from their own last one."""

    def __init__(self, columns: tuple[str, ...], day: date, stamp: re.Match[bytes]) -> None:
        self.columns = columns
        self._clock = DayClock(day)
        # The line of names has the time at which the first interval began.
        self._before_s = self._at_s = self._clock.at_s(*hours_of(stamp))

    def take(self, stamp: re.Match[bytes], fields: list[bytes], rows: SarRows) -> None:
        at_s = self._clock.at_s(*hours_of(stamp))
        if at_s != self._at_s:
            self._before_s, self._at_s = self._at_s, at_s
        figures = {name: _number(text) for name, text in zip(self.columns, fields, strict=True)}
        known = {name: value for name, value in figures.items() if value is not None}
        is_core = self.columns[0] == "CPU"
        cpu = (int(fields[0][:5]) if fields[0].isdigit() else -1) if is_core else None
        rows.add(at_s, at_s - self._before_s, cpu, known)


def _take_text(path: Path, use: ReadTables, rows: SarRows) -> None:
    day: date | None = None
    section: _Section | None = None
    sections: dict[tuple[str, ...], _Section] = {}
    for line in (line for piece in read_pieces(path) for line in piece.content.split(b"\n")):
        banner = BANNER.match(line)
        if banner is not None:
            day = parse_date(banner["date"].decode("ascii", "replace"))
            use.host, use.kernel_release = clean(banner["host"]), clean(banner["release"])
            use.cpus, section = int(banner["cpus"]), None
            sections.clear()
            continue
        stamp = STAMP.match(line)
        if stamp is None or day is None:
            continue
        fields = stamp[5].split()
        if is_heading(fields):
            columns = tuple(_column(name) for name in fields)
            if columns not in sections and len(sections) < _MOST_SECTIONS:
                sections[columns] = _Section(columns, day, stamp)
            section = sections.get(columns)
        elif section is not None and len(fields) == len(section.columns):
            section.take(stamp, fields, rows)


def is_heading(fields: list[bytes]) -> bool:
    """A line of names: no field is a number, and one has a unit."""
    return any(name.startswith(b"%") or name.endswith(b"/s") for name in fields) or (
        bool(fields) and fields[0].startswith(b"kb")
    )


def _column(name: bytes) -> str:
    return name.decode("ascii", "replace").lstrip("%").removesuffix("/s")


def _number(text: bytes) -> float | None:
    try:
        value = float(text.replace(b",", b"."))
    except ValueError:
        return None
    return value if 0.0 <= value < 1e15 else None


def _take_json(content: bytes, path: Path, use: ReadTables, rows: SarRows) -> None:
    try:
        for host in json.loads(content)["sysstat"]["hosts"]:
            use.host, use.kernel_release = (
                clean(str(host.get("nodename"))),
                clean(str(host.get("release"))),
            )
            use.cpus = int(host.get("number-of-cpus", 0)) or None
            for report in host["statistics"]:
                _take_report(report, rows)
    except (ValueError, KeyError, TypeError, AttributeError, RecursionError) as error:
        raise CorruptData(
            f"{path} is not JSON of sadf: {clean(str(error))}",
            "a sadf that was killed leaves its JSON open",
        ) from None


def _take_report(report: Mapping[str, Any], rows: SarRows) -> None:
    stamp = report.get("timestamp")
    found = re.match(rb"(\d{1,2}):(\d\d):(\d\d)()", str((stamp or {}).get("time")).encode())
    day = parse_date(str((stamp or {}).get("date")))
    if found is None or day is None or stamp is None:
        return
    at_s, elapsed_s = DayClock(day).at_s(*hours_of(found)), int(stamp.get("interval", 0))
    at_s += rows.utc_offset_s if stamp.get("utc") else 0
    for name in ("cpu-load-all", "cpu-load"):
        for load in report.get(name, ()):
            rows.add(at_s, elapsed_s, _core(load), _figures(load))
    network = report.get("network") or {}
    parts = [report.get("paging"), report.get("swap-pages"), report.get("memory")]
    parts += [network.get("net-tcp"), network.get("net-etcp")]
    for part in parts:
        if isinstance(part, dict):
            rows.add(at_s, elapsed_s, None, _figures(part))
    for line in network.get("softnet") or ():
        rows.add(at_s, elapsed_s, _core(line), _figures(line))


def _core(load: Mapping[str, Any]) -> int:
    name = str(load["cpu"])
    return int(name[:5]) if name.isdigit() else -1


def _figures(load: Mapping[str, Any]) -> dict[str, float]:
    return {
        str(name): float(value)
        for name, value in load.items()
        if name != "cpu" and isinstance(value, int | float) and 0.0 <= value < 1e15
    }
