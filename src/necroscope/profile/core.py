"""The native core as one typed object: records in, questions out, answers in, rows out. Names and
policy are its callers'.
"""

import struct
from array import array
from collections.abc import Collection, Iterator, Sequence
from ctypes import (
    Array,
    byref,
    c_int32,
    c_uint32,
    c_uint64,
    create_string_buffer,
    string_at,
)
from enum import IntEnum
from pathlib import Path
from typing import Final, NamedTuple

from necroscope.errors import NecroscopeError
from necroscope.model.idle import IDLE_FUNCTIONS
from necroscope.native import LIBRARY
from necroscope.perf_abi.sample_layout import SampleLayout
from necroscope.profile.library import (
    QUESTION,
    ModuleKey,
    ModuleView,
    NativeEvent,
    NativeLimits,
    NativeRing,
    NativeView,
    load,
)
from necroscope.symbols.function_index import FileFunctions
from necroscope.symbols.messages import FunctionBlock
from necroscope.symbols.process_maps import Mapping

KERNEL: Final = 0
"""The module of the kernel; its blocks are counted by address."""
EVERY: Final = 0xFFFF_FFFF
_NAME_BYTES: Final = 16
_MOST_BOUNDED: Final = 64
_QUESTION: Final = struct.Struct(QUESTION)
_FRAME: Final = struct.Struct(
    "<QQIIII"
)  # struct frame_view: name, offset, module, kind, length of the name, whether it has an offset
_PASSED_ON: Final = struct.Struct("<QiI")  # time, cpu, size, then the record


class QuestionKind(IntEnum):
    NAME = 1
    CGROUP = 2
    MAPPINGS = 3
    BLOCK = 4
    PLACE = 5


class Question(NamedTuple):
    """`where` is a block's number or an address; `first` to `last` are the blocks of the mapping
    around it.

    `module` is the file whose block is asked for; of a PLACE it is the image in which the address
    lies.
    """

    kind: int
    pid: int
    tid: int
    parent: int
    module: int
    reserved: int
    where: int
    first: int
    last: int


class FunctionKind(IntEnum):
    KERNEL = 0
    USER = 1
    JIT = 2
    UNKNOWN = 3
    GUEST = 4
    BOUNDED = 5
    GIVEN = 6


class CoreFrame(NamedTuple):
    """A frame of the segment, before it has a readable name; `kind` is a FunctionKind, `offset`
    only where there is no name.
    """

    kind: int
    module: int
    name: bytes
    offset: int | None


class CoreModule(NamedTuple):
    path: bytes
    device_major: int
    device_minor: int
    inode: int
    build_id: str | None


class PassedOn(NamedTuple):
    """A record that is not about stacks: losses, kernel code, tracepoints, cgroups."""

    time_ns: int
    cpu: int
    record: bytes


class CoreLimits(NamedTuple):
    """Bytes in all and for one tenant; stacks and nameless functions of one tenant in a segment;
    stacks of all.
    """

    limit_bytes: int
    tenant_bytes: int
    tenant_stacks: int
    tenant_unnamed: int
    most_stacks: int


