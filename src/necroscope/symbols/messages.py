"""What recorder and lookup process say to each other: frames of a length and a marshalled tuple. Standard library only.

A request is (sequence, kind, items); for each item comes one answer (sequence, result), in order, as soon as it is known: so the
recorder knows which item the lookup process hangs on. Both ends are the same Python, hence marshal. The first frame of a lookup
process is (READY, None).
"""

import marshal
import struct
from enum import IntEnum
from typing import Any, Final, NamedTuple

READY: Final = 0
MESSAGE_LIMIT_BYTES: Final = 64 << 20
# Functions are asked for by blocks of 16 KiB: who runs one function runs its neighbours soon, and then nothing has to be asked.
BLOCK_BITS: Final = 14
_LENGTH: Final = struct.Struct("<I")


class Kind(IntEnum):
    """What is asked; the type of an item and of its answer in brackets."""

    USER = 1  # UserRequest -> ModuleAnswer
    JIT = 2  # (pid, addresses) -> list of function or None
    VDSO = 3  # (offsets) -> list of function or None
    MAPS = 4  # (pid,) -> list of Mapping, or None
    TASK = 5  # (pid, tid, first argument) -> TaskDescription
    DEMANGLE = 6  # (symbols) -> list of names as people write them


class UserRequest(NamedTuple):
    """Blocks of a file that a process has mapped; `path` is the kernel's text, odd bytes as surrogates (os.fsdecode)."""

    pid: int
    path: str
    device_major: int
    device_minor: int
    inode: int
    blocks: tuple[int, ...]


class FunctionBlock(NamedTuple):
    """Where in a block, counted from its start, which function begins; None where none is. The first begins at 0.

    Names of C++ and Rust are as the linker has them: few of a block are ever shown, and those are demangled by a question.
    """

    starts: list[int]
    names: list[str | None]


class ModuleAnswer(NamedTuple):
    """The functions of the blocks asked for."""

    build_id: str | None
    functions: list[FunctionBlock]


NO_FUNCTION: Final = FunctionBlock([0], [None])


def unknown_module(request: UserRequest) -> ModuleAnswer:
    return ModuleAnswer(None, [NO_FUNCTION] * len(request.blocks))


class TaskDescription(NamedTuple):
    """A thread as /proc shows it; None is unknown. `priority` is the real-time priority, or the nice value."""

    argv0: str | None = None
    comm: str | None = None
    state: str | None = None
    policy: str | None = None
    priority: int | None = None
    cpus_allowed: str | None = None
    cgroup: str | None = None
    file: str | None = None
    executable: str | None = None


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
            messages.append(marshal.loads(memoryview(self._buffer)[_LENGTH.size : _LENGTH.size + length]))
            del self._buffer[: _LENGTH.size + length]
        return messages
