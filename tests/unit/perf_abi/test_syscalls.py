"""System calls by number."""

import ctypes
import errno
import os
import platform
import re
from pathlib import Path

import pytest

from necroscope.perf_abi import syscalls
from necroscope.perf_abi.syscalls import syscall

HEADER = Path("/usr/include/x86_64-linux-gnu/asm/unistd_64.h")


def test_numbers_are_those_of_the_kernels_tables() -> None:
    assert syscalls._NUMBERS == {
        "x86_64": {"perf_event_open": 298, "bpf": 321, "clone": 56},
        "aarch64": {"perf_event_open": 241, "bpf": 280, "clone": 220},
    }
    assert syscalls._COMMON_NUMBERS == {
        "fsopen": 430,
        "fsconfig": 431,
        "fsmount": 432,
        "openat2": 437,
    }


@pytest.mark.skipif(
    platform.machine() != "x86_64" or not HEADER.exists(), reason="no x86_64 kernel headers here"
)
def test_numbers_agree_with_the_installed_header() -> None:
    found = dict(re.findall(r"#define __NR_(\w+) (\d+)", HEADER.read_text()))
    assert syscalls._numbers == {name: int(found[name]) for name in syscalls._numbers}


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
