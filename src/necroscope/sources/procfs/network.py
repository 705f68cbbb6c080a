"""What became of traffic: TCP and UDP of /proc/net/snmp and netstat (net/ipv4/proc.c), connection
tracking of /proc/net/stat/nf_conntrack (net/netfilter/nf_conntrack_standalone.c).

A line of names is followed by a line of numbers. The table of connections is there while the module
is loaded: its numbers are in hex, one line for each core, and only the entries are the same in
each. All are of one network namespace: the node's, that of PID 1.
"""

from operator import itemgetter
from pathlib import Path
from typing import Final

from necroscope.errors import SourceUnavailable
from necroscope.model.network_tables import CONNTRACK_COLUMNS, TCP_COLUMNS
from necroscope.model.reading import Gap, Moment, Reading, Source
from necroscope.sources.kept_file import KeptFile

Values = list[int | None]
# The kernel's names, in the order of the columns.
_SNMP: Final = {
    b"Tcp:": (
        b"InSegs OutSegs RetransSegs ActiveOpens PassiveOpens AttemptFails EstabResets OutRsts"
    ).split(),
    b"Udp:": [b"RcvbufErrors"],
}
_NETSTAT: Final = {
    b"TcpExt:": (
        b"ListenOverflows ListenDrops TCPTimeouts TCPSynRetrans TCPRcvCollapsed TCPAbortOnTimeout"
    ).split()
}
_CONNTRACK: Final = (b"insert_failed", b"drop", b"early_drop")
# Where the module is not loaded it may be, later: a look in a minute.
_LOOK_AGAIN: Final = 60
_LONGEST_LINE_BYTES: Final = 512


class NamedLines:
    """Numbers of a file of two lines for each protocol, by the places where their names stood."""

    def __init__(self, wanted: dict[bytes, list[bytes]]) -> None:
        self._wanted = wanted
        self._places: dict[bytes, tuple[bytes, list[int | None]]] = {}

    def parse(self, data: bytes) -> Values:
        """In the order of what is wanted; None where this kernel has no such name."""
        lines = data.split(b"\n")
        found: dict[bytes, Values] = {}
        for names, numbers in zip(lines[::2], lines[1::2], strict=False):
            protocol = names[: names.find(b" ")]
            if protocol in self._wanted:
                words = numbers.split()
                found[protocol] = [
                    None if place is None else int(words[place])
                    for place in self._locate(protocol, names)
                ]
        if not found:
            raise ValueError("it is empty or cut")
        return [
            value
            for protocol, names in self._wanted.items()
            for value in found.get(protocol, [None] * len(names))
        ]

    def _locate(self, protocol: bytes, names: bytes) -> list[int | None]:
        known = self._places.get(protocol)
        if known is None or known[0] != names:
            places = {name: place for place, name in enumerate(names.split())}
            known = names, [places.get(name) for name in self._wanted[protocol]]
            self._places[protocol] = known
        return known[1]


def parse_conntrack(data: bytes) -> Values:
    """Sums over all cores, and the entries there are now."""
    heading, *lines = data.splitlines() or [b""]
    names = heading.split()
    if b"entries" not in names or not lines:
        raise ValueError("it is empty or cut")
    places = [names.index(name) for name in _CONNTRACK if name in names]
    if len(places) != len(_CONNTRACK):
        raise ValueError("it has other names")
    rows = [itemgetter(*places, names.index(b"entries"))(line.split()) for line in lines]
    sums = [sum(int(row[at], 16) for row in rows) for at in range(len(_CONNTRACK))]
    return [*sums, int(rows[0][-1], 16)]


class NetworkCounters(Source):
    """One row a tick."""

    name = "network"
    tables: tuple[str, ...] = ("network",)

    def __init__(self, root: Path) -> None:
        folder = root / "proc/1/net"
        folder = folder if folder.exists() else root / "proc/net"
        self._snmp_file, self._netstat_file = (
            KeptFile(folder / "snmp"),
            KeptFile(folder / "netstat"),
        )
        self._conntrack_file = KeptFile(folder / "stat/nf_conntrack")
        self._snmp, self._netstat = NamedLines(_SNMP), NamedLines(_NETSTAT)
        self._before: Values = []
        self._read_at: Moment | None = None
        self._rest = 0

    def read(self, now: Moment) -> Reading:
        tcp = self._snmp_file.parse(self._snmp.parse, record=True)
        tcp += self._netstat_file.parse(self._netstat.parse, record=True)
        *counted, entries = self._conntrack()
        values = [*tcp, *counted]
        reading = Reading()
        if self._read_at is None:
            reading.gaps += _missing(values, now)
        else:
            rises = [_rise(new, old) for new, old in zip(values, self._before, strict=True)]
            elapsed_ns = now.monotonic_ns - self._read_at.monotonic_ns
            reading.rows["network"] = [(now.time_ns, elapsed_ns, *rises, entries)]
        self._before, self._read_at = values, now
        return reading

    def close(self) -> None:
        for file in (self._snmp_file, self._netstat_file, self._conntrack_file):
            file.close()

    def _conntrack(self) -> Values:
        """All None where nothing is tracked: no module, or no right to see its table."""
        nothing: Values = [None] * (len(_CONNTRACK) + 1)
        if self._rest:
            self._rest -= 1
            return nothing
        try:
            return self._conntrack_file.parse(
                parse_conntrack, longest_record_bytes=_LONGEST_LINE_BYTES
            )
        except SourceUnavailable:
            self._rest = _LOOK_AGAIN
            return nothing


def _rise(new: int | None, old: int | None) -> int | None:
    """None where it was reset."""
    return None if new is None or old is None or new < old else new - old


def _missing(values: Values, now: Moment) -> list[Gap]:
    names = [*TCP_COLUMNS, *CONNTRACK_COLUMNS]
    lacking = [name for name, value in zip(names, values, strict=True) if value is None]
    if not lacking:
        return []
    cause = f"this node does not count {', '.join(lacking)}"
    return [Gap("network", now.time_ns, now.time_ns, cause)]
