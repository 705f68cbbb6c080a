"""What became of traffic: TCP and UDP of /proc/net/snmp and netstat (net/ipv4/proc.c), connection
tracking of /proc/net/stat/nf_conntrack (net/netfilter/nf_conntrack_standalone.c).

A line of names is followed by a line of numbers. The table of connections is there while the module
is loaded: its numbers are in hex, one line for each core, and only the entries are the same in
each. All are of one network namespace: the node's, that of PID 1.
"""

from collections.abc import Iterable
from operator import itemgetter
from pathlib import Path
from typing import Final

from necroscope.errors import SourceUnavailable
from necroscope.model.network_tables import CONNTRACK_COLUMNS, TCP_COLUMNS
from necroscope.model.reading import Gap, Moment, Reading, Source
from necroscope.sources.procfs.named_file import NamedFile, Values

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


class NamesAbove:
    """Numbers of a file of two lines for each protocol: its names, and below them its numbers."""

    def __init__(self, wanted: dict[bytes, list[bytes]]) -> None:
        self._wanted = [(protocol, name) for protocol, names in wanted.items() for name in names]
        self._protocols = frozenset(wanted)
        self._order: list[int] = []
        self.value_places: list[int] = []

    def parse(self, data: bytes) -> Values:
        """In the order of what is wanted; None where this kernel has no such name."""
        places: dict[tuple[bytes, bytes], int] = {}
        values: list[bytes] = []
        lines = data.split(b"\n")
        for above, below in zip(lines[::2], lines[1::2], strict=False):
            names, numbers = above.split(), below.split()
            values += names
            if names and names[0] in self._protocols:
                if len(numbers) != len(names):
                    raise ValueError("it is cut")
                first = len(values)
                places |= {(names[0], name): first + at for at, name in enumerate(names)}
            values += numbers
        found = [places.get(wanted) for wanted in self._wanted]
        self.value_places = sorted(place for place in found if place is not None)
        if not self.value_places:
            raise ValueError("it is empty or cut")
        # At the end of those that are there stands a None for the others.
        self._order = [-1 if at is None else self.value_places.index(at) for at in found]
        return self.in_order(int(values[place]) for place in self.value_places)

    def in_order(self, numbers: Iterable[int]) -> Values:
        return [*itemgetter(*self._order)([*numbers, None])]


class ConntrackLines:
    """Sums over the cores, one on each line, and the entries there are now."""

    def __init__(self) -> None:
        self.value_places: list[int] = []

    def parse(self, data: bytes) -> Values:
        heading, *lines = data.splitlines() or [b""]
        names = heading.split()
        if b"entries" not in names or not lines:
            raise ValueError("it is empty or cut")
        places = [names.index(name) for name in _CONNTRACK if name in names]
        if len(places) != len(_CONNTRACK):
            raise ValueError("it has other names")
        width, words = len(names), data.split()
        if len(words) != width * (1 + len(lines)):
            raise ValueError("it is cut")
        # The entries of the first core come first: they are in front of all counters.
        self.value_places = [width + names.index(b"entries")] + [
            line * width + place for line in range(1, 1 + len(lines)) for place in sorted(places)
        ]
        if self.value_places != sorted(self.value_places):
            raise ValueError("it has another order")
        return self.in_order(int(words[place], 16) for place in self.value_places)

    def in_order(self, numbers: Iterable[int]) -> Values:
        entries, *counters = numbers
        return [*(sum(counters[at :: len(_CONNTRACK)]) for at in range(len(_CONNTRACK))), entries]


class NetworkCounters(Source):
    """One row a tick."""

    name = "network"
    tables: tuple[str, ...] = ("network",)

    def __init__(self, root: Path) -> None:
        folder = root / "proc/1/net"
        folder = folder if folder.exists() else root / "proc/net"
        self._snmp = NamedFile(folder / "snmp", NamesAbove(_SNMP))
        self._netstat = NamedFile(folder / "netstat", NamesAbove(_NETSTAT))
        self._conntrack = NamedFile(
            folder / "stat/nf_conntrack",
            ConntrackLines(),
            longest_bytes=_LONGEST_LINE_BYTES,
            base=16,
        )
        self._read_at: Moment | None = None
        self._rest = 0

    def read(self, now: Moment) -> Reading:
        snmp, netstat = self._snmp.rises(), self._netstat.rises()
        tracked, entries = self._read_conntrack()
        reading = Reading()
        if self._read_at is None:
            values = [*self._snmp.values(), *self._netstat.values(), *tracked]
            reading.gaps += _missing(values, now)
        elif snmp is not None and netstat is not None:
            elapsed_ns = now.monotonic_ns - self._read_at.monotonic_ns
            rises = [*snmp, *netstat, *tracked]
            if any(rise is not None and rise < 0 for rise in rises):  # it was reset
                rises = [None if rise is None or rise < 0 else rise for rise in rises]
            reading.rows["network"] = [(now.time_ns, elapsed_ns, *rises, entries)]
        self._read_at = now
        return reading

    def close(self) -> None:
        for file in (self._snmp, self._netstat, self._conntrack):
            file.close()

    def _read_conntrack(self) -> tuple[Values, int | None]:
        """Rises, and the entries; all None where nothing is tracked: no module, or no right to see
        its table. At the first read of all they are 0, which is not recorded.
        """
        nothing: Values = [None] * len(_CONNTRACK)
        if self._rest:
            self._rest -= 1
            return nothing, None
        try:
            rises = self._conntrack.rises()
        except SourceUnavailable:
            self._rest = _LOOK_AGAIN
            return nothing, None
        if rises is None:
            nothing = [0] * len(_CONNTRACK) if self._read_at is None else nothing
        return nothing if rises is None else rises[:-1], self._conntrack.values()[-1]


def _missing(values: Values, now: Moment) -> list[Gap]:
    names = [*TCP_COLUMNS, *CONNTRACK_COLUMNS]
    lacking = [name for name, value in zip(names, values, strict=True) if value is None]
    if not lacking:
        return []
    cause = f"this node does not count {', '.join(lacking)}"
    return [Gap("network", now.time_ns, now.time_ns, cause)]
