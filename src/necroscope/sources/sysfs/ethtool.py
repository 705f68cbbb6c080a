"""A network driver's own counters, by ioctl (include/uapi/linux/ethtool.h): its name, version,
firmware and statistics.

Every one of these calls takes the kernel's rtnl lock, which a device that is being reset holds for
seconds. So they are made in a thread of their own: the recorder asks, waits a little, and takes a
late answer at its next read.
"""

import ctypes
import fcntl
import os
import socket
import struct
from collections.abc import Callable, Mapping
from types import MappingProxyType
from typing import Final, NamedTuple

from necroscope.errors import SourceUnavailable
from necroscope.model.names import clean
from necroscope.sources.background import Background

COUNTER_LIMIT: Final = 2_000
_SIOCETHTOOL: Final = 0x8946
_GDRVINFO: Final = 0x03
_GSTRINGS: Final = 0x1B
_GSTATS: Final = 0x1D
_SS_STATS: Final = 1
_NAME_BYTES: Final = 32
_DRIVER_BYTES: Final = 196
_STRINGS_HEAD: Final = struct.Struct("=III")
_STATS_HEAD: Final = struct.Struct("=II")
# The kernel writes as many entries as the driver has by then, whatever was asked: room for queues
# added meanwhile.
_SPARE_ENTRIES: Final = 4_096
_MOST_ENTRIES: Final = 100_000


class Driver(NamedTuple):
    name: str
    version: str
    firmware: str
    counters: int


class DriverAnswer(NamedTuple):
    """What one device said; `left_out` counts the counters beyond the limit."""

    driver: Driver
    counters: Mapping[str, int] = MappingProxyType({})
    left_out: int = 0


Answers = dict[str, DriverAnswer]


def parse_driver(data: bytes) -> Driver:
    """struct ethtool_drvinfo: command, driver, version, firmware, bus and ROM of 32 bytes each, 12
    reserved, then the counts.
    """
    name, version, firmware = (_text(data[at : at + _NAME_BYTES]) for at in (4, 36, 68))
    (counters,) = struct.unpack_from("=I", data, 180)
    return Driver(name, version, firmware, counters)


def parse_names(data: bytes) -> tuple[str, ...]:
    """struct ethtool_gstrings: command, set, length, then names of 32 bytes."""
    head = _STRINGS_HEAD.size
    (_command, _set, count) = _STRINGS_HEAD.unpack_from(data)
    return tuple(
        _text(data[at : at + _NAME_BYTES])
        for at in range(head, head + count * _NAME_BYTES, _NAME_BYTES)
    )


def parse_values(data: bytes) -> tuple[int, ...]:
    """struct ethtool_stats: command, count, then numbers of 64 bits, stored signed because the
    table's column is.
    """
    (_command, count) = _STATS_HEAD.unpack_from(data)
    return struct.unpack_from(f"={count}q", data, _STATS_HEAD.size)


def _text(raw: bytes) -> str:
    return clean(raw.partition(b"\0")[0].strip())


class Ethtool:
    """One socket; the names of a device's counters are asked for again only when their number
    changes.
    """

    def __init__(self) -> None:
        self._socket: socket.socket | None = None
        self._names: dict[str, tuple[str, ...]] = {}

    def read(self, devices: list[str]) -> Answers:
        """The answer of each device that gave one."""
        answers = {}
        for device in devices:
            try:
                answers[device] = self._read_device(device)
            except (OSError, ValueError, struct.error):
                continue
        return answers

    def close(self) -> None:
        if self._socket is not None:
            self._socket.close()

    def _read_device(self, device: str) -> DriverAnswer:
        driver = parse_driver(self._ask(device, struct.pack("=I", _GDRVINFO), _DRIVER_BYTES))
        count = driver.counters
        if not 0 < count <= _MOST_ENTRIES:
            return DriverAnswer(driver)
        if len(self._names.get(device, ())) != count:
            request = _STRINGS_HEAD.pack(_GSTRINGS, _SS_STATS, count)
            self._names[device] = parse_names(
                self._ask(device, request, (count + _SPARE_ENTRIES) * _NAME_BYTES)
            )
        values = parse_values(
            self._ask(device, _STATS_HEAD.pack(_GSTATS, count), (count + _SPARE_ENTRIES) * 8)
        )
        pairs = zip(self._names[device][:COUNTER_LIMIT], values, strict=False)
        return DriverAnswer(driver, dict(pairs), max(0, count - COUNTER_LIMIT))

    def _ask(self, device: str, request: bytes, room_bytes: int) -> bytes:
        if self._socket is None:
            self._socket = socket.socket(socket.AF_INET, socket.SOCK_DGRAM)
        buffer = ctypes.create_string_buffer(request, len(request) + room_bytes)
        # struct ifreq: the device's name and a pointer to the request.
        fcntl.ioctl(
            self._socket,
            _SIOCETHTOOL,
            struct.pack("16sP16x", os.fsencode(device), ctypes.addressof(buffer)),
        )
        return buffer.raw


class EthtoolThread:
    """Asks in a thread that may hang; at most one question is under way."""

    def __init__(self, make: Callable[[], Ethtool] = Ethtool) -> None:
        self._ethtool = make()
        self._work: Background[Answers] = Background("ethtool")

    @property
    def trouble(self) -> SourceUnavailable | None:
        return self._work.trouble

    def ask(self, devices: list[str]) -> None:
        """Ask, unless the last question has not been answered."""
        if self._work.is_idle:
            self._work.start(lambda: self._ethtool.read(devices))

    def answers(self, wait_s: float) -> Answers | None:
        """None if there is no answer yet."""
        return self._work.take(wait_s)

    def close(self) -> None:
        """A thread that hangs in the kernel is left: it ends with the process."""
        self._work.close(wait_s=1)
        if self._work.is_idle:
            self._ethtool.close()
