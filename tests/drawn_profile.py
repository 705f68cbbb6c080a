"""A profile drawn as text: records of named processes go into the native core, and rows come out as
one line each.

A chain is written as people read a stack, outermost first, the kernel's part behind `>`: `main work
> do_syscall_64 vfs_read`. Each user function lies in /bin/NAME of its process unless the chain says
`libc.so:read`; a number is an address of nothing.
"""

import ctypes
import struct
from collections import defaultdict
from typing import Any, Final

from necroscope.perf_abi.event_attr import (
    SAMPLE_CALLCHAIN,
    SAMPLE_CPU,
    SAMPLE_IP,
    SAMPLE_TID,
    SAMPLE_TIME,
)
from necroscope.perf_abi.sample_layout import SampleLayout
from necroscope.profile.core import (
    Core,
    CoreFrame,
    CoreLimits,
    FunctionKind,
    Question,
    QuestionKind,
)
from necroscope.profile.library import NativeRing
from necroscope.symbols.messages import BLOCK_BITS, FunctionBlock, pack_block
from necroscope.symbols.process_maps import Mapping

MMAP2, LOST, COMM, EXIT, FORK, SAMPLE, KSYMBOL = 10, 2, 3, 4, 7, 9, 17
EXEC: Final = 1 << 13
KERNEL_MARK, USER_MARK, GUEST_MARK = ((1 << 64) - below for below in (128, 512, 2176))
ROOMY: Final = CoreLimits(
    64 << 20, 16 << 20, tenant_stacks=100_000, tenant_unnamed=1000, most_stacks=1_000_000
)
LAYOUT: Final = SampleLayout(SAMPLE_IP | SAMPLE_TID | SAMPLE_TIME | SAMPLE_CPU | SAMPLE_CALLCHAIN)
_KERNEL: Final = 0xFFFF_FFFF_8100_0000
_FUNCTION_BYTES: Final = 0x100
_FILE_BYTES: Final = 0x10000
# Where files are mapped, one behind the other, in every process.
_FIRST_FILE: Final = 0x40_0000


def pack_record(kind: int, body: bytes, misc: int = 0) -> bytes:
    return struct.pack("<IHH", kind, misc, 8 + len(body)) + body


def trailer(pid: int, tid: int, time: int, cpu: int = 0) -> bytes:
    """`struct sample_id` of LAYOUT."""
    return struct.pack("<iiQII", pid, tid, time, cpu, 0)


def padded(text: bytes) -> bytes:
    return text + bytes(8 - len(text) % 8)