class Core:
    """One profile under way. A turn is `replay`, answers to `questions` with `resume` between them,
    `finish`, then the rows.
    """

    def __init__(
        self,
        limits: CoreLimits,
        *,
        asks: bool,
        has_time: bool = True,
        has_trailer: bool = True,
        idle_functions: Collection[str] = IDLE_FUNCTIONS,
        library: Path = LIBRARY,
    ) -> None:
        self._library = load(library)
        idle = b"".join(name.encode() + b"\0" for name in sorted(idle_functions))
        self._handle = self._library.profile_new(
            byref(NativeLimits(*limits, asks, has_time, has_trailer)), idle, len(idle)
        )
        if not self._handle:
            raise NecroscopeError(f"no memory for a profile of {limits.limit_bytes} bytes")
        self._key = ModuleKey()
        self.view = NativeView()
        self._look()

    def close(self) -> None:
        if self._handle:
            self._library.profile_free(self._handle)
            self._handle = None

    def add_event(
        self, layout: SampleLayout, *, ip_register: int = 64, is_passed_on: bool = False
    ) -> int:
        """Number of an event whose samples look like this."""
        registers = (layout.user_registers, layout.interrupt_registers)
        event = NativeEvent(
            layout.sample_type,
            layout.read_format,
            layout.branch_sample_type,
            *registers,
            ip_register,
            is_passed_on,
        )
        number = int(self._library.profile_add_event(self._handle, byref(event)))
        if number < 0:
            raise NecroscopeError("more events than a profile can have")
        return number

    def add_id(self, event_id: int, event: int) -> None:
        if self._library.profile_add_id(self._handle, event_id, event):
            raise NecroscopeError("more event ids than a profile can have")

    # Records in.

    def drain(self, rings: "Array[NativeRing]") -> None:
        self._library.profile_drain(self._handle, rings, len(rings))

    def feed(self, content: bytes, cpu: int = -1) -> int:
        """Queue whole records; how many bytes they were. It ends before what is not a plain
        record.
        """
        taken = int(self._library.profile_feed(self._handle, content, len(content), cpu))
        self._look()
        return taken

    # The turn.

    def replay(self, until_ns: int, offset_ns: int = 0) -> None:
        """All records up to a time; `offset_ns` is added to the times of rows."""
        self._library.profile_replay(self._handle, until_ns, offset_ns)
        self._look()

    def resume(self, *, is_forced: bool = False) -> int:
        """Rows that waited for answers; how many still wait."""
        waiting = int(self._library.profile_resume(self._handle, is_forced))
        self._look()
        return waiting

    def finish(self) -> None:
        self._library.profile_finish(self._handle)
        self._look()

    def questions(self) -> list[Question]:
        content = self._bytes(self.view.questions, self.view.question_count * _QUESTION.size)
        return [Question._make(fields) for fields in _QUESTION.iter_unpack(content)]

    def passed_on(self) -> Iterator[PassedOn]:
        content, at = self._bytes(self.view.passed_on, self.view.passed_on_bytes), 0
        while at < len(content):
            time_ns, cpu, size = _PASSED_ON.unpack_from(content, at)
            at += _PASSED_ON.size
            yield PassedOn(time_ns, cpu, content[at : at + size])
            at += size

    def take_bounded(self) -> list[tuple[int, int]]:
        """Tenants whose frames were bounded since the last call: the number of the cgroup, -1 if
        unknown, and how many frames.
        """
        cgroups, counts = (c_int32 * _MOST_BOUNDED)(), (c_uint32 * _MOST_BOUNDED)()
        found = self._library.profile_take_bounded(self._handle, cgroups, counts, _MOST_BOUNDED)
        return list(zip(cgroups[:found], counts[:found], strict=True))

    # Answers.

    def set_name(self, tid: int, name: bytes) -> None:
        self._library.profile_set_name(self._handle, tid, name, len(name))

    def set_cgroup(self, pid: int, cgroup: int) -> None:
        """A number of the caller's own, -1 if it is not known; it is also the tenant to which
        memory is charged.
        """
        self._library.profile_set_cgroup(self._handle, pid, cgroup)

    def set_mappings(
        self, pid: int, mappings: Sequence[Mapping] | None, *, is_bounded: bool = False
    ) -> None:
        """All there are; None if they are unknown."""
        self._library.profile_begin_mappings(self._handle, pid)
        key, add = self._key, self._library.profile_map
        for start, end, offset, major, minor, inode, path in mappings or ():
            key.major, key.minor, key.inode = major, minor, inode
            name = path.encode("utf-8", "surrogateescape")
            add(self._handle, pid, start, end, offset, byref(key), name, len(name))
        self._library.profile_end_mappings(self._handle, pid, is_bounded)

    def learn_block(self, module: int, block: int, functions: FunctionBlock) -> None:
        """What the lookup process answered; an answer that cannot be one counts as no functions."""
        starts, name_ends, names = functions
        count = len(starts) // 2 if 2 * len(starts) == len(name_ends) else 0
        self._library.profile_learn_block(
            self._handle, module, block, count, starts, name_ends, names, len(names)
        )

    def learn_symbols(
        self, module: int, blocks: "array[int]", functions: FileFunctions | None, descriptor: int
    ) -> None:
        """Blocks of a file that were asked for; None if the file is unknown."""
        tables: tuple[object, ...] = (None, None, 0, b"", 0)
        if functions is not None:
            segments, count = functions.segments, len(functions.tables)
            names = functions.strings
            tables = functions.handles, names, count, segments.packed, segments.count
        self._library.profile_learn_symbols(
            self._handle, module, blocks.tobytes(), len(blocks), *tables, descriptor
        )

    def learn_place(self, image: int, address: int, name: bytes) -> None:
        self._library.profile_learn_place(self._handle, image, address, name, len(name))

    # Forgetting.

    def forget_blocks(self, module: int = EVERY, outside: tuple[int, int] = (0, 0)) -> None:
        """Functions of a module, but for blocks from the first of `outside` to before the
        second.
        """
        self._library.profile_forget_blocks(self._handle, module, EVERY, *outside)

    def forget_block(self, module: int, block: int) -> None:
        """One block, so that it is asked for again."""
        self._library.profile_forget_block(self._handle, module, block)

    def forget_cgroups(self) -> None:
        self._library.profile_forget_cgroups(self._handle)

    def forget_tasks(self) -> None:
        self._library.profile_forget_tasks(self._handle)

    def start_segment(self, most_functions: int) -> bool:
        """Numbers of frames and stacks begin again; with more functions than these, names are
        learnt again too.

        True: there were too many modules, and those that are left have other numbers now.
        """
        has_moved = bool(self._library.profile_start_segment(self._handle, most_functions))
        self._look()
        return has_moved

    # What rows are made of.

    @property
    def row_count(self) -> int:
        return int(self.view.rows.contents.count)

    def column(self, name: str, item_bytes: int) -> bytes:
        rows = self.view.rows.contents
        return self._bytes(getattr(rows, name), rows.count * item_bytes)

    def names(self) -> list[bytes]:
        """The texts that `name` in rows counts."""
        content = self._bytes(self.view.names, self.view.name_count * _NAME_BYTES)
        return [
            content[at : at + _NAME_BYTES].rstrip(b"\0")
            for at in range(0, len(content), _NAME_BYTES)
        ]

    def cgroups(self) -> tuple[int, ...]:
        """The caller's numbers that `cgroup` in rows counts."""
        count = self.view.cgroup_count
        return struct.unpack(f"<{count}i", self._bytes(self.view.cgroups, 4 * count))

    def stacks(self, first: int = 0) -> tuple[bytes, bytes]:
        """Parents and frames of the segment's stacks from a number on."""
        count = self.view.node_count - first
        parents, frames = (
            pointer + 4 * first if pointer else 0
            for pointer in (self.view.parents, self.view.frames)
        )
        return self._bytes(parents, 4 * count), self._bytes(frames, 4 * count)

    def frames(self, first: int, count: int | None = None) -> list[CoreFrame]:
        """The segment's frames from a number on, all or this many."""
        left = self.view.frame_count - first
        count = left if count is None else min(count, left)
        if count <= 0:
            return []
        views, text_bytes = create_string_buffer(_FRAME.size * count), c_uint64()
        self._library.profile_frames(self._handle, first, count, views)
        text_at = self._library.profile_text(self._handle, byref(text_bytes)) or 0
        return [
            CoreFrame(
                kind,
                module,
                string_at(text_at + name, length) if length else b"",
                offset if has_offset else None,
            )
            for name, offset, module, kind, length, has_offset in _FRAME.iter_unpack(views.raw)
        ]

    def module(self, number: int) -> CoreModule:
        found = ModuleView()
        if self._library.profile_module(self._handle, number, byref(found)):
            raise IndexError(f"module {number}")
        build_id = (
            string_at(found.build_id, found.build_id_length).hex()
            if found.build_id_length
            else None
        )
        return CoreModule(
            string_at(found.path, found.path_length),
            found.major,
            found.minor,
            found.inode,
            build_id,
        )

    def _look(self) -> None:
        self._library.profile_view(self._handle, byref(self.view))

    @staticmethod
    def _bytes(pointer: int | None, count: int) -> bytes:
        return string_at(pointer, count) if pointer and count > 0 else b""
