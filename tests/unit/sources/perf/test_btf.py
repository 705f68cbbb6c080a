"""BTF: a small one made by hand, damaged ones, and the running kernel's."""

import struct
from pathlib import Path

import pytest

from necroscope.errors import SourceUnavailable
from necroscope.sources.perf import btf

STRUCT, UNION, TYPEDEF, PTR, FUNC, FUNC_PROTO, INT = 4, 5, 8, 2, 12, 13, 1


class Written:
    """Types one after the other, counted from 1."""

    def __init__(self) -> None:
        self._types, self._strings = b"", b"\0"

    def add(self, kind: int, name: str = "", members: int = 0, target: int = 0) -> None:
        self._types += struct.pack("<III", self._text(name), kind << 24 | members, target)

    def member(self, name: str, target: int, offset_bytes: int) -> None:
        self._types += struct.pack("<III", self._text(name), target, offset_bytes * 8)

    def raw(self, data: bytes) -> None:
        self._types += data

    def bytes(self) -> bytes:
        head = struct.pack(
            "<HBBIIIII", 0xEB9F, 1, 0, 24, 0, len(self._types), len(self._types), len(self._strings)
        )
        return head + self._types + self._strings

    def _text(self, name: str) -> int:
        if not name:
            return 0
        self._strings += name.encode() + b"\0"
        return len(self._strings) - len(name) - 1


def small() -> bytes:
    """A task with a member in a structure without a name, and a tracepoint of two arguments."""
    written = Written()
    written.add(INT, "int", target=4)  # 1
    written.raw(bytes(4))
    written.add(STRUCT, "info", 1, 16)  # 2
    written.member("queued", 1, 8)
    written.add(STRUCT, "", 1, 32)  # 3
    written.member("sched_info", 2, 8)
    written.add(STRUCT, "task_struct", 2, 64)  # 4
    written.member("state", 1, 4)
    written.member("", 3, 16)
    written.add(FUNC_PROTO, "", 3)  # 5
    written.raw(bytes(24))
    written.add(PTR, target=5)  # 6
    written.add(TYPEDEF, "btf_trace_x", target=6)  # 7
    return written.bytes()


def test_a_member_of_a_structure_without_a_name_is_found() -> None:
    types = btf.parse(small(), ("task_struct", "btf_trace_x"))
    assert types.offset("task_struct", "sched_info.queued") == 16 + 8 + 8
    assert types.offset("task_struct", "state") == 4
    assert not types.has("task_struct", "blocker")


def test_a_tracepoint_has_one_argument_less_than_its_function() -> None:
    assert btf.parse(small(), ("btf_trace_x",)).tracepoint("x") == (7, 2)


def test_what_is_missing_is_named() -> None:
    with pytest.raises(SourceUnavailable, match="rq"):
        btf.parse(small(), ("rq",)).offset("rq", "clock")


@pytest.mark.parametrize(
    "rest",
    [
        struct.pack("<III", 0, 20 << 24, 0),
        struct.pack("<III", 0, 0, 0),
        struct.pack("<III", 0, STRUCT << 24 | 0xFFFF, 0),
        struct.pack("<II", 0, INT << 24),
    ],
    ids=["a kind of the future", "no kind", "more members than bytes", "cut"],
)
def test_a_type_that_cannot_be_passed_makes_all_of_it_unavailable(rest: bytes) -> None:
    written = Written()
    written.add(STRUCT, "task_struct", 0, 64)
    written.raw(rest)
    with pytest.raises(SourceUnavailable, match="cannot be read"):
        btf.parse(written.bytes(), ("task_struct",))


@pytest.mark.parametrize("cut", [0, 10, 30, 60])
def test_a_damaged_file_is_unavailable_and_nothing_worse(cut: int) -> None:
    with pytest.raises(SourceUnavailable):
        btf.parse(small()[:cut], ("task_struct",)).offset("task_struct", "state")


@pytest.mark.kernel
def test_the_running_kernel_says_where_a_task_keeps_its_name() -> None:
    if not Path("/sys/kernel/btf/vmlinux").exists():
        pytest.skip("this kernel has no BTF")
    types = btf.read(Path("/"), ("task_struct", "btf_trace_sched_switch"))
    assert types.offset("task_struct", "comm") > types.offset("task_struct", "pid") > 0
    assert types.tracepoint("sched_switch")[1] in (3, 4)
