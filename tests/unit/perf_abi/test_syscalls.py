"""System calls by number."""

import ctypes
import errno
import os
import re
from pathlib import Path

import pytest

from necroscope.perf_abi import syscalls
from necroscope.perf_abi.syscalls import syscall

# asm-generic's table is in every package of kernel headers, whatever the machine.
HEADERS = {
    "x86_64": Path("/usr/include/x86_64-linux-gnu/asm/unistd_64.h"),
    "aarch64": Path("/usr/include/asm-generic/unistd.h"),
}


def test_numbers_are_those_of_the_kernels_tables() -> None:
    assert syscalls._NUMBERS == {
        "x86_64": {"perf_event_open": 298, "bpf": 321, "clone": 56, "add_key": 248, "keyctl": 250},
        "aarch64": {
            "perf_event_open": 241,
            "bpf": 280,
            "clone": 220,
            "add_key": 217,
            "keyctl": 219,
        },
    }
    assert syscalls._COMMON_NUMBERS == {
        "fsopen": 430,
        "fsconfig": 431,
        "fsmount": 432,
        "openat2": 437,
    }


@pytest.mark.parametrize("machine", HEADERS)
def test_numbers_agree_with_the_installed_header(machine: str) -> None:
    header = HEADERS[machine]
    if not header.exists():
        pytest.skip(f"no kernel headers here: {header}")
    found = dict(re.findall(r"#define __NR_(\w+) (\d+)", header.read_text()))
    ours = syscalls._NUMBERS[machine] | syscalls._COMMON_NUMBERS
    assert ours == {name: int(found[name]) for name in ours}


@pytest.mark.kernel
def test_a_refused_call_is_an_oserror_with_the_kernels_number() -> None:
    with pytest.raises(OSError, match=r"Bad file descriptor|Operation not permitted") as caught:
        syscall("fsmount", -1, 0, 0)
    # Without CAP_SYS_ADMIN the kernel says so before it looks at the descriptor.
    assert caught.value.errno in (errno.EBADF, errno.EPERM)


@pytest.mark.kernel
def test_a_call_that_works_gives_its_result() -> None:
    how = ctypes.create_string_buffer(24)
    try:
        descriptor = syscall(
            "openat2", -100, ctypes.create_string_buffer(b"/proc/self/stat"), how, 24
        )
    except OSError as error:
        pytest.skip(f"openat2: {error.strerror}")
    os.close(descriptor)


def test_a_call_without_a_number_here_is_enosys() -> None:
    with pytest.raises(
        OSError, match="no number for system call landlock_create_ruleset"
    ) as caught:
        syscall("landlock_create_ruleset")
    assert caught.value.errno == errno.ENOSYS
