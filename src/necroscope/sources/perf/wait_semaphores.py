"""The part of the look at all tasks that finds who waits for a semaphore that processes share
(sem_wait(3), Python's multiprocessing.Lock, and semop(2) of System V).

glibc waits for it by FUTEX_WAIT_BITSET for the value 0 (nptl/sem_waitcommon.c), as it waits for a
condition variable, which is how idle threads sleep. The futex of one that is shared between
processes is not private, and such sleeps are few: so no switch is looked at for them. Who is found
asleep in one is put into the table of sleepers, since when it last had a core, and its wake-up then
tells who ended the wait. One that ends between two looks is not seen.
"""

import platform
from typing import Final

from necroscope.sources.perf import bpf_assembler as bpf
from necroscope.sources.perf import system_calls
from necroscope.sources.perf.wait_layout import SEMAPHORE, SystemCalls
from necroscope.sources.perf.wait_rhythm import RhythmCode

# On the program's stack: the state of a task, the address of a semaphore, and how long it sleeps.
STATE, SEMAPHORE_ADDRESS, ASLEEP = -16, -56, -64
_INTERRUPTIBLE: Final = 0x1
_PF_KTHREAD: Final = 0x00200000
# include/uapi/linux/futex.h: the operation with the flag of a futex that one process has alone.
_FUTEX_OPERATION, _FUTEX_WAIT_BITSET = 0xFF, 9


class SemaphoreCode(RhythmCode):
    def find_semaphore(self, program: bpf.Program, calls: SystemCalls, without: str) -> None:
        """R5 = the kind of the sleep of task R6 if it is one, and then R0 = now, R2 = its number,
        with what the stack says of it; else `without`.
        """
        places = self.places
        program.load64(bpf.R1, bpf.R10, STATE)
        program.keep_bits(bpf.R1, _INTERRUPTIBLE)
        program.jump_if_equal(bpf.R1, 0, without)
        program.load32(bpf.R1, bpf.R6, places.flags)
        program.jump_if_any_bit(bpf.R1, _PF_KTHREAD, without)
        program.move(bpf.R1, bpf.R6)
        program.call(bpf.TASK_PT_REGS)
        program.load32(bpf.R1, bpf.R0, calls.number)
        for number in system_calls.SEMAPHORES.get(platform.machine(), ()):
            program.jump_if_equal(bpf.R1, number, "a set of semaphores")
        futex = calls.sleeps.index(system_calls.FUTEX)
        program.jump_if_not_equal(bpf.R1, futex, without)
        program.load64(bpf.R1, bpf.R0, calls.second)
        program.keep_bits(bpf.R1, _FUTEX_OPERATION)
        program.jump_if_not_equal(bpf.R1, _FUTEX_WAIT_BITSET, without)
        program.load32(bpf.R1, bpf.R0, calls.third)
        program.jump_if_not_equal(bpf.R1, 0, without)
        program.label("a set of semaphores")
        program.load64(bpf.R1, bpf.R0, calls.first)
        program.store64(bpf.R10, SEMAPHORE_ADDRESS, bpf.R1)
        self.load_time_asleep(program)
        program.store64(bpf.R10, ASLEEP, bpf.R1)
        program.call(bpf.KTIME_GET_NS)
        program.load32(bpf.R2, bpf.R6, places.tid)
        program.move_constant(bpf.R5, SEMAPHORE)
