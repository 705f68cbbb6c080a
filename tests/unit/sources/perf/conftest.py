"""Records of a perf ring built byte by byte, as linux/perf_event.h lays them out, and a lookup that
answers by rule.
"""

import ctypes
import mmap
import struct
from collections.abc import Callable, Sequence
from pathlib import Path

import pytest
from tests.unit.sources.perf.sampled_node import Node

from necroscope.perf_abi import records
from necroscope.perf_abi.event_attr import CONTEXT_KERNEL, CONTEXT_USER
from necroscope.profile.library import NativeRing
from necroscope.sources.perf.ring import PAGE_BYTES
from necroscope.sources.perf.rings import Rings
from necroscope.symbols.messages import (
    BLOCK_BITS,
    FunctionBlock,
    ModuleAnswer,
    UserRequest,
    pack_block,
)
from necroscope.symbols.process_maps import Mapping

KERNEL_BASE = 0xFFFF_FFFF_8100_0000
IDLE = KERNEL_BASE + 0x1D1E
# Behind its own text the kernel has modules and BPF programs, by blocks of 16 KiB.
CORE_BYTES = 0x8000
SAMPLING_ID = 700
LEDGER_ID = 701
MISC_USER = 2


class Build:
    """Each method gives the bytes of one record."""

    KERNEL_BASE, IDLE, SAMPLING_ID, LEDGER_ID = KERNEL_BASE, IDLE, SAMPLING_ID, LEDGER_ID

    @staticmethod
    def record(kind: int, body: bytes, misc: int = 0) -> bytes:
        body += b"\0" * (-len(body) % 8)
        return struct.pack("<IHH", kind, misc, 8 + len(body)) + body

    @staticmethod
    def trailer(pid: int, tid: int, time_ns: int, cpu: int = 0) -> bytes:
        return struct.pack("<iiQIIQ", pid, tid, time_ns, cpu, 0, SAMPLING_ID)

    @staticmethod
    def chain(kernel: Sequence[int] = (), user: Sequence[int] = ()) -> bytes:
        words = [CONTEXT_KERNEL, *kernel] if kernel else []
        words += [CONTEXT_USER, *user] if user else []
        return struct.pack(f"<{len(words)}Q", *words)

    @classmethod
    def sample(
        cls,
        time_ns: int,
        pid: int = 100,
        tid: int | None = None,
        kernel: Sequence[int] = (),
        user: Sequence[int] = (),
        argument: int | None = None,
        identifier: int = SAMPLING_ID,
    ) -> bytes:
        chain = cls.chain(kernel, user)
        head = struct.pack(
            "<QiiQIIQ", identifier, pid, pid if tid is None else tid, time_ns, 0, 0, len(chain) // 8
        )
        registers = struct.pack("<Q", 0) if argument is None else struct.pack("<QQ", 2, argument)
        return cls.record(
            records.SAMPLE, head + chain + registers, records.MISC_KERNEL if kernel else MISC_USER
        )

    @classmethod
    def tracepoint(
        cls, time_ns: int, raw: bytes, pid: int = 1, identifier: int = LEDGER_ID
    ) -> bytes:
        head = struct.pack("<QiiQII", identifier, pid, pid, time_ns, 0, 0)
        return cls.record(records.SAMPLE, head + struct.pack("<I", len(raw)) + raw)

    @classmethod
    def comm(
        cls, time_ns: int, pid: int, name: bytes, tid: int | None = None, *, is_exec: bool = False
    ) -> bytes:
        tid = pid if tid is None else tid
        padded = name + b"\0" * (8 - len(name) % 8)
        body = struct.pack("<II", pid, tid) + padded + cls.trailer(pid, tid, time_ns)
        return cls.record(records.COMM, body, records.MISC_COMM_EXEC if is_exec else 0)

    @classmethod
    def _task(
        cls, kind: int, time_ns: int, pid: int, parent: int, tid: int, parent_tid: int
    ) -> bytes:
        body = struct.pack("<IIIIQ", pid, parent, tid, parent_tid, time_ns)
        return cls.record(kind, body + cls.trailer(parent, parent_tid, time_ns))

    @classmethod
    def fork(
        cls,
        time_ns: int,
        pid: int,
        parent: int,
        tid: int | None = None,
        parent_tid: int | None = None,
    ) -> bytes:
        return cls._task(records.FORK, time_ns, pid, parent, tid or pid, parent_tid or parent)

    @classmethod
    def exit(cls, time_ns: int, pid: int, tid: int | None = None) -> bytes:
        return cls._task(records.EXIT, time_ns, pid, 1, tid or pid, 1)

    @classmethod
    def mmap2(
        cls,
        time_ns: int,
        pid: int,
        start: int,
        length: int,
        path: bytes,
        *,
        file_offset: int = 0,
        inode: int = 5,
        device: int = 8,
    ) -> bytes:
        body = struct.pack(
            "<IIQQQIIQQII", pid, pid, start, length, file_offset, device, 1, inode, 0, 5, 2
        )
        padded = path + b"\0" * (8 - len(path) % 8)
        return cls.record(records.MMAP2, body + padded + cls.trailer(pid, pid, time_ns))

    @classmethod
    def lost(cls, time_ns: int, count: int, identifier: int = SAMPLING_ID) -> bytes:
        return cls.record(
            records.LOST, struct.pack("<QQ", identifier, count) + cls.trailer(1, 1, time_ns)
        )

    @classmethod
    def throttle(cls, time_ns: int) -> bytes:
        return cls.record(
            records.THROTTLE, struct.pack("<QQQ", time_ns, 1, 1) + cls.trailer(1, 1, time_ns)
        )

    @classmethod
    def ksymbol(
        cls,
        time_ns: int,
        name: bytes = b"bpf_prog_x",
        start: int = KERNEL_BASE + 0x9000,
        *,
        is_gone: bool = False,
    ) -> bytes:
        body = struct.pack("<QIHH", start, 64, 1, int(is_gone)) + name + b"\0" * (8 - len(name) % 8)
        return cls.record(records.KSYMBOL, body + cls.trailer(1, 1, time_ns))


