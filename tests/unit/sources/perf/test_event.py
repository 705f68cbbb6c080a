"""What is said when the kernel refuses a perf event."""

import os
import platform
import subprocess
import sys

import pytest

from necroscope.errors import NecroscopeError, PermissionMissing, SourceUnavailable
from necroscope.perf_abi import event_attr as abi
from necroscope.perf_abi.event_attr import EventAttr
from necroscope.sources.perf import bpf, cgroup_ledger, event
from necroscope.sources.perf.event import enable, event_id, open_event

ATTR = EventAttr(abi.TYPE_SOFTWARE, abi.SW_DUMMY, 0, abi.FLAG_DISABLED)
# A real filter: perf_event_open (298) gives EPERM, everything else is allowed.
UNDER_A_FILTER = """
import ctypes, struct
from necroscope.errors import PermissionMissing
from necroscope.perf_abi import event_attr as abi
from necroscope.sources.perf.event import open_event
LOAD, JUMP_IF_EQUAL, RETURN, ERRNO, ALLOW = 0x20, 0x15, 0x06, 0x00050000, 0x7FFF0000
lines = [(LOAD, 0, 0, 0), (JUMP_IF_EQUAL, 0, 1, 298), (RETURN, 0, 0, ERRNO | 1), (RETURN, 0, 0, ALLOW)]
code = ctypes.create_string_buffer(b"".join(struct.pack("<HBBI", *line) for line in lines))
program = ctypes.create_string_buffer(struct.pack("<HxxxxxxQ", len(lines), ctypes.addressof(code)))
libc = ctypes.CDLL(None, use_errno=True)
assert libc.prctl(38, 1, 0, 0, 0) == 0 and libc.prctl(22, 2, program, 0, 0) == 0, ctypes.get_errno()
try:
    open_event(abi.EventAttr(abi.TYPE_SOFTWARE, abi.SW_CPU_CLOCK, abi.SAMPLE_TIME, 0, frequency=97), cpu=0)
except PermissionMissing as error:
    print(error.facts, error.hint)
"""


@pytest.mark.parametrize(
    ("number", "kind", "word"),
    [
        (1, PermissionMissing, "CAP_PERFMON"),
        (13, PermissionMissing, "CAP_PERFMON"),
        (24, SourceUnavailable, "LimitNOFILE"),
        (38, SourceUnavailable, "CONFIG_PERF_EVENTS"),
    ],
)
def test_a_refusal_says_the_way_out(
    monkeypatch: pytest.MonkeyPatch, number: int, kind: type[NecroscopeError], word: str
) -> None:
    def refuse(*_: object) -> int:
        raise OSError(number, os.strerror(number))

    monkeypatch.setattr(event, "syscall", refuse)
    monkeypatch.setattr(event, "_has_capability", lambda _: False)
    with pytest.raises(kind) as caught:
        open_event(ATTR, pid=0)
    assert word in caught.value.hint


def test_a_limit_on_files_says_how_many_a_core_takes(monkeypatch: pytest.MonkeyPatch) -> None:
    def refuse(*_: object) -> int:
        raise OSError(24, os.strerror(24))

    monkeypatch.setattr(event, "syscall", refuse)
    with pytest.raises(SourceUnavailable, match="five descriptors per core"):
        open_event(ATTR, cpu=0)
    assert 1 + len(cgroup_ledger._ACTIONS) == 4, (
        "the sampling event and the tracepoints of the ledger"
    )


def test_a_refusal_in_spite_of_the_capability_names_the_greater_one(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    def refuse(*_: object) -> int:
        raise OSError(13, os.strerror(13))

    monkeypatch.setattr(event, "syscall", refuse)
    monkeypatch.setattr(event, "_has_capability", lambda number: number == 38)
    monkeypatch.setattr(event, "_own_status", lambda _: None)
    with pytest.raises(PermissionMissing, match="CAP_PERFMON is not enough here") as caught:
        open_event(ATTR, pid=0)
    assert caught.value.hint == "sysctl kernel.perf_event_paranoid=2, or give CAP_SYS_ADMIN"


@pytest.mark.root
@pytest.mark.skipif(
    platform.machine() != "x86_64", reason="the filter is written for x86_64's system call numbers"
)
def test_a_seccomp_filter_is_named_rather_than_a_capability_that_is_there() -> None:
    done = subprocess.run(
        [sys.executable, "-c", UNDER_A_FILTER], capture_output=True, text=True, timeout=60
    )
    assert "a seccomp filter refuses perf_event_open" in done.stdout, done.stderr
    assert "seccomp=unconfined" in done.stdout


def test_other_errors_are_the_kernels_own(monkeypatch: pytest.MonkeyPatch) -> None:
    def refuse(*_: object) -> int:
        raise OSError(22, "Invalid argument")

    monkeypatch.setattr(event, "syscall", refuse)
    with pytest.raises(OSError, match="Invalid argument"):
        open_event(ATTR, pid=0)


@pytest.mark.parametrize(
    ("number", "kind", "word"),
    [(1, PermissionMissing, "CAP_BPF"), (38, SourceUnavailable, "CONFIG_BPF_SYSCALL")],
)
def test_a_refusal_of_bpf_says_the_way_out(
    monkeypatch: pytest.MonkeyPatch, number: int, kind: type[NecroscopeError], word: str
) -> None:
    def refuse(*_: object) -> int:
        raise OSError(number, os.strerror(number))

    monkeypatch.setattr(bpf, "syscall", refuse)
    with pytest.raises(kind) as caught:
        bpf.PerCpuValue(8, 2)
    assert word in caught.value.hint


@pytest.mark.root
@pytest.mark.kernel
def test_events_have_ids_of_their_own_and_are_not_inherited() -> None:
    first, second = open_event(ATTR, pid=0), open_event(ATTR, pid=0)
    try:
        enable(first)
        assert event_id(first) != event_id(second)
        assert not os.get_inheritable(first)
    finally:
        os.close(first)
        os.close(second)
