"""A frame made by hand must be one that a kernel accepts."""

import socket

import pytest

from necroscope.lab import packets


def test_the_checksum_is_that_of_rfc_1071() -> None:
    assert packets._checksum(bytes.fromhex("4500003044224000800600008c7c19acae241e2b")) == 0x442E


@pytest.mark.root
def test_a_frame_has_whole_headers_and_the_payload() -> None:
    frame = packets._frame("lo", "198.18.0.1", "198.18.0.2", "02:00:00:00:00:09", 5000, 40)
    ethernet, ip, udp = frame[:14], frame[14:34], frame[34:]
    assert ethernet == bytes.fromhex("020000000009 000000000000 0800")
    assert packets._checksum(ip) == 0
    assert int.from_bytes(ip[2:4], "big") == len(ip + udp) == 68
    assert (socket.inet_ntoa(ip[12:16]), socket.inet_ntoa(ip[16:20])) == (
        "198.18.0.1",
        "198.18.0.2",
    )
    assert int.from_bytes(udp[2:4], "big") == 5000
    assert int.from_bytes(udp[4:6], "big") == len(udp) == 48