class FakeRing:
    """A ring in our own memory, in which a test writes what the kernel would."""

    descriptor = -1
    size_bytes = 1 << 20

    def __init__(self) -> None:
        self._map = mmap.mmap(-1, PAGE_BYTES + self.size_bytes)
        self._start = ctypes.c_char.from_buffer(self._map)

    def write(self, data: bytes) -> None:
        head = int.from_bytes(self._map[1024:1032], "little")
        for at, byte in enumerate(data, head):
            self._map[PAGE_BYTES + at % self.size_bytes] = byte
        self._map[1024:1032] = (head + len(data)).to_bytes(8, "little")

    def native(self, cpu: int) -> NativeRing:
        return NativeRing(ctypes.addressof(self._start), self.size_bytes, PAGE_BYTES, cpu, 0)

    def close(self) -> None:
        pass


class FakeRings(Rings):
    """Rings fed by hand; one a core, opened without the kernel."""

    def __init__(self, cpus: int = 2, tracepoints: dict[int, int] | None = None) -> None:
        super().__init__(97)
        self.fakes = [FakeRing() for _ in range(cpus)]
        self._rings = dict(enumerate(self.fakes))  # type: ignore[assignment]
        self.sampling_ids = dict.fromkeys(range(cpus), SAMPLING_ID)
        self._event_of = dict.fromkeys(range(cpus), "cpu-clock")
        self._tracepoint_descriptors = {cpu: [] for cpu in range(cpus)}
        self.tracepoint_of = tracepoints or {}

    def write(self, cpu: int, *written: bytes) -> None:
        self.fakes[cpu].write(b"".join(written))


