"""Counters of network devices: /sys/class/net/DEV (net/core/net-sysfs.c) and, by ethtool, the
driver's own.

`queues/tx-N/tx_timeout` counts the watchdog's hits for every driver; the kernel log tells some of
them only once per boot. Devices are those with a driver behind them, and veth, which carry the
containers; lo, bridges, tunnels and ifb are left out.

veth writes nothing to the kernel log. Where it is all that a node has, as in a container that is a
node, a link that went is an event by its counter.
"""

import os
from dataclasses import dataclass, field
from pathlib import Path
from typing import Final

from necroscope.errors import SourceUnavailable
from necroscope.model.event import Event
from necroscope.model.names import clean
from necroscope.model.reading import Gap, Moment, Reading, Row, Source, Trouble
from necroscope.model.tables import TABLES
from necroscope.sources.kept_file import read_once, unavailable
from necroscope.sources.procfs.network_namespace import is_network_of_node
from necroscope.sources.sysfs.ethtool import Answers, EthtoolThread

DEVICE_LIMIT: Final = 256
_WAIT_S: Final = 0.02
_FILES: Final = (
    "statistics/rx_dropped",
    "statistics/tx_dropped",
    "statistics/rx_errors",
    "statistics/tx_errors",
    "statistics/rx_packets",
    "statistics/tx_packets",
    "carrier_changes",
)


@dataclass(slots=True)
class Nic:
    """One device and the values last written of its counters."""

    name: str
    folder: str
    driver: str | None
    is_veth: bool
    firmware: str | None = None
    values: dict[str, int] = field(default_factory=dict)
    carrier_changes: int | None = None

    @classmethod
    def at(cls, folder: str, name: str) -> "Nic | None":
        """None for a device that is neither a driver's nor veth."""
        try:
            driver = clean(os.path.basename(os.readlink(f"{folder}/device/driver")))
        except OSError:
            if not _is_veth(folder):
                return None
            return cls(name, folder, "veth", is_veth=True)
        return cls(name, folder, driver, is_veth=False)

    def counters(self) -> dict[str, int]:
        """What sysfs counts; a file that this kernel lacks has no entry."""
        found = {}
        for file in (*_FILES, *self._queue_files()):
            text = read_once(f"{self.folder}/{file}")
            if text is not None and text.strip().isdigit():
                found[file.removeprefix("statistics/").removeprefix("queues/")] = int(text)
        return found

    def changes(self, counters: dict[str, int], time_ns: int) -> list[Row]:
        """Rows of the counters that differ from what was written last."""
        before = self.values
        changed = [(name, value) for name, value in counters.items() if before.get(name) != value]
        before.update(changed)
        return [
            (time_ns, clean(self.name), self.driver, self.firmware, name, value)
            for name, value in changed
        ]

    def lost_link(self, counters: dict[str, int], time_ns: int) -> Row | None:
        """An event, if its link went since the last time."""
        before, self.carrier_changes = self.carrier_changes, counters.get("carrier_changes")
        changes = (self.carrier_changes or 0) - (before or 0)
        is_up = (read_once(f"{self.folder}/carrier") or b"").strip() == b"1"
        if before is None or changes <= 0 or (is_up and changes < 2):
            return None
        name = clean(self.name)
        words = f"{name}: its link went" + (" and came back" if is_up else " down")
        return Event(
            time_ns=time_ns, kind="nic_link_down", device=name, by_kernel=True, message=words
        ).row()

    def _queue_files(self) -> list[str]:
        """veth has no watchdog."""
        if self.is_veth:
            return []
        try:
            queues = os.listdir(f"{self.folder}/queues")
        except OSError:
            return []
        return [f"queues/{queue}/tx_timeout" for queue in queues if queue.startswith("tx-")]


def _is_veth(folder: str) -> bool:
    """A pair of ends: its link is another interface, and it has no type (vlan, macvlan and the like
    have both).
    """
    index, link = read_once(f"{folder}/ifindex"), read_once(f"{folder}/iflink")
    return (
        index is not None
        and link is not None
        and index != link
        and b"DEVTYPE=" not in (read_once(f"{folder}/uevent") or b"")
    )


