"""struct perf_event_attr byte for byte, by the offsets of include/uapi/linux/perf_event.h."""

import re
import struct
from pathlib import Path

import pytest

from necroscope.perf_abi import event_attr as abi
from necroscope.perf_abi.event_attr import EventAttr

HEADER = Path("/usr/include/linux/perf_event.h")

# Field: offset and struct code, counted by hand in the kernel's header.
OFFSETS = {
    "type": (0, "<I"),
    "size": (4, "<I"),
    "config": (8, "<Q"),
    "sample_period": (16, "<Q"),
    "sample_type": (24, "<Q"),
    "read_format": (32, "<Q"),
    "flags": (40, "<Q"),
    "wakeup_watermark": (48, "<I"),
    "bp_type": (52, "<I"),
    "config1": (56, "<Q"),
    "config2": (64, "<Q"),
    "branch_sample_type": (72, "<Q"),
    "sample_regs_user": (80, "<Q"),
    "sample_stack_user": (88, "<I"),
    "clockid": (92, "<i"),
    "sample_regs_intr": (96, "<Q"),
    "aux_watermark": (104, "<I"),
    "sample_max_stack": (108, "<H"),
}


def unpacked(attr: EventAttr) -> dict[str, int]:
    packed = attr.pack()
    assert len(packed) == 112
    return {
        name: struct.unpack_from(code, packed, offset)[0]
        for name, (offset, code) in OFFSETS.items()
    }


def test_every_field_lies_where_the_kernel_looks_for_it() -> None:
    attr = EventAttr(
        type=2,
        config=0x1122334455667788,
        sample_type=0x8080_8080,
        flags=abi.FLAG_USE_CLOCKID | abi.FLAG_DISABLED,
        frequency=97,
        wakeup_watermark_bytes=0xABCDEF,
        user_registers=0x99,
        max_stack=0x77,
    )
    fields = unpacked(attr)
    assert fields == dict.fromkeys(OFFSETS, 0) | {
        "type": 2,
        "size": 112,
        "config": 0x1122334455667788,
        "sample_period": 97,
        "sample_type": 0x8080_8080,
        "flags": 1 | 1 << 25 | 1 << 10,
        "wakeup_watermark": 0xABCDEF,
        "sample_regs_user": 0x99,
        "clockid": 1,
        "sample_max_stack": 0x77,
    }


def test_without_a_frequency_each_event_is_a_sample() -> None:
    fields = unpacked(EventAttr(2, 1, 0, 0))
    assert fields["sample_period"] == 1
    assert not fields["flags"] & abi.FLAG_FREQ


def test_the_clock_is_named_only_when_its_flag_is_set() -> None:
    assert unpacked(EventAttr(1, 0, 0, 0))["clockid"] == 0


def test_flags_are_the_bits_of_the_header() -> None:
    # disabled is bit 0; mmap, comm, freq, task, watermark, sample_id_all, mmap2, comm_exec,
    # use_clockid, ksymbol follow.
    bits = {"DISABLED": 0, "MMAP": 8, "COMM": 9, "FREQ": 10, "TASK": 13, "WATERMARK": 14}
    bits |= {"SAMPLE_ID_ALL": 18, "MMAP2": 23, "COMM_EXEC": 24, "USE_CLOCKID": 25, "KSYMBOL": 29}
    assert {name: getattr(abi, f"FLAG_{name}") for name in bits} == {
        name: 1 << bit for name, bit in bits.items()
    }


def test_ioctls_are_those_of_the_header() -> None:
    def request(direction: int, number: int, size: int) -> int:
        return direction << 30 | size << 16 | ord("$") << 8 | number

    assert (request(0, 0, 0), request(0, 5, 0)) == (abi.IOC_ENABLE, abi.IOC_SET_OUTPUT)
    assert (request(1, 4, 8), request(1, 8, 4), request(2, 7, 8)) == (
        abi.IOC_PERIOD,
        abi.IOC_SET_BPF,
        abi.IOC_ID,
    )


def test_context_marks_are_the_negative_numbers_of_the_header() -> None:
    marks = (abi.CONTEXT_KERNEL, abi.CONTEXT_USER)
    assert [mark - (1 << 64) for mark in marks] == [-128, -512]


@pytest.mark.skipif(not HEADER.exists(), reason="no kernel headers here")
def test_sample_bits_agree_with_the_installed_header() -> None:
    found = dict(re.findall(r"PERF_SAMPLE_(\w+)\s*=\s*1U << (\d+)", HEADER.read_text()))
    ours = {
        name.removeprefix("SAMPLE_"): value
        for name, value in vars(abi).items()
        if name.startswith("SAMPLE_")
    }
    assert ours == {name: 1 << int(found[name]) for name in ours}