class FakeLookup:
    """Names by rule: `k_1d1e` for an offset into the kernel, `f_40` for one into a file. Keeps what
    it was asked.

    Every function is `function_bytes` long and is named by its start. `names` says what else is at
    an address of the kernel.
    """

    def __init__(self) -> None:
        self.kernel_asked: list[int] = []
        self.user_asked: list[UserRequest] = []
        self.user_calls = 0
        self.jit_asked: list[tuple[int, list[int]]] = []
        self.maps_asked: list[int] = []
        self.mangled_asked: list[list[str]] = []
        self.mangling = ""
        self.maps: dict[int, list[Mapping]] = {}
        self.names: dict[int, tuple[str, str] | None] = {IDLE: ("default_idle", "[kernel]")}
        self.unknown_offsets: set[int] = set()
        self.function_bytes = 16
        self.jit_names: dict[int, str] = {}
        self.core_text = KERNEL_BASE, KERNEL_BASE + CORE_BYTES
        self.reloads = -1  # the first reading is none
        self.is_loading = False
        self.unanswered = 0
        self.restarts = 0
        self.is_gone = False

    @property
    def asked(self) -> int:
        return (
            self.user_calls + len(self.jit_asked) + len(self.maps_asked) + len(self.mangled_asked)
        )

    def close(self) -> None: ...

    def ranges(self, _: object) -> list[tuple[int, int]]:
        return []

    def read_kernel_symbols(self) -> "FakeLookup":
        """Itself: it has what is asked of kallsyms."""
        self.reloads += 1
        return self

    def block(self, number: int) -> FunctionBlock:
        low = number << BLOCK_BITS
        self.kernel_asked.append(low)
        return pack_block(
            [
                (start, self._kernel_name(low + start))
                for start in range(0, 1 << BLOCK_BITS, self.function_bytes)
            ]
        )

    def _kernel_name(self, start: int) -> bytes:
        for address, symbol in self.names.items():
            if start <= address < start + self.function_bytes:
                return b"" if symbol is None else "\t".join(symbol).encode()
        return b"k_%x" % (start - KERNEL_BASE)

    def _block(self, block: int, name: Callable[[int], str | None]) -> FunctionBlock:
        starts = range(0, 1 << BLOCK_BITS, self.function_bytes)
        return pack_block(
            [(start, (name((block << BLOCK_BITS) + start) or "").encode()) for start in starts]
        )

    def _user_name(self, start: int) -> str | None:
        return None if start in self.unknown_offsets else f"{self.mangling}f_{start:x}"

    def user_functions(self, requests: Sequence[UserRequest]) -> list[ModuleAnswer | None]:
        self.user_calls += 1
        self.user_asked.extend(requests)
        self.unanswered += self.is_gone
        if self.is_gone:
            return [None] * len(requests)
        return [
            ModuleAnswer("b1d", [self._block(block, self._user_name) for block in request.blocks])
            for request in requests
        ]

    def demangle(self, symbols: Sequence[str]) -> list[str]:
        self.mangled_asked.append(list(symbols))
        return [f"readable {symbol}" for symbol in symbols]

    def jit_symbols(self, pid: int, addresses: Sequence[int]) -> list[str | None]:
        self.jit_asked.append((pid, list(addresses)))
        return [self.jit_names.get(address) for address in addresses]

    def process_maps(self, pids: Sequence[int]) -> list[tuple[list[Mapping], bool] | None]:
        self.maps_asked += pids
        return [(self.maps[pid], False) if pid in self.maps else None for pid in pids]


@pytest.fixture(scope="session")
def build() -> type[Build]:
    return Build


@pytest.fixture
def rings() -> FakeRings:
    return FakeRings()


@pytest.fixture
def lookup() -> FakeLookup:
    return FakeLookup()


@pytest.fixture
def node(rings: FakeRings, lookup: FakeLookup, tmp_path: Path) -> Node:
    return Node(rings, lookup, tmp_path)
