"""Which unit is connected to the daemons' sockets whenever a container starts: it asked for it.

A daemon answers a request to start a container after the start, so who asks is connected at that
moment. Others come and go with questions of their own, or stay: a unit is the maker only if it was
connected at every start that was watched, and no other was.
"""

import os
from collections import deque
from collections.abc import Collection, Iterable
from pathlib import Path
from typing import Final

from necroscope.model.units import NS_PER_MS
from necroscope.sources import unix_peers
from necroscope.sources.containers.maker_unit import ContainerMaker, read_unit
from necroscope.sources.unix_peers import SocketReader

_LOOKS_KEPT: Final = 1_000
# A start takes this long at least, and its event is as old as this at most when it is booked.
_BEFORE_NS: Final = 300 * NS_PER_MS
_AFTER_NS: Final = 50 * NS_PER_MS


class ConnectionLog:
    """Looks with the units that were connected, and a pid of each. Whose a connection is is asked
    once.
    """

    def __init__(
        self, root: Path, sockets: Collection[str], sockets_of: SocketReader | None = None
    ) -> None:
        """`sockets_of` looks at another process's descriptors, where we may not ourselves."""
        self._root = root
        self._sockets_of = sockets_of or unix_peers.socket_reader(root)
        self._sockets = sockets
        self._owners: dict[int, tuple[str, str] | None] = {}
        self._looks: deque[tuple[int, dict[str, str]]] = deque(maxlen=_LOOKS_KEPT)

    def look(self, now_ns: int) -> None:
        """`now_ns` is by the machine's clock, as the daemons' events are."""
        inodes = unix_peers.peers(self._sockets)
        new = [inode for inode in inodes if inode not in self._owners]
        pids = unix_peers.holders(self._root, new, self._sockets_of)
        self._owners = {inode: self._owners.get(inode) for inode in inodes}
        for inode in new:
            self._owners[inode] = self._owner(pids.get(inode))
        self._looks.append((now_ns, dict(one for one in self._owners.values() if one is not None)))

    def maker(self, starts_ns: Iterable[int]) -> ContainerMaker | None:
        """Of a container that was started at these moments. A start at which no client was seen
        tells nothing.
        """
        at_starts = [units for start_ns in starts_ns if (units := self._units_at(start_ns))]
        always = set.intersection(*map(set, at_starts)) if at_starts else set()
        if len(always) != 1:
            return None
        (unit,) = always
        times = f"all {len(at_starts)} starts" if len(at_starts) > 1 else "the start"
        return ContainerMaker(
            unit,
            f"it alone is connected to {' or '.join(self._sockets)} at {times} that were watched"
            f" (pid {at_starts[-1][unit]})",
        )

    def _owner(self, pid: str | None) -> tuple[str, str] | None:
        if pid is None or pid == str(os.getpid()):
            return None
        unit = read_unit(self._root, pid)
        return (unit, pid) if unit is not None else None

    def _units_at(self, start_ns: int) -> dict[str, str]:
        found: dict[str, str] = {}
        for time_ns, units in self._looks:
            if start_ns - _BEFORE_NS <= time_ns <= start_ns + _AFTER_NS:
                found |= units
        return found
