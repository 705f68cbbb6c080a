"""A veth pair between two network namespaces of the lab, received on the chosen core, and a probe
across it.
"""

import contextlib
import socket
import struct
import time
from dataclasses import dataclass
from pathlib import Path
from typing import Final

PORT: Final = 9999
NEAR_ADDRESS: Final = "198.18.0.1"
FAR_ADDRESS: Final = "198.18.0.2"
_PACKET: Final = struct.Struct("<QQ")


@dataclass(frozen=True, slots=True)
class Network:
    """Packets from `near` to `far` are received on `core`: receive packet steering of the far end
    leads there.
    """

    near: str
    far: str
    near_device: str
    far_device: str
    core: int


def setup_commands(network: Network) -> list[list[str]]:
    """198.18.0.0/15 is set aside for tests of networks (RFC 2544): no machine has it as its own."""
    near, far = network.near, network.far
    return [
        ["ip", "netns", "add", near],
        ["ip", "netns", "add", far],
        [
            "ip",
            "-n",
            near,
            "link",
            "add",
            network.near_device,
            "type",
            "veth",
            "peer",
            "name",
            network.far_device,
            "netns",
            far,
        ],
        ["ip", "-n", near, "address", "add", f"{NEAR_ADDRESS}/30", "dev", network.near_device],
        ["ip", "-n", far, "address", "add", f"{FAR_ADDRESS}/30", "dev", network.far_device],
        *(["ip", "-n", name, "link", "set", "lo", "up"] for name in (near, far)),
        ["ip", "-n", near, "link", "set", network.near_device, "up"],
        ["ip", "-n", far, "link", "set", network.far_device, "up"],
        [
            "ip",
            "netns",
            "exec",
            far,
            "sh",
            "-c",
            (
                f"echo {1 << network.core:x} >"
                f" /sys/class/net/{network.far_device}/queues/rx-0/rps_cpus"
            ),
        ],
    ]


def send(gap_s: float, log: str) -> None:
    """Numbered packets with the time they were sent, as long as it lives."""
    sender = socket.socket(socket.AF_INET, socket.SOCK_DGRAM)
    with Path(log).open("w", encoding="ascii", buffering=1) as sent:
        number = 0
        while True:
            sent.write(f"{number} {time.time_ns()}\n")
            with contextlib.suppress(OSError):  # a full queue is what this measures
                sender.sendto(
                    _PACKET.pack(number, time.monotonic_ns()) + bytes(48), (FAR_ADDRESS, PORT)
                )
            number += 1
            time.sleep(gap_s)


def receive(log: str) -> None:
    """The number and the delay of each packet that comes."""
    receiver = socket.socket(socket.AF_INET, socket.SOCK_DGRAM)
    receiver.setsockopt(socket.SOL_SOCKET, getattr(socket, "SO_RCVBUFFORCE", 33), 1 << 24)
    receiver.bind((FAR_ADDRESS, PORT))
    with Path(log).open("w", encoding="ascii", buffering=1) as received:
        while True:
            number, sent_ns = _PACKET.unpack_from(receiver.recv(128))
            received.write(f"{number} {time.monotonic_ns() - sent_ns}\n")


def read_packets(sent: Path, received: Path) -> list[tuple[int, int | None]]:
    """Time of sending (ns UTC) and delay of each packet; None if it never came."""
    delays = dict(_pairs(received))
    return [(time_ns, delays.get(number)) for number, time_ns in _pairs(sent)]


def _pairs(path: Path) -> list[tuple[int, int]]:
    """The last line may be half written."""
    lines = path.read_text().splitlines(keepends=True) if path.exists() else []
    return [(int(line.split()[0]), int(line.split()[1])) for line in lines if line.endswith("\n")]
