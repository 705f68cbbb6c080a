"""Where the threads of some processes sleep, and since when: a BPF program that is called for every
task, when it is asked for.

/proc/PID/syscall tells it to CAP_SYS_PTRACE only, and not since when. Asked for processes that are
part of a long wait, as who may have what others wait for, and who waits for a server that is
stopped.
"""

import struct
from collections.abc import Iterable
from typing import Final, NamedTuple

from necroscope.sources.perf import bpf_assembler as bpf
from necroscope.sources.perf.bpf import IteratorProgram, MapValue
from necroscope.sources.perf.process_table import (
    TABLE_BYTES,
    leave_out_others,
    write_processes,
)
from necroscope.sources.perf.wait_code import WaitCode, leave
from necroscope.sources.perf.wait_layout import Places, SystemCalls, WaitMaps
from necroscope.sources.perf.wait_records import WaitTask, parse_task

# In the map: the table of processes, and a record: a task, how long it sleeps, and its system call
# with two arguments.
_RECORD: Final = TABLE_BYTES
_ASLEEP, _CALL, _FIRST, _SECOND, _RECORD_BYTES = 48, 56, 64, 72, 80
_MOST: Final = 256
_INTERRUPTIBLE: Final = 0x1


class AsleepTask(NamedTuple):
    """A thread that sleeps as one that a signal may end, in the system call of this number."""

    task: WaitTask
    asleep_ns: int
    call: int
    first: int
    second: int


class AsleepProgram(WaitCode):
    def over_tasks(self, calls: SystemCalls, own_map: int) -> bytes:
        """R6 = the task, R7 = the answer's file, R8 = the record."""
        places, program = self.places, bpf.Program()
        program.load64(bpf.R6, bpf.R1, 8)
        program.load64(bpf.R7, bpf.R1, 0)
        program.jump_if_equal(bpf.R6, 0, "out")
        program.load32(bpf.R1, bpf.R6, places.pid)
        leave_out_others(program, own_map)
        program.load32(bpf.R1, bpf.R6, places.state)
        program.keep_bits(bpf.R1, _INTERRUPTIBLE)
        program.jump_if_equal(bpf.R1, 0, "out")
        program.load_map_value(bpf.R8, own_map)
        program.add_constant(bpf.R8, _RECORD)
        self.describe(program, bpf.R6, bpf.R8, 0)
        program.move(bpf.R1, bpf.R6)
        program.call(bpf.TASK_PT_REGS)
        program.load32(bpf.R1, bpf.R0, calls.number)
        program.store64(bpf.R8, _CALL, bpf.R1)
        for register, field in ((calls.first, _FIRST), (calls.second, _SECOND)):
            program.load64(bpf.R1, bpf.R0, register)
            program.store64(bpf.R8, field, bpf.R1)
        self.load_time_asleep(program)
        program.store64(bpf.R8, _ASLEEP, bpf.R1)
        program.load64(bpf.R1, bpf.R7, 0)
        program.move(bpf.R2, bpf.R8)
        program.move_constant(bpf.R3, _RECORD_BYTES)
        program.call(bpf.SEQ_WRITE)
        return leave(program)


class AsleepTasks:
    """Needs a kernel that tells in which system call a task sleeps (5.15)."""

    def __init__(self, places: Places, calls: SystemCalls, maps: WaitMaps, iterator: int) -> None:
        self._map = MapValue(_RECORD + _RECORD_BYTES)
        try:
            code = AsleepProgram(places, maps, 0).over_tasks(calls, self._map.descriptor)
            self._program = IteratorProgram(code, iterator)
        except BaseException:
            self._map.close()
            raise

    def find(self, pids: Iterable[int]) -> list[AsleepTask]:
        self._map.clear()
        write_processes(self._map, pids)
        return parse_asleep(self._program.read(_MOST * _RECORD_BYTES))

    def close(self) -> None:
        self._program.close()
        self._map.close()


def parse_asleep(data: bytes) -> list[AsleepTask]:
    whole = len(data) // _RECORD_BYTES * _RECORD_BYTES
    return [
        AsleepTask(parse_task(data, at), *struct.unpack_from("<QQQQ", data, at + _ASLEEP))
        for at in range(0, whole, _RECORD_BYTES)
    ]
