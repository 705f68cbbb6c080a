"""What BPF programs share that are called for every open file of every task, when they are asked
for (bpf_iter_task_file, Linux 5.8).
"""

from collections.abc import Callable
from pathlib import Path
from typing import NamedTuple

from necroscope.errors import NecroscopeError
from necroscope.sources.perf import bpf_assembler as bpf
from necroscope.sources.perf import btf
from necroscope.sources.perf.bpf import IteratorProgram, MapValue

_ITERATOR = "bpf_iter_task_file"
# Where `follow` reads to, on the program's stack.
_POINTER = -8


class OpenWalk(NamedTuple):
    """The map in which the program finds its question, and the program."""

    map: MapValue
    files: IteratorProgram


class FileWalk:
    """Opens at the first question; where it cannot, there is no answer. `make_code` gets the
    kernel's types and the descriptor of the map.
    """

    def __init__(
        self,
        root: Path,
        wanted: tuple[str, ...],
        map_bytes: int,
        make_code: Callable[[btf.KernelTypes, int], bytes],
    ) -> None:
        self._root = root
        self._wanted = (*wanted, _ITERATOR)
        self._map_bytes = map_bytes
        self._make_code = make_code
        self._open: OpenWalk | None = None
        self._is_refused = False

    def open(self) -> OpenWalk | None:
        if self._open is None and not self._is_refused:
            try:
                self._open = self._load()
            except (OSError, NecroscopeError):
                self._is_refused = True
        return self._open

    def close(self) -> None:
        for part in self._open or ():
            part.close()
        self._open = None

    def _load(self) -> OpenWalk:
        types = btf.read(self._root, self._wanted)
        own_map = MapValue(self._map_bytes)
        try:
            code = self._make_code(types, own_map.descriptor)
            return OpenWalk(own_map, IteratorProgram(code, types.function(_ITERATOR)))
        except BaseException:
            own_map.close()
            raise


def begin(program: bpf.Program) -> None:
    """R6 = the context, R7 = the task, R8 = its file."""
    program.move(bpf.R6, bpf.R1)
    program.load64(bpf.R7, bpf.R1, 8)
    program.load64(bpf.R8, bpf.R1, 24)
    program.jump_if_equal(bpf.R7, 0, "out")
    program.jump_if_equal(bpf.R8, 0, "out")


def write_record(program: bpf.Program, place: int, size_bytes: int) -> None:
    """What lies at this place of the map R9 goes to who asks."""
    program.load64(bpf.R1, bpf.R6, 0)
    program.load64(bpf.R1, bpf.R1, 0)
    program.move(bpf.R2, bpf.R9)
    program.add_constant(bpf.R2, place)
    program.move_constant(bpf.R3, size_bytes)
    program.call(bpf.SEQ_WRITE)


def follow(program: bpf.Program, offset: int) -> None:
    """R3 = the word at this place of what R3 points to."""
    program.jump_if_equal(bpf.R3, 0, "out")
    program.add_constant(bpf.R3, offset)
    program.move(bpf.R1, bpf.R10)
    program.add_constant(bpf.R1, _POINTER)
    program.move_constant(bpf.R2, 8)
    program.call(bpf.PROBE_READ_KERNEL)
    program.jump_if_not_equal(bpf.R0, 0, "out")
    program.load64(bpf.R3, bpf.R10, _POINTER)