class DrawnProfile:
    """`feed` takes records as they are made; `turn` replays, answers every question by what was
    drawn, and reads the rows.
    """

    def __init__(
        self, limits: CoreLimits = ROOMY, *, asks: bool = True, answers: bool = True
    ) -> None:
        self.core = Core(limits, asks=asks)
        self.core.add_event(LAYOUT)
        self.answers = answers
        self.asked: list[Question] = []
        self.names: dict[int, str] = {}
        self.cgroups: dict[int, int] = {}
        self.mapped: dict[int, list[Mapping]] = {}
        self.jitted: dict[int, bytes] = {}
        self.nameless: set[str] = set()
        self.is_feeding = True
        self._places: defaultdict[str, list[str]] = defaultdict(list)
        self._files: list[str] = []

    # Where things are.

    def file_start(self, path: str) -> int:
        if path not in self._files:
            self._files.append(path)
        return _FIRST_FILE + self._files.index(path) * _FILE_BYTES

    def address(self, path: str, function: str) -> int:
        """In the middle of it; `path` is "" for the kernel."""
        places = self._places[path]
        if function not in places:
            places.append(function)
        start = _KERNEL if path == "" else self.file_start(path)
        return start + places.index(function) * _FUNCTION_BYTES + _FUNCTION_BYTES // 2

    def mapping(self, path: str, start: int | None = None, size: int = _FILE_BYTES) -> Mapping:
        return Mapping(
            self.file_start(path) if start is None else start,
            (start or self.file_start(path)) + size,
            0,
            8,
            1,
            7,
            path,
        )

    def chain(self, pid: int, text: str) -> list[int]:
        user, _, kernel = text.partition(">")
        words: list[int] = []
        if kernel.split():
            words += [
                KERNEL_MARK,
                *(
                    self._word("", name, index)
                    for index, name in enumerate(reversed(kernel.split()))
                ),
            ]
        if user.split():
            words += [
                USER_MARK,
                *(
                    self._word(f"/bin/{self.names[pid]}", name, at)
                    for at, name in enumerate(reversed(user.split()))
                ),
            ]
        return words

    def _word(self, path: str, name: str, index: int) -> int:
        if name[0].isdigit():
            return int(name, 0)
        file, _, function = name.rpartition(":")
        # All but the innermost are return addresses, behind their call.
        return self.address(f"/lib/{file}" if file else path, function) + (index > 0)

    # Records.

    def feed(self, record: bytes) -> bytes:
        if self.is_feeding:
            assert self.core.feed(record) == len(record)
        return record

    def runs(self, pid: int, name: str, cgroup: int = -1) -> None:
        """A process that was there before: what is asked about it gets these answers."""
        self.names[pid], self.cgroups[pid] = name, cgroup
        self.mapped.setdefault(pid, [self.mapping(f"/bin/{name}"), self.mapping("/lib/libc.so")])

    def sample(self, time: int, pid: int, text: str, cpu: int = 0, tid: int | None = None) -> bytes:
        return self.sample_words(time, pid, self.chain(pid, text), cpu, tid)

    def sample_words(
        self, time: int, pid: int, words: list[int], cpu: int = 0, tid: int | None = None
    ) -> bytes:
        head = struct.pack(
            "<QiiQIIQ", 0, pid, pid if tid is None else tid, time, cpu, 0, len(words)
        )
        return self.feed(pack_record(SAMPLE, head + struct.pack(f"<{len(words)}Q", *words), misc=2))

    def fork(self, time: int, child: int, parent: int) -> bytes:
        return self.feed(
            pack_record(
                FORK,
                struct.pack("<iiiiQ", child, parent, child, parent, time)
                + trailer(parent, parent, time),
            )
        )

    def thread(self, time: int, pid: int, tid: int) -> bytes:
        """A process starts another thread."""
        body = struct.pack("<iiiiQ", pid, pid, tid, pid, time)
        return self.feed(pack_record(FORK, body + trailer(pid, pid, time)))

    def exit(self, time: int, pid: int) -> bytes:
        return self.feed(
            pack_record(EXIT, struct.pack("<iiiiQ", pid, 1, pid, 1, time) + trailer(pid, pid, time))
        )

    def execs(self, time: int, pid: int, name: str) -> bytes:
        """Its new name, and the mapping of its program."""
        self.names[pid] = name
        comm = self.feed(
            pack_record(
                COMM,
                struct.pack("<ii", pid, pid) + padded(name.encode()) + trailer(pid, pid, time),
                EXEC,
            )
        )
        return comm + self.maps(time, pid, f"/bin/{name}")

    def maps(
        self,
        time: int,
        pid: int,
        path: str,
        start: int | None = None,
        size: int = _FILE_BYTES,
        inode: int = 7,
    ) -> bytes:
        start = self.file_start(path) if start is None else start
        body = struct.pack("<iiQQQIIQQII", pid, pid, start, size, 0, 8, 1, inode, 0, 5, 2) + padded(
            path.encode()
        )
        return self.feed(pack_record(MMAP2, body + trailer(pid, pid, time)))

    # A turn.

    def turn(self, until: int = (1 << 64) - 1, rounds: int = 5) -> list[str]:
        self.core.replay(until)
        for _ in range(rounds):
            questions = self.core.questions()
            self.asked += questions
            if not questions or not self.answers:
                break
            for question in questions:
                self._answer(question)
            if not self.core.resume():
                break
        self.core.finish()
        return [self._row(number) for number in range(self.core.row_count)]

    def _answer(self, question: Question) -> None:
        core = self.core
        if question.kind == QuestionKind.NAME:
            core.set_name(
                question.tid,
                self.names.get(question.tid, self.names.get(question.pid, "?")).encode(),
            )
        elif question.kind == QuestionKind.CGROUP:
            core.set_cgroup(question.pid, self.cgroups.get(question.pid, -1))
        elif question.kind == QuestionKind.MAPPINGS:
            core.set_mappings(question.pid, self.mapped.get(question.pid))
        elif question.kind == QuestionKind.BLOCK:
            core.learn_block(question.module, question.where, self._block(question))
        else:
            core.learn_place(question.module, question.where, self.jitted.get(question.where, b""))

    def _block(self, question: Question) -> FunctionBlock:
        path = "" if question.module == 0 else self.core.module(question.module).path.decode()
        first = (question.where << BLOCK_BITS) - (_KERNEL if path == "" else 0)
        last, functions = first + (1 << BLOCK_BITS), [(0, b"")]
        for index, name in enumerate(self._places[path]):
            if first <= index * _FUNCTION_BYTES < last and name not in self.nameless:
                functions.append((index * _FUNCTION_BYTES - first, name.encode()))
        return pack_block(
            functions[1:] if len(functions) > 1 and functions[1][0] == 0 else functions
        )

    def _row(self, number: int) -> str:
        core = self.core

        def column(name: str, item: str) -> int:
            return memoryview(core.column(name, struct.calcsize(item))).cast(item)[number]

        name = core.names()[column("name", "i")].decode()
        time, cpu, tid = column("time", "q"), column("cpu", "h"), column("tid", "i")
        return f"{time} cpu{cpu} {name}/{tid}: {self.stack(column('stack', 'i'))}"

    def stack(self, number: int) -> str:
        parents, frames = (memoryview(buffer).cast("i") for buffer in self.core.stacks())
        found: list[CoreFrame] = []
        while number >= 0:
            found.insert(0, self.core.frames(frames[number])[0])
            number = parents[number]
        kernel = [
            self._frame(one)
            for one in found
            if one.kind in (FunctionKind.KERNEL, FunctionKind.GUEST)
        ]
        user = [
            self._frame(one)
            for one in found
            if one.kind not in (FunctionKind.KERNEL, FunctionKind.GUEST)
        ]
        return " ".join([*user, *([">", *kernel] if kernel else [])])

    def _frame(self, frame: CoreFrame) -> str:
        fixed: dict[Any, str] = {
            FunctionKind.UNKNOWN: "?",
            FunctionKind.GUEST: "[guest]",
            FunctionKind.BOUNDED: "[bounded]",
        }
        if frame.kind in fixed:
            return fixed[frame.kind]
        if frame.name:
            return (
                f"jit:{frame.name.decode()}"
                if frame.kind == FunctionKind.JIT
                else frame.name.decode()
            )
        path = self.core.module(frame.module).path.decode().rpartition("/")[2]
        return path if frame.offset is None else f"{path}+{frame.offset:#x}"


class DrawnRing:
    """A ring as the kernel maps it: a control page, and the data behind it."""

    PAGE_BYTES: Final = 4096
    HEAD: Final = 1024

    def __init__(self, size: int = 4096, cpu: int = 0, tail: int = 0) -> None:
        self.memory = (ctypes.c_uint64 * ((self.PAGE_BYTES + size) // 8))()
        self.ring = NativeRing(ctypes.addressof(self.memory), size, self.PAGE_BYTES, cpu, 0)
        self.size, self.head = size, tail
        self.memory[self.HEAD // 8] = self.memory[self.HEAD // 8 + 1] = tail

    def write(self, record: bytes) -> None:
        data = memoryview(self.memory).cast("B")
        for at, value in enumerate(record):
            data[self.PAGE_BYTES + (self.head + at) % self.size] = value
        self.head += len(record)
        self.memory[self.HEAD // 8] = self.head

    @property
    def tail(self) -> int:
        return int(self.memory[self.HEAD // 8 + 1])


def drain(core: Core, *rings: DrawnRing) -> None:
    core.drain((NativeRing * len(rings))(*(ring.ring for ring in rings)))
