"""The BPF program that is called for every task once per tick, and says which ones wait right now.

A wait that never ends would otherwise be invisible until it does.
"""

from typing import Final

from necroscope.sources.perf import bpf_assembler as bpf
from necroscope.sources.perf.wait_code import (
    NOLOAD,
    NOW,
    OWNER_SHIFT,
    SINCE,
    SLEEPER_ADDRESS,
    SLEEPER_KIND,
    SWITCHES,
    UNINTERRUPTIBLE,
    leave,
    take_stack,
)
from necroscope.sources.perf.wait_layout import (
    ADDRESS,
    ALLOWED,
    AWAKE,
    BLOCKED,
    CGROUP,
    COMM,
    CPU,
    END,
    KIND,
    OPEN_BYTES,
    OTHER,
    OTHER_RAN,
    PID,
    POLICY,
    RUNNABLE,
    STACK,
    STACK_LENGTH,
    STOPPED,
    TASK,
    TID,
    WAITED,
    Blocker,
)
from necroscope.sources.perf.wait_semaphores import (
    ASLEEP,
    SEMAPHORE_ADDRESS,
    STATE,
    SemaphoreCode,
)

_OWNER: Final = -24
# include/linux/hung_task.h; rwsems for readers and for writers are 2 and 3.
_LOCK_TYPE, _MUTEX, _SEMAPHORE = 0x3, 0x0, 0x1
# kernel/locking/rwsem.c and mutex.h: bits of an owner that are not part of its address.
_OWNER_FLAGS: Final = 0x7
# include/linux/sched.h: stopped by a signal, by a tracer, frozen (v1); sched/jobctl.h: frozen (v2).
_STOPPED_STATES, _FROZEN = 0x4 | 0x8 | 0x8000, 1 << 23
_STALE_BITS: Final = 40  # ns: 18 minutes


