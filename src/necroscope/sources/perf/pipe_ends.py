"""Who has the other end of a pipe or UNIX socket: a BPF program that is called for every open file
of every task, when it is asked for (bpf_iter_task_file, Linux 5.8).

A pipe knows how many readers it has, not who they are; /proc/PID/fd tells it to CAP_SYS_PTRACE
only, which the recorder gives up. The first walk finds what a descriptor of a process is: of a pipe
its inode, of a UNIX socket the file of its peer. The second finds who else has that open. Files of
a peer in another network namespace are found too. Of TCP the peer may be another machine, and none
is looked for here; `unserved_clients` finds those of this node from the server's side.

    waiter's descriptor --> file --> inode (a pipe) ------------------> files with this inode
                                 --> socket --> sock --> peer --> socket --> this file
"""

import struct
from pathlib import Path
from typing import Final, NamedTuple

from necroscope.model.names import clean
from necroscope.sources.perf import bpf_assembler as bpf
from necroscope.sources.perf import btf
from necroscope.sources.perf.file_walk import FileWalk, begin, follow, write_record

# fs.h: open for reading, for writing.
READER, WRITER = 1, 2
WANTED: Final = ("task_struct", "file", "inode", "socket", "sock", "unix_sock")
# In the map: whose descriptor is looked for, which walk it is, and for which ends; what was found;
# and a record of a task.
_PID, _DESCRIPTOR, _WALK, _MODE, _OWN, _INODE, _PEER = 0, 4, 8, 16, 24, 32, 40
_RECORD, _RECORD_BYTES = 48, 24
_BYTES: Final = 128
_MOST: Final = 8
_SOCKET, _FIFO = 0xC0, 0x10  # of the upper byte of a mode
_AF_UNIX: Final = 1


class PipeEnd(NamedTuple):
    """A process that has the other end open."""

    pid: int
    comm: str


class PipeEnds:
    """Opens at the first question; where it cannot, there is no answer."""

    def __init__(self, root: Path) -> None:
        self._walk = FileWalk(root, WANTED, _BYTES, over_files)

    def find(self, pid: int, descriptor: int, mode: int) -> list[PipeEnd]:
        """Other processes that read (or write) what this one writes (or reads)."""
        walk = self._walk.open()
        if walk is None:
            return []
        walk.map.clear()
        walk.map.write_word(_PID, pid | descriptor << 32)
        walk.map.write_word(_MODE, mode)
        try:
            walk.files.read(_RECORD_BYTES)
            walk.map.write_word(_WALK, 1)
            data = walk.files.read(_MOST * _RECORD_BYTES)
        except OSError:  # more files than the kernel walks in one go
            return []
        return list(dict.fromkeys(end for end in parse_ends(data) if end.pid != pid))[:_MOST]

    def close(self) -> None:
        self._walk.close()


def parse_ends(data: bytes) -> list[PipeEnd]:
    found = struct.iter_unpack("<Q16s", data[: len(data) // _RECORD_BYTES * _RECORD_BYTES])
    return [PipeEnd(pid, clean(comm.partition(b"\0")[0])) for pid, comm in found]


def over_files(types: btf.KernelTypes, own_map: int) -> bytes:
    """R6 = the context, R7 = the task, R8 = the file, R9 = the map."""
    program = bpf.Program()
    begin(program)
    program.load_map_value(bpf.R9, own_map)
    program.load64(bpf.R1, bpf.R9, _WALK)
    program.jump_if_not_equal(bpf.R1, 0, "second walk")
    _note_file(program, types)
    program.label("second walk")
    _match(program, types)
    program.label("out")
    program.move_constant(bpf.R0, 0)
    program.leave()
    return program.code()


def _note_file(program: bpf.Program, types: btf.KernelTypes) -> None:
    """If it is the descriptor that is looked for: which pipe it is, or whose peer."""
    program.load32(bpf.R1, bpf.R7, types.offset("task_struct", "tgid"))
    program.load32(bpf.R2, bpf.R9, _PID)
    program.jump_if_differs(bpf.R1, bpf.R2, "out")
    program.load32(bpf.R1, bpf.R6, 16)
    program.load32(bpf.R2, bpf.R9, _DESCRIPTOR)
    program.jump_if_differs(bpf.R1, bpf.R2, "out")
    program.store64(bpf.R9, _OWN, bpf.R8)
    program.load64(bpf.R1, bpf.R8, types.offset("file", "f_inode"))
    program.load8(bpf.R2, bpf.R1, types.offset("inode", "i_mode") + 1)
    program.keep_bits(bpf.R2, 0xF0)
    program.jump_if_equal(bpf.R2, _SOCKET, "socket")
    program.jump_if_not_equal(bpf.R2, _FIFO, "out")
    program.store64(bpf.R9, _INODE, bpf.R1)
    program.jump("out")
    program.label("socket")
    program.load64(bpf.R3, bpf.R8, types.offset("file", "private_data"))
    follow(program, types.offset("socket", "sk"))
    program.move(bpf.R7, bpf.R3)
    follow(program, types.offset("sock", "__sk_common.skc_family"))
    program.keep_bits(bpf.R3, 0xFFFF)
    program.jump_if_not_equal(bpf.R3, _AF_UNIX, "out")
    program.move(bpf.R3, bpf.R7)
    for member in (("unix_sock", "peer"), ("sock", "sk_socket"), ("socket", "file")):
        follow(program, types.offset(*member))
    program.store64(bpf.R9, _PEER, bpf.R3)
    program.jump("out")


def _match(program: bpf.Program, types: btf.KernelTypes) -> None:
    """Writes the task if this file is the other end."""
    program.load64(bpf.R1, bpf.R9, _PEER)
    program.jump_if_equal(bpf.R1, 0, "pipe")
    program.jump_if_differs(bpf.R1, bpf.R8, "out")
    program.jump("write")
    program.label("pipe")
    program.load64(bpf.R1, bpf.R9, _OWN)
    program.jump_if_equal(bpf.R1, 0, "out")
    program.load64(bpf.R2, bpf.R9, _INODE)
    program.jump_if_equal(bpf.R2, 0, "out")
    program.load64(bpf.R3, bpf.R8, types.offset("file", "f_inode"))
    program.jump_if_differs(bpf.R2, bpf.R3, "out")
    program.load32(bpf.R1, bpf.R8, types.offset("file", "f_mode"))
    program.keep_bits(bpf.R1, READER | WRITER)
    program.load64(bpf.R2, bpf.R9, _MODE)
    program.jump_if_differs(bpf.R1, bpf.R2, "out")
    program.label("write")
    program.load32(bpf.R1, bpf.R7, types.offset("task_struct", "tgid"))
    program.store64(bpf.R9, _RECORD, bpf.R1)
    program.move(bpf.R1, bpf.R9)
    program.add_constant(bpf.R1, _RECORD + 8)
    program.move_constant(bpf.R2, 16)
    program.move(bpf.R3, bpf.R7)
    program.add_constant(bpf.R3, types.offset("task_struct", "comm"))
    program.call(bpf.PROBE_READ_KERNEL)
    write_record(program, _RECORD, _RECORD_BYTES)
