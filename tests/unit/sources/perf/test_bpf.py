"""The bpf system call as older kernels answer it: longer attributes are E2BIG, too much locked
memory is EPERM.
"""

import errno
import os

import pytest

from necroscope.errors import PermissionMissing
from necroscope.sources.perf import bpf

# union bpf_attr of Linux 4.14, in which programs have no name.
OLD_ATTR_BYTES = 48


def test_a_program_is_loaded_without_its_name_where_programs_have_none(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    def old(_: str, command: int, buffer: object, size: int) -> int:
        assert command in (bpf._PROG_LOAD, bpf._RAW_TRACEPOINT_OPEN)
        if size > OLD_ATTR_BYTES:
            raise OSError(errno.E2BIG, os.strerror(errno.E2BIG))
        return os.open("/dev/null", os.O_RDONLY)

    monkeypatch.setattr(bpf, "syscall", old)
    bpf.RawTracepointProgram(bytes(8), "softirq_entry").close()


def test_a_refusal_names_the_capability_that_older_kernels_ask_for(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    def refused(*_: object) -> int:
        raise OSError(errno.EPERM, os.strerror(errno.EPERM))

    monkeypatch.setattr(bpf, "syscall", refused)
    with pytest.raises(PermissionMissing) as caught:
        bpf.MapValue(8)
    assert "CAP_SYS_ADMIN" in caught.value.hint
    assert "CAP_SYS_RESOURCE" in caught.value.hint


def test_a_program_that_the_verifier_does_not_accept_is_not_a_missing_capability(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    def rejected(*_: object) -> int:
        raise OSError(errno.EACCES, os.strerror(errno.EACCES))

    monkeypatch.setattr(bpf, "syscall", rejected)
    with pytest.raises(OSError, match="Permission denied"):
        bpf.RawTracepointProgram(bytes(8), "softirq_entry")


@pytest.mark.root
@pytest.mark.kernel
def test_a_map_is_read_and_cleared_alike_by_calls_and_as_shared_memory() -> None:
    shared = bpf.MapValue(24)
    assert shared._memory is not None
    shared._memory[8:16] = b"raised\0\0"
    by_calls = bpf.MapValue(24)
    by_calls._element = shared.descriptor.to_bytes(4, "little") + by_calls._element[4:]
    by_calls._memory, memory = None, by_calls._memory
    assert by_calls.read() == shared.read() == bytes(8) + b"raised\0\0" + bytes(8)
    shared.clear()
    assert by_calls.read() == bytes(24)
    by_calls._memory = memory
    for value in (shared, by_calls):
        value.close()


@pytest.mark.root
@pytest.mark.kernel
def test_a_map_is_read_by_calls_where_the_kernel_cannot_share_it(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    asked: list[int] = []
    create = bpf._bpf

    def old(command: int, attr: bytes) -> int:
        if command == bpf._MAP_CREATE:
            asked.append(int.from_bytes(attr[16:20], "little"))
            if asked[-1]:
                raise OSError(errno.EINVAL, os.strerror(errno.EINVAL))
        return create(command, attr)

    monkeypatch.setattr(bpf, "_bpf", old)
    value = bpf.MapValue(24)
    assert (asked, value.read()) == ([bpf._MAP_MAPPABLE, 0], bytes(24))
    value.close()