class ScanProgram(SemaphoreCode):
    def over_tasks(self) -> bytes:
        """R6 = the task, R7 = the answer's file, R8 = the record, R9 = how long it waits."""
        places, program = self.places, bpf.Program()
        program.load64(bpf.R6, bpf.R1, 8)
        program.load64(bpf.R7, bpf.R1, 0)
        program.jump_if_equal(bpf.R6, 0, "out")
        program.load_map_value(bpf.R8, self.maps.scratch)
        self.follow_rhythm(program)
        program.load32(bpf.R2, bpf.R6, places.state)
        program.jump_if_equal(bpf.R2, 0, "ready")
        self._measure_sleep(program)
        program.label("ready")
        self._measure_queued(program)
        program.label("found")
        program.store64(bpf.R8, WAITED, bpf.R9)
        program.call(bpf.KTIME_GET_NS)
        program.store64(bpf.R8, END, bpf.R0)
        self.describe(program, bpf.R6, bpf.R8, TASK)
        self.load_queue(program, bpf.R9, bpf.R6)
        program.load64(bpf.R1, bpf.R9, places.clock)
        program.store64(bpf.R10, NOW, bpf.R1)
        program.load32(bpf.R1, bpf.R9, places.queue_cpu)
        program.store32(bpf.R8, CPU, bpf.R1)
        take_stack(program, bpf.GET_TASK_STACK, bpf.R6, STACK, STACK_LENGTH)
        program.load32(bpf.R1, bpf.R8, KIND)
        program.jump_if_not_equal(bpf.R1, RUNNABLE, "asleep")
        program.load64(bpf.R9, bpf.R9, places.running)
        program.jump_if_equal(bpf.R9, 0, "write")
        program.load64(bpf.R1, bpf.R9, places.last_arrival)
        program.load64(bpf.R2, bpf.R10, NOW)
        program.subtract(bpf.R2, bpf.R1)
        program.store64(bpf.R8, OTHER_RAN, bpf.R2)
        self.describe(program, bpf.R9, bpf.R8, OTHER)
        program.jump("write")
        program.label("asleep")
        if places.blocker is not None:
            self._name_owner(program, places.blocker)
        program.label("write")
        program.load64(bpf.R1, bpf.R7, 0)
        program.move(bpf.R2, bpf.R8)
        program.move_constant(bpf.R3, OPEN_BYTES)
        program.call(bpf.SEQ_WRITE)
        return leave(program)

    def _name_owner(self, program: bpf.Program, blocker: Blocker) -> None:
        """Into record R8 who has the lock that R6 sleeps for. Of several readers a rwsem knows the
        last, and with CONFIG_DETECT_HUNG_TASK_BLOCKER that one only while it reads.
        """
        program.load64(bpf.R9, bpf.R6, blocker.lock)
        program.jump_if_equal(bpf.R9, 0, "write")
        program.move(bpf.R3, bpf.R9)
        program.keep_bits(bpf.R3, ~_LOCK_TYPE)
        program.keep_bits(bpf.R9, _LOCK_TYPE)
        program.jump_if_equal(bpf.R9, _SEMAPHORE, "write")
        program.jump_if_equal(bpf.R9, _MUTEX, "mutex")
        program.add_constant(bpf.R3, blocker.rwsem_owner - blocker.mutex_owner)
        program.label("mutex")
        program.add_constant(bpf.R3, blocker.mutex_owner)
        program.move(bpf.R1, bpf.R10)
        program.add_constant(bpf.R1, _OWNER)
        _read(program, 8)
        program.load64(bpf.R1, bpf.R10, _OWNER)
        program.keep_bits(bpf.R1, ~_OWNER_FLAGS)
        program.jump_if_equal(bpf.R1, 0, "write")
        program.move(bpf.R9, bpf.R1)
        program.store64_constant(bpf.R8, OTHER + CGROUP, 0)
        program.store64_constant(bpf.R8, OTHER + POLICY, 0)
        program.store64_constant(bpf.R8, OTHER + ALLOWED, 0)
        places = self.places
        for member, offset, size in (
            (COMM, places.comm, 16),
            (PID, places.pid, 4),
            (TID, places.tid, 4),
        ):
            program.move(bpf.R1, bpf.R8)
            program.add_constant(bpf.R1, OTHER + member)
            program.move(bpf.R3, bpf.R9)
            program.add_constant(bpf.R3, offset)
            _read(program, size)

    def _measure_sleep(self, program: bpf.Program) -> None:
        """R9 = how long R6, in state R2, sleeps. One that is not in the table is put there: it fell
        asleep while no switch was looked at.
        """
        places = self.places
        program.jump_if_any_bit(bpf.R2, NOLOAD, "out")
        program.store64(bpf.R10, STATE, bpf.R2)
        program.call(bpf.KTIME_GET_NS)
        program.load32(bpf.R2, bpf.R6, places.tid)
        program.load64(bpf.R5, bpf.R6, places.switches)
        self.point_at_sleeper(program)
        program.load32(bpf.R1, bpf.R9, 0)
        program.jump_if_differs(bpf.R1, bpf.R2, "new")
        program.load64(bpf.R1, bpf.R9, SWITCHES)
        program.jump_if_differs(bpf.R1, bpf.R5, "new")
        program.load8(bpf.R1, bpf.R9, SLEEPER_KIND)
        program.jump_if_equal(bpf.R1, AWAKE, "out")
        program.store32(bpf.R8, KIND, bpf.R1)
        program.load32(bpf.R1, bpf.R9, SLEEPER_KIND)
        program.shift_right(bpf.R1, OWNER_SHIFT)
        program.store64(bpf.R8, OTHER, bpf.R1)
        program.load64(bpf.R1, bpf.R9, SLEEPER_ADDRESS)
        program.store64(bpf.R8, ADDRESS, bpf.R1)
        program.load64(bpf.R1, bpf.R9, SINCE)
        program.jump_if_above_register(bpf.R1, bpf.R0, "out")
        program.subtract(bpf.R0, bpf.R1)
        program.move(bpf.R9, bpf.R0)
        program.load32(bpf.R1, bpf.R8, KIND)
        self.leave_out_short(program, bpf.R9, "out")
        program.jump("found")
        program.label("new")
        program.store64_constant(bpf.R10, SEMAPHORE_ADDRESS, 0)
        program.store64_constant(bpf.R10, ASLEEP, 0)
        self._find_kind(program)
        _leave_taken_place(program)
        program.store32(bpf.R9, SLEEPER_KIND, bpf.R5)
        program.load64(bpf.R1, bpf.R10, SEMAPHORE_ADDRESS)
        program.store64(bpf.R9, SLEEPER_ADDRESS, bpf.R1)
        self.note_sleep(program)
        program.load64(bpf.R1, bpf.R10, ASLEEP)
        program.subtract(bpf.R0, bpf.R1)
        program.store64(bpf.R9, SINCE, bpf.R0)
        program.jump("out")

    def _find_kind(self, program: bpf.Program) -> None:
        """R5 = the kind of the sleep of thread R2. A process is stopped as a whole, so one row is
        enough.
        """
        places = self.places
        program.move_constant(bpf.R5, BLOCKED)
        program.load64(bpf.R1, bpf.R10, STATE)
        program.jump_if_any_bit(bpf.R1, UNINTERRUPTIBLE, "kind known")
        program.move_constant(bpf.R5, STOPPED)
        program.jump_if_any_bit(bpf.R1, _STOPPED_STATES, "stopped")
        program.load64(bpf.R1, bpf.R6, places.job_control)
        program.keep_bits(bpf.R1, _FROZEN)
        program.jump_if_equal(bpf.R1, 0, "not stopped")
        program.label("stopped")
        program.load32(bpf.R1, bpf.R6, places.pid)
        program.jump_if_differs(bpf.R1, bpf.R2, "out")
        program.jump("kind known")
        program.label("not stopped")
        if places.calls is None:
            program.jump("out")
        else:
            self.find_semaphore(program, places.calls, "out")
        program.label("kind known")

    def _measure_queued(self, program: bpf.Program) -> None:
        """R9 = how long R6 is queued; of one that runs it says nothing."""
        places = self.places
        program.load32(bpf.R1, bpf.R6, places.on_cpu)
        program.jump_if_not_equal(bpf.R1, 0, "out")
        program.load64(bpf.R2, bpf.R6, places.last_queued)
        program.jump_if_equal(bpf.R2, 0, "out")
        self.load_queue(program, bpf.R1, bpf.R6)
        program.load64(bpf.R9, bpf.R1, places.clock)
        program.jump_if_above_register(bpf.R2, bpf.R9, "out")
        program.subtract(bpf.R9, bpf.R2)
        program.jump_if_at_most(bpf.R9, self.threshold_ns, "out")
        self.correct_delay(program, bpf.R6, "queued")
        program.jump_if_at_most(bpf.R9, self.threshold_ns, "out")
        program.store32_constant(bpf.R8, KIND, RUNNABLE)
        program.store64_constant(bpf.R8, ADDRESS, 0)
        program.store64_constant(bpf.R8, OTHER, 0)


def _read(program: bpf.Program, size_bytes: int) -> None:
    """From R3 to R1, where a task may have gone meanwhile."""
    program.move_constant(bpf.R2, size_bytes)
    program.call(bpf.PROBE_READ_KERNEL)
    program.jump_if_not_equal(bpf.R0, 0, "write")


def _leave_taken_place(program: bpf.Program) -> None:
    """R9 may be taken by thread R2 at R0 unless another sleeps there: who woke up while no wake-up
    was looked at left its place behind, and is forgotten in time.
    """
    program.load32(bpf.R1, bpf.R9, 0)
    program.jump_if_equal(bpf.R1, 0, "free")
    program.jump_if_differs(bpf.R1, bpf.R2, "of another")
    program.jump("free")
    program.label("of another")
    program.load8(bpf.R1, bpf.R9, SLEEPER_KIND)
    program.jump_if_equal(bpf.R1, AWAKE, "free")
    program.load64(bpf.R1, bpf.R9, SINCE)
    program.move(bpf.R3, bpf.R0)
    program.subtract(bpf.R3, bpf.R1)
    program.shift_right(bpf.R3, _STALE_BITS)
    program.jump_if_equal(bpf.R3, 0, "out")
    program.label("free")
