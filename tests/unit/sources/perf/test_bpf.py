"""The bpf system call as older kernels answer it: longer attributes are E2BIG, too much locked memory is EPERM."""

import errno
import os

import pytest

from necroscope.errors import PermissionMissing
from necroscope.sources.perf import bpf

# union bpf_attr of Linux 4.14, in which programs have no name.
OLD_ATTR_BYTES = 48


def test_a_program_is_loaded_without_its_name_where_programs_have_none(monkeypatch: pytest.MonkeyPatch) -> None:
    def old(_: str, command: int, buffer: object, size: int) -> int:
        assert command in (bpf._PROG_LOAD, bpf._RAW_TRACEPOINT_OPEN)
        if size > OLD_ATTR_BYTES:
            raise OSError(errno.E2BIG, os.strerror(errno.E2BIG))
        return os.open("/dev/null", os.O_RDONLY)

    monkeypatch.setattr(bpf, "syscall", old)
    bpf.RawTracepointProgram(bytes(8), "softirq_entry").close()


def test_a_refusal_names_the_capability_that_older_kernels_ask_for(monkeypatch: pytest.MonkeyPatch) -> None:
    def refused(*_: object) -> int:
        raise OSError(errno.EPERM, os.strerror(errno.EPERM))

    monkeypatch.setattr(bpf, "syscall", refused)
    with pytest.raises(PermissionMissing) as caught:
        bpf.MapValue(8)
    assert "CAP_SYS_ADMIN" in caught.value.hint
    assert "CAP_SYS_RESOURCE" in caught.value.hint
