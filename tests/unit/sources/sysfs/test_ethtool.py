"""The drivers' own counters by ioctl."""

import struct
import threading
from pathlib import Path

import pytest

from necroscope.sources.sysfs.ethtool import (
    COUNTER_LIMIT,
    Answers,
    Ethtool,
    EthtoolThread,
    parse_driver,
    parse_names,
    parse_values,
)

DATA = Path(__file__).parents[3] / "data/sysfs"


def test_a_captured_driver_is_read() -> None:
    driver = parse_driver((DATA / "drvinfo-virtio_net").read_bytes())
    assert (driver.name, driver.version, driver.firmware, driver.counters) == (
        "virtio_net",
        "1.0.0",
        "",
        20,
    )


def test_captured_counters_have_names_and_values() -> None:
    names = parse_names((DATA / "gstrings-virtio_net").read_bytes())
    values = parse_values((DATA / "gstats-virtio_net").read_bytes())
    assert len(names) == len(values) == 20
    assert (names[0], names[-1]) == ("rx_drops", "tx0_tx_timeouts")
    assert dict(zip(names, values, strict=True))["tx_kicks"] > 0


def test_hostile_counter_names_are_made_harmless() -> None:
    (name,) = parse_names(struct.pack("=III32s", 0x1B, 1, 1, b"\x1b[31m\xff"))
    assert name == "\\x1b[31m\\xff"


class _ManyCounters(Ethtool):
    """A driver with more counters than are kept, answering from memory."""

    count = COUNTER_LIMIT + 7

    def _ask(self, device: str, request: bytes, room_bytes: int) -> bytes:
        (command,) = struct.unpack_from("=I", request)
        if command == 0x03:
            return struct.pack("=I32s32s32s80xI12x", 3, b"ena", b"2.11.0g", b"1.5", self.count)
        if command == 0x1B:
            return request + b"".join(
                f"counter_{at}".encode().ljust(32, b"\0") for at in range(self.count)
            )
        return request + struct.pack(f"={self.count}q", *range(self.count))


def test_counters_beyond_the_limit_are_left_out_and_counted() -> None:
    answer = _ManyCounters().read(["eth0"])["eth0"]
    assert (answer.driver.name, answer.driver.version, answer.driver.firmware) == (
        "ena",
        "2.11.0g",
        "1.5",
    )
    assert len(answer.counters) == COUNTER_LIMIT
    assert answer.counters["counter_1999"] == 1999
    assert answer.left_out == 7


class _Hanging(Ethtool):
    """A driver that answers only when it is let."""

    def __init__(self) -> None:
        super().__init__()
        self.let = threading.Event()

    def read(self, devices: list[str]) -> Answers:
        self.let.wait(10)
        return _ManyCounters().read(devices)


def test_a_hanging_driver_does_not_hold_the_reader_and_its_answer_comes_later() -> None:
    hanging = _Hanging()
    thread = EthtoolThread(lambda: hanging)
    thread.ask(["eth0"])
    assert thread.answers(wait_s=0.001) is None
    thread.ask(["eth0"])
    hanging.let.set()
    assert list(thread.answers(wait_s=10) or {}) == ["eth0"]
    assert thread.answers(wait_s=0.001) is None
    thread.close()


@pytest.mark.kernel
def test_a_device_that_is_not_there_has_no_answer() -> None:
    ethtool = Ethtool()
    assert ethtool.read(["no-such-device", "lo\udcff"]) == {}
    ethtool.close()
