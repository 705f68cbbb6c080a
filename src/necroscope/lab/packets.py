"""Senders of many small packets from Python: one sendmmsg(2) carries hundreds, so that the kernel
is the bottleneck.
"""

import ctypes
import socket
import time
from typing import Final

_BATCH: Final = 256
_ETH_P_IP: Final = 0x0800
_SOL_PACKET: Final = 263
_PACKET_QDISC_BYPASS: Final = 20
_SO_SNDBUFFORCE: Final = 32
# What is on its way counts as the sender's: with less it would wait for the receiver instead of
# overrunning it.
_BUFFER_BYTES: Final = 64 << 20
_UDP: Final = 17
_libc: Final = ctypes.CDLL(None, use_errno=True)


class _Iovec(ctypes.Structure):
    _fields_ = [("base", ctypes.c_void_p), ("length", ctypes.c_size_t)]


class _Message(ctypes.Structure):
    """struct mmsghdr (linux/socket.h): struct msghdr, padded to eight bytes, and the number of
    bytes sent.
    """

    _fields_ = [
        ("name", ctypes.c_void_p),
        ("name_length", ctypes.c_uint32),
        ("vector", ctypes.POINTER(_Iovec)),
        ("vector_length", ctypes.c_size_t),
        ("control", ctypes.c_void_p),
        ("control_length", ctypes.c_size_t),
        ("flags", ctypes.c_uint64),
        ("sent", ctypes.c_uint32),
    ]


def flood(
    device: str,
    source: str,
    target: str,
    target_hardware: str,
    port: int,
    size_bytes: int,
    packets_per_s: float | None,
) -> None:
    """UDP packets straight to the device past the sender's own stack, as long as it lives."""
    frame = _frame(device, source, target, target_hardware, port, size_bytes)
    buffer = ctypes.create_string_buffer(frame, len(frame))
    vector = _Iovec(ctypes.addressof(buffer), len(frame))
    messages = (_Message * _BATCH)(
        *(_Message(vector=ctypes.pointer(vector), vector_length=1) for _ in range(_BATCH))
    )
    with socket.socket(socket.AF_PACKET, socket.SOCK_RAW, 0) as sender:
        sender.bind((device, 0))
        sender.setsockopt(socket.SOL_SOCKET, _SO_SNDBUFFORCE, _BUFFER_BYTES)
        sender.setsockopt(_SOL_PACKET, _PACKET_QDISC_BYPASS, 1)
        _send_for_ever(sender.fileno(), messages, packets_per_s)


def _send_for_ever(
    descriptor: int, messages: "ctypes.Array[_Message]", packets_per_s: float | None
) -> None:
    batch = _BATCH if packets_per_s is None else max(1, min(_BATCH, int(packets_per_s / 500)))
    due = time.monotonic()
    while True:
        _libc.sendmmsg(descriptor, messages, batch, 0)
        if packets_per_s is not None:
            due = max(due + batch / packets_per_s, time.monotonic() - 0.1)
            time.sleep(max(0.0, due - time.monotonic()))


def _frame(
    device: str, source: str, target: str, target_hardware: str, port: int, size_bytes: int
) -> bytes:
    """An Ethernet frame with IPv4 and UDP; a UDP checksum of 0 says that there is none."""
    with socket.socket(socket.AF_PACKET, socket.SOCK_RAW, 0) as sender:
        sender.bind((device, 0))
        own_hardware: bytes = sender.getsockname()[4]
    udp = b"".join(
        value.to_bytes(2, "big") for value in (40_000 + port % 10_000, port, 8 + size_bytes, 0)
    ) + bytes(size_bytes)
    head = bytearray([0x45, 0, *(20 + len(udp)).to_bytes(2, "big"), 0, 0, 0x40, 0, 64, _UDP, 0, 0])
    head += socket.inet_aton(source) + socket.inet_aton(target)
    head[10:12] = _checksum(bytes(head)).to_bytes(2, "big")
    hardware = bytes.fromhex(target_hardware.replace(":", "")) + own_hardware
    return hardware + _ETH_P_IP.to_bytes(2, "big") + bytes(head) + udp


def _checksum(data: bytes) -> int:
    """RFC 1071."""
    total = sum(int.from_bytes(data[i : i + 2], "big") for i in range(0, len(data), 2))
    total = (total & 0xFFFF) + (total >> 16)
    return ~(total + (total >> 16)) & 0xFFFF
