"""What recorder and lookup process say to each other: frames of a length and a marshalled tuple.
Standard library only.

A request is (sequence, kind, items); for each item comes one answer (sequence, result), in order,
as soon as it is known: so the recorder knows which item the lookup process hangs on. Both ends are
the same Python, hence marshal. The first frame of a lookup process is (READY, None).
"""

import marshal
import struct
from array import array
from collections.abc import Sequence
from enum import IntEnum
from itertools import accumulate
from typing import Any, Final, NamedTuple

from necroscope.symbols.image import NAME_LIMIT_BYTES

READY: Final = 0
MESSAGE_LIMIT_BYTES: Final = 64 << 20
# Functions are asked for by blocks of 16 KiB: who runs one function runs its neighbours soon, and
# then nothing has to be asked.
BLOCK_BITS: Final = 14
_LENGTH: Final = struct.Struct("<I")


class RequestKind(IntEnum):
    """What is asked; the type of an item and of its answer in brackets."""

    USER = 1  # UserRequest -> ModuleAnswer
    JIT = 2  # (pid, addresses) -> list of function or None
    MAPS = 4  # (pid,) -> list of Mapping and whether there are more, or None
    TASK = 5  # (pid, tid, first argument) -> TaskDescription
    DEMANGLE = 6  # (symbols) -> list of names as people write them
    VARIABLES = 7  # (pid, names) -> ProcessVariables


class UserRequest(NamedTuple):
    """Blocks of a file that a process has mapped; `path` is the kernel's text, odd bytes as
    surrogates (os.fsdecode).
    """

    pid: int
    path: str
    device_major: int
    device_minor: int
    inode: int
    blocks: tuple[int, ...]


class FunctionBlock(NamedTuple):
    """The functions of a block as the native core keeps them: arrays of native integers, and all
    names in one text.

    `starts` (16 bits each) says where in the block, counted from its start, each function begins;
    the first begins at 0. `name_ends` (32 bits each) says where in `names` the name of each ends;
    an empty name stands for no function. Names are as the linker has them: few of a block are ever
    shown, and those are cleaned and demangled then.
    """

    starts: bytes
    name_ends: bytes
    names: bytes


def pack_block(functions: Sequence[tuple[int, bytes]]) -> FunctionBlock:
    """From where each function begins in its block, and its name."""
    names = [name[:NAME_LIMIT_BYTES] for _, name in functions]
    starts, ends = (
        array("H", [start for start, _ in functions]),
        array("I", accumulate(map(len, names))),
    )
    return FunctionBlock(starts.tobytes(), ends.tobytes(), b"".join(names))


def unpack_block(block: FunctionBlock) -> list[tuple[int, bytes]]:
    starts, ends = array("H", block.starts), array("I", block.name_ends)
    return [
        (start, block.names[begin:end])
        for start, begin, end in zip(starts, [0, *ends[:-1]], ends, strict=True)
    ]


class ModuleAnswer(NamedTuple):
    """The functions of the blocks asked for."""

    build_id: str | None
    functions: list[FunctionBlock]


NO_FUNCTION: Final = pack_block([(0, b"")])


def unknown_module(request: UserRequest) -> ModuleAnswer:
    return ModuleAnswer(None, [NO_FUNCTION] * len(request.blocks))


class TaskDescription(NamedTuple):
    """A thread as /proc shows it; None is unknown. `priority` is the real-time priority, or the
    nice value.
    """

    argv0: str | None = None
    comm: str | None = None
    state: str | None = None
    policy: str | None = None
    priority: int | None = None
    cpus_allowed: str | None = None
    cgroup: str | None = None
    file: str | None = None
    executable: str | None = None


class ProcessVariables(NamedTuple):
    """The variables that were asked for, as they were when the program was started; the file behind
    its standard error; None if they may not be read.
    """

    variables: dict[str, str] | None
    log: str | None
    cgroup: str | None


class FrameError(Exception):
    """A frame longer than any of ours."""


def pack(message: tuple[Any, ...]) -> bytes:
    content = marshal.dumps(message)
    if len(content) > MESSAGE_LIMIT_BYTES:
        raise FrameError(f"message of {len(content)} bytes")
    return _LENGTH.pack(len(content)) + content


class FrameReader:
    """Takes bytes as they come, gives whole messages."""

    def __init__(self) -> None:
        self._buffer = bytearray()

    def feed(self, content: bytes) -> list[tuple[Any, ...]]:
        self._buffer += content
        messages: list[tuple[Any, ...]] = []
        while len(self._buffer) >= _LENGTH.size:
            (length,) = _LENGTH.unpack_from(self._buffer)
            if length > MESSAGE_LIMIT_BYTES:
                raise FrameError(f"frame of {length} bytes")
            if len(self._buffer) < _LENGTH.size + length:
                break
            messages.append(
                marshal.loads(memoryview(self._buffer)[_LENGTH.size : _LENGTH.size + length])
            )
            del self._buffer[: _LENGTH.size + length]
        return messages
