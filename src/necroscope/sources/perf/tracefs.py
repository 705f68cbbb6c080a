"""Tracepoint ids and field offsets from tracefs, through a detached mount that a kill -9 cannot
leave behind.

`fsopen` + `fsmount` (Linux 5.2) give a mount that exists only as our descriptor; before that, or
without CAP_SYS_ADMIN, one that is already mounted is used. The kernel's format files say where each
field lies, so that no offset is assumed.
"""

import ctypes
import os
import re
from pathlib import Path
from typing import Final, NamedTuple

from necroscope.errors import SourceUnavailable
from necroscope.perf_abi.syscalls import syscall

_FSCONFIG_CMD_CREATE: Final = 6
_FSMOUNT_CLOEXEC: Final = 1
_FSOPEN_CLOEXEC: Final = 1
_MOUNTED: Final = ("sys/kernel/tracing", "sys/kernel/debug/tracing")
_FIELD: Final = re.compile(
    r"field:(?P<type>.*?)(?P<name>\w+)(?:\[[^\]]*\])?;\s*offset:(?P<offset>\d+);\s*size:(?P<size>\d+);"
)
_ID: Final = re.compile(r"^ID: (\d+)$", re.MULTILINE)


class Field(NamedTuple):
    offset: int
    size: int


class Tracepoint(NamedTuple):
    """One tracepoint as its format file describes it."""

    id: int
    fields: dict[str, Field]


def parse_format(text: str) -> Tracepoint:
    """events/SYSTEM/NAME/format (kernel/trace/trace_events.c)."""
    found = _ID.search(text)
    if found is None:
        raise SourceUnavailable("a tracepoint's format file has no ID line")
    fields = {
        match["name"]: Field(int(match["offset"]), int(match["size"]))
        for match in _FIELD.finditer(text)
    }
    return Tracepoint(int(found[1]), fields)


def read_tracepoints(names: tuple[str, ...], root: Path) -> dict[str, Tracepoint]:
    """The tracepoints by their names (`irq:softirq_raise`); one that is missing is
    SourceUnavailable.
    """
    directory = _open_tracefs(root)
    try:
        return {name: _read_tracepoint(directory, name) for name in names}
    finally:
        os.close(directory)


def _read_tracepoint(directory: int, name: str) -> Tracepoint:
    path = f"events/{name.replace(':', '/')}/format"
    try:
        descriptor = os.open(path, os.O_RDONLY | os.O_CLOEXEC, dir_fd=directory)
    except OSError as error:
        raise SourceUnavailable(f"cannot read tracepoint {name}: {error.strerror}") from None
    with os.fdopen(descriptor) as file:
        return parse_format(file.read())


def _open_tracefs(root: Path) -> int:
    for mounted in _MOUNTED:
        try:
            os.stat(root / mounted / "events")
            return os.open(root / mounted, os.O_RDONLY | os.O_DIRECTORY | os.O_CLOEXEC)
        except OSError:  # absent, or refused: the directory is for root only
            continue
    try:
        context = syscall("fsopen", ctypes.create_string_buffer(b"tracefs"), _FSOPEN_CLOEXEC)
        try:
            syscall("fsconfig", context, _FSCONFIG_CMD_CREATE, None, None, 0)
            return syscall("fsmount", context, _FSMOUNT_CLOEXEC, 0)
        finally:
            os.close(context)
    except OSError as error:
        raise SourceUnavailable(
            f"tracefs cannot be opened: {error.strerror}",
            "mount it at /sys/kernel/tracing and give CAP_DAC_READ_SEARCH, or give CAP_SYS_ADMIN",
        ) from None
