"""Facts about network devices: driver, firmware, queues, rings, offloads (net/core/net-sysfs.c,
include/uapi/linux/ethtool.h).

The ioctls act on our own network namespace, so in a container with one of its own only what sysfs
tells is there.
"""

import ctypes
import fcntl
import os
import socket
import struct
from collections.abc import Iterator
from pathlib import Path
from typing import Final

from necroscope.sources.facts.fact import Fact, fact, list_names, read_text
from necroscope.sources.procfs.network_namespace import is_network_of_node
from necroscope.sources.sysfs.ethtool import Ethtool

DEVICE_LIMIT: Final = 64
_SIOCETHTOOL: Final = 0x8946
_FILES: Final = (
    "mtu",
    "speed",
    "tx_queue_len",
    "threaded",
    "gro_flush_timeout",
    "napi_defer_hard_irqs",
)
# Commands that answer with one number (struct ethtool_value).
_OFFLOADS: Final = {
    "rx_checksum": 0x14,
    "tx_checksum": 0x16,
    "sg": 0x18,
    "tso": 0x1E,
    "gso": 0x23,
    "gro": 0x2B,
}
_GET_RINGS: Final = 0x10
_GET_CHANNELS: Final = 0x3C
_GET_COALESCING: Final = 0x0E


def collect(root: Path) -> Iterator[Fact]:
    folder = root / "sys/class/net"
    devices = [name for name in list_names(folder) if (folder / name / "device/driver").exists()][
        :DEVICE_LIMIT
    ]
    for device in devices:
        yield from _from_sysfs(folder / device, device)
    if is_network_of_node(root):
        yield from _from_ethtool(devices)


def _from_sysfs(folder: Path, device: str) -> Iterator[Fact]:
    yield fact(
        "nic", f"{device} driver", os.path.basename(os.path.realpath(folder / "device/driver"))
    )
    version = read_text(folder / "device/driver/module/version")
    if version is not None:
        yield fact("nic", f"{device} driver_version", version)
    for name in _FILES:
        text = read_text(folder / name)
        if text is not None:
            yield fact("nic", f"{device} {name}", text)
    queues = list_names(folder / "queues")
    for direction in ("rx", "tx"):
        yield fact(
            "nic",
            f"{device} {direction}_queues",
            sum(queue.startswith(f"{direction}-") for queue in queues),
        )
    masks = {
        read_text(folder / "queues" / queue / "rps_cpus")
        for queue in queues
        if queue.startswith("rx-")
    } - {None}
    if masks:
        yield fact("nic", f"{device} rps_cpus", " ".join(sorted(mask for mask in masks if mask)))


def _from_ethtool(devices: list[str]) -> Iterator[Fact]:
    ethtool = Ethtool()
    try:
        for device, answer in ethtool.read(devices).items():
            if answer.driver.firmware:
                yield fact("nic", f"{device} firmware", answer.driver.firmware)
    finally:
        ethtool.close()
    with socket.socket(socket.AF_INET, socket.SOCK_DGRAM) as control:
        for device in devices:
            offloads = {
                name: _ask(control, device, command, 1) for name, command in _OFFLOADS.items()
            }
            for name, value in offloads.items():
                if value is not None:
                    yield fact("nic", f"{device} {name}", "on" if value[0] else "off")
            yield from _rings(control, device)


def _rings(control: socket.socket, device: str) -> Iterator[Fact]:
    rings = _ask(control, device, _GET_RINGS, 8)
    if rings is not None:
        yield fact(
            "nic", f"{device} rings", f"rx {rings[4]} of {rings[0]}, tx {rings[7]} of {rings[3]}"
        )
    channels = _ask(control, device, _GET_CHANNELS, 8)
    if channels is not None:
        yield fact(
            "nic",
            f"{device} channels",
            f"rx {channels[4]}, tx {channels[5]}, combined {channels[7]} of {channels[3]}",
        )
    coalescing = _ask(control, device, _GET_COALESCING, 22)
    if coalescing is not None:
        adaptive = "on" if coalescing[9] else "off"
        yield fact(
            "nic",
            f"{device} coalescing",
            f"rx {coalescing[0]} us, tx {coalescing[4]} us, adaptive rx {adaptive}",
        )


def _ask(control: socket.socket, device: str, command: int, numbers: int) -> tuple[int, ...] | None:
    """The numbers behind the command word; None if the driver does not report it."""
    buffer = ctypes.create_string_buffer(struct.pack("=I", command), 4 + 4 * numbers)
    try:
        # struct ifreq: the device's name and a pointer to the request.
        fcntl.ioctl(
            control,
            _SIOCETHTOOL,
            struct.pack("16sP16x", os.fsencode(device), ctypes.addressof(buffer)),
        )
    except OSError:
        return None
    return struct.unpack_from(f"={numbers}I", buffer.raw, 4)