class Nics(Source):
    """A row for each counter that changed, and for all of them at the start of a segment."""

    name = "nics"
    tables: tuple[str, ...] = ("nics",)
    period_s = TABLES["nics"].period_s

    def __init__(self, root: Path, ethtool: EthtoolThread | None = None) -> None:
        self._folder = root / "sys/class/net"
        self._nics: dict[str, Nic | None] = {}
        # The ioctls act on our own network namespace, which in a container may not be the node's.
        self._ethtool = ethtool or (EthtoolThread() if is_network_of_node(root) else None)
        self._is_owed = False
        self._read_at: Moment | None = None

    def start_segment(self) -> None:
        """The next read writes every counter, so that the segment explains itself."""
        for nic in self._nics.values():
            if nic is not None:
                nic.values.clear()

    def read(self, now: Moment) -> Reading:
        nics = self._find(now, gaps := [])
        asked = [nic.name for nic in nics if not nic.is_veth]
        late = self._ethtool.answers(0) if self._ethtool is not None and self._is_owed else None
        if self._ethtool is not None and asked:
            self._ethtool.ask(asked)
        counters = {nic.name: nic.counters() for nic in nics}
        if asked:
            gaps += self._add_answers(counters, late, now)
        rows = [row for nic in nics for row in nic.changes(counters[nic.name], now.time_ns)]
        lost = [nic.lost_link(counters[nic.name], now.time_ns) for nic in nics if not asked]
        events = [row for row in lost if row is not None]
        self._read_at = now
        trouble = self._ethtool.trouble if self._ethtool is not None else None
        parts = (Trouble("ethtool", self.tables, trouble),) if trouble is not None else ()
        found = {"nics": rows, "events": events} if events else {"nics": rows}
        return Reading(found, gaps, parts=parts)

    def close(self) -> None:
        if self._ethtool is not None:
            self._ethtool.close()

    def _find(self, now: Moment, gaps: list[Gap]) -> list[Nic]:
        """The devices there are now, those with a driver first."""
        try:
            names = os.listdir(self._folder)
        except OSError as error:
            raise unavailable(self._folder, error) from None
        if not names:
            raise SourceUnavailable(
                f"{clean(str(self._folder))} is empty", "mount the node's /sys below --host-root"
            )
        self._nics = {
            name: self._nics[name] if name in self._nics else Nic.at(f"{self._folder}/{name}", name)
            for name in names
        }
        nics = sorted(
            (nic for nic in self._nics.values() if nic is not None),
            key=lambda nic: (nic.is_veth, nic.name),
        )
        if len(nics) > DEVICE_LIMIT:
            gaps.append(
                self._gap(
                    now,
                    f"{len(nics) - DEVICE_LIMIT} network devices beyond {DEVICE_LIMIT} were not"
                    " read",
                )
            )
        return nics[:DEVICE_LIMIT]

    def _add_answers(
        self, counters: dict[str, dict[str, int]], late: Answers | None, now: Moment
    ) -> list[Gap]:
        """Take in what the drivers said, now or since the last read; that they have said nothing
        since then is a gap.
        """
        if self._ethtool is None:
            cause = "the drivers' own counters cannot be asked for from another network namespace"
            return [] if self._read_at is not None else [self._gap(now, cause)]
        answers, was_owed = self._ethtool.answers(_WAIT_S), self._is_owed
        self._is_owed = answers is None
        answers = late if answers is None else answers
        if answers is None:
            return (
                []
                if not was_owed
                else [
                    self._gap(
                        now, "ethtool did not answer: another task holds the kernel's rtnl lock"
                    )
                ]
            )
        gaps = []
        for name, answer in answers.items():
            nic = self._nics.get(name)
            if nic is not None and name in counters:
                nic.driver = answer.driver.name or nic.driver
                nic.firmware = (
                    ", firmware ".join(
                        filter(None, (answer.driver.version, answer.driver.firmware))
                    )
                    or None
                )
                counters[name].update(answer.counters)
                if answer.left_out and self._read_at is None:
                    gaps.append(
                        self._gap(
                            now, f"{answer.left_out} counters of {clean(name)} are beyond the limit"
                        )
                    )
        return gaps

    def _gap(self, now: Moment, cause: str) -> Gap:
        return Gap("nics", (self._read_at or now).time_ns, now.time_ns, cause)
