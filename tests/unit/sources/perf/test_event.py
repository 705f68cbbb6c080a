"""What is said when the kernel refuses a perf event."""

import os

import pytest

from necroscope.errors import NecroscopeError, PermissionMissing, SourceUnavailable
from necroscope.perf_abi import event_attr as abi
from necroscope.perf_abi.event_attr import EventAttr
from necroscope.sources.perf import bpf, event
from necroscope.sources.perf.event import enable, event_id, open_event

ATTR = EventAttr(abi.TYPE_SOFTWARE, abi.SW_DUMMY, 0, abi.FLAG_DISABLED)


@pytest.mark.parametrize(
    ("number", "kind", "word"),
    [
        (1, PermissionMissing, "CAP_PERFMON"),
        (13, PermissionMissing, "CAP_PERFMON"),
        (24, SourceUnavailable, "LimitNOFILE"),
        (38, SourceUnavailable, "CONFIG_PERF_EVENTS"),
    ],
)
def test_a_refusal_says_the_way_out(monkeypatch: pytest.MonkeyPatch, number: int, kind: type[NecroscopeError], word: str) -> None:
    def refuse(*_: object) -> int:
        raise OSError(number, os.strerror(number))

    monkeypatch.setattr(event, "syscall", refuse)
    monkeypatch.setattr(event, "_has_capability", lambda _: False)
    with pytest.raises(kind) as caught:
        open_event(ATTR, pid=0)
    assert word in caught.value.hint


def test_a_refusal_in_spite_of_the_capability_names_the_greater_one(monkeypatch: pytest.MonkeyPatch) -> None:
    def refuse(*_: object) -> int:
        raise OSError(13, os.strerror(13))

    monkeypatch.setattr(event, "syscall", refuse)
    monkeypatch.setattr(event, "_has_capability", lambda number: number == 38)
    with pytest.raises(PermissionMissing, match="CAP_PERFMON is not enough here") as caught:
        open_event(ATTR, pid=0)
    assert caught.value.hint == "sysctl kernel.perf_event_paranoid=2, or give CAP_SYS_ADMIN"


def test_other_errors_are_the_kernels_own(monkeypatch: pytest.MonkeyPatch) -> None:
    def refuse(*_: object) -> int:
        raise OSError(22, "Invalid argument")

    monkeypatch.setattr(event, "syscall", refuse)
    with pytest.raises(OSError, match="Invalid argument"):
        open_event(ATTR, pid=0)


@pytest.mark.parametrize(
    ("number", "kind", "word"), [(1, PermissionMissing, "CAP_BPF"), (38, SourceUnavailable, "CONFIG_BPF_SYSCALL")]
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
