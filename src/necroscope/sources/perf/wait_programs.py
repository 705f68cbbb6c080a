"""The two BPF programs that time waits, at sched_switch and at sched_waking
(include/trace/events/sched.h).

They run at every switch and at every wake-up, so what they leave out counts.

- The kernel itself keeps since when a task is queued (`sched_info.last_queued`) on the clock of its
  run queue, so that a switch compares two numbers that are in the cache, and no wake-up is timed.
- Only a task that sleeps uninterruptibly, or in a system call in which it can only wait for another
  task (for a lock that is held, or until the other end of a pipe has read), is put into the table
  of sleepers; a wake-up of any other finds another number there and ends.
- The table is an array by thread number. Of two sleepers that meet in one place the later stays:
  the walk over all tasks (`wait_scan`) still sees the other.
- Names, stacks and clocks are read only for a wait over the threshold.
"""

from typing import Final

from necroscope.model.tables import RUN_DELAY_BUCKETS
from necroscope.sources.perf import bpf_assembler as bpf
from necroscope.sources.perf import system_calls
from necroscope.sources.perf.softirq_programs import find_bucket
from necroscope.sources.perf.wait_code import (
    NOLOAD,
    NOW,
    OWNER_SHIFT,
    SINCE,
    SLEEPER_ADDRESS,
    SLEEPER_KIND,
    SWITCHES,
    UNINTERRUPTIBLE,
    WaitCode,
    leave,
    take_stack,
)
from necroscope.sources.perf.wait_layout import (
    ADDRESS,
    ALLOWED,
    AWAKE,
    BLOCKED,
    BLOCKED_BYTES,
    CGROUP,
    COMM,
    CPU,
    END,
    FILE_LOCKED,
    KIND,
    LOCKED,
    LOST,
    OPEN_BYTES,
    OTHER,
    OTHER_RAN,
    OTHER_STACK_LENGTH,
    PID,
    POLICY,
    RUNNABLE,
    STACK,
    STACK_LENGTH,
    TASK,
    TID,
    WAITED,
    WORST,
    SystemCalls,
)

_CORE_SHIFT: Final = 9
# As much of a core's words as of a record: a task and how long it ran, until when.
_RUNNER, _RUNNER_RAN, _RUNNER_END = 256, 304, 312
_LONG_RUN_NS: Final = 10_000_000
_REMEMBERED_BITS: Final = 30  # ns: about a second
_MUCH_SHORTER_BITS: Final = 2
_CORE, _SLEPT, _OWNER, _COMMAND = -16, -8, -24, -32
_OWNER_BYTES: Final = 4
_COMM_BYTES: Final = 16
_INTERRUPTIBLE: Final = 0x1
# include/uapi/linux/futex.h. glibc and Go wait for a lock by FUTEX_WAIT with the value 2, locked
# and waited for, and glibc keeps its owner two words behind (nptl/pthread_mutex_lock.c). A lock
# that inherits priorities is its owner's number. glibc's condition variables wait by
# FUTEX_WAIT_BITSET. Where a library waits so for something else (musl, oneTBB), each thread has its
# own address.
_FUTEX_WAIT, _FUTEX_LOCK_PI, _FUTEX_LOCK_PI2, _FUTEX_COMMAND = 0, 6, 13, 0x7F
_LOCKED_AND_WAITED_FOR: Final = 2
_OWNER_PLACE: Final = 8
_THREAD_BITS: Final = 22  # of PID_MAX_LIMIT
# include/uapi/asm-generic/fcntl.h: the commands that wait for a lock on a file.
_SET_LOCK_AND_WAIT, _SET_OPEN_FILE_LOCK_AND_WAIT = 7, 38
_NO_WAKE_UP: Final = 1


class WaitPrograms(WaitCode):
    def at_switch(self) -> bytes:
        """R6 = who leaves, R7 = who comes, R8 = the core, R9 = how long it was queued."""
        places, program = self.places, bpf.Program()
        program.load64(bpf.R6, bpf.R1, 8)
        program.load64(bpf.R7, bpf.R1, 16)
        self._note_sleeper(program)
        program.label("next")
        program.load64(bpf.R8, bpf.R7, places.last_queued)
        program.jump_if_equal(bpf.R8, 0, "out")
        self.load_queue(program, bpf.R1, bpf.R7)
        program.load64(bpf.R9, bpf.R1, places.clock)
        program.store64(bpf.R10, NOW, bpf.R9)
        program.jump_if_above_register(bpf.R8, bpf.R9, "out")
        program.subtract(bpf.R9, bpf.R8)
        program.jump_if_at_most(bpf.R9, self.threshold_ns, "believed")
        self.correct_delay(program, bpf.R7, "switch")
        program.label("believed")
        program.call(bpf.GET_SMP_PROCESSOR_ID)
        program.jump_if_above(bpf.R0, self.maps.core_count - 1, "out")
        program.move(bpf.R8, bpf.R0)
        self._count(program)
        self._remember_long_run(program)
        program.jump_if_at_most(bpf.R9, self.threshold_ns, "out")
        self._reserve(program, OPEN_BYTES)
        program.store32(bpf.R0, CPU, bpf.R8)
        program.move(bpf.R8, bpf.R0)
        program.store32_constant(bpf.R8, KIND, RUNNABLE)
        program.store64_constant(bpf.R8, ADDRESS, 0)
        program.store64_constant(bpf.R8, OTHER_STACK_LENGTH, 0)
        program.store64(bpf.R8, WAITED, bpf.R9)
        program.call(bpf.KTIME_GET_NS)
        program.store64(bpf.R8, END, bpf.R0)
        self.describe(program, bpf.R7, bpf.R8, TASK)
        self._name_runner(program)
        take_stack(program, bpf.GET_TASK_STACK, bpf.R7, STACK, STACK_LENGTH)
        self._submit(program)
        return leave(program)

    def at_waking(self) -> bytes:
        """R6 = who is woken, R7 = the arguments, R9 = its place among the sleepers."""
        places, program = self.places, bpf.Program()
        program.move(bpf.R7, bpf.R1)
        program.load64(bpf.R6, bpf.R1, 0)
        program.load32(bpf.R2, bpf.R6, places.tid)
        self.point_at_sleeper(program)
        program.load32(bpf.R1, bpf.R9, 0)
        program.jump_if_differs(bpf.R1, bpf.R2, "other")
        program.load8(bpf.R1, bpf.R9, SLEEPER_KIND)
        program.jump_if_equal(bpf.R1, AWAKE, "other")
        program.store32_constant(bpf.R9, 0, 0)
        program.load64(bpf.R1, bpf.R9, SWITCHES)
        program.load64(bpf.R2, bpf.R6, places.switches)
        program.jump_if_differs(bpf.R1, bpf.R2, "other")
        program.call(bpf.KTIME_GET_NS)
        program.load64(bpf.R1, bpf.R9, SINCE)
        program.jump_if_above_register(bpf.R1, bpf.R0, "other")
        program.move(bpf.R8, bpf.R0)
        program.subtract(bpf.R8, bpf.R1)
        program.load8(bpf.R1, bpf.R9, SLEEPER_KIND)
        self.leave_out_short(program, bpf.R8, "other")
        program.call(bpf.GET_SMP_PROCESSOR_ID)
        program.jump_if_above(bpf.R0, self.maps.core_count - 1, "other")
        # The verifier loses a register's type at a call that ends in two ways, not its number.
        program.store64(bpf.R10, _SLEPT, bpf.R8)
        program.move(bpf.R8, bpf.R0)
        self._reserve(program, BLOCKED_BYTES, "other")
        program.move(bpf.R8, bpf.R0)
        self._write_sleeper(program)
        self.describe(program, bpf.R6, bpf.R8, TASK)
        self._describe_current(program)
        take_stack(program, bpf.GET_TASK_STACK, bpf.R6, STACK, STACK_LENGTH)
        take_stack(program, bpf.GET_STACK, bpf.R7, OPEN_BYTES, OTHER_STACK_LENGTH)
        self._submit(program)
        # A sleep that was noted is not counted again as a wait for a core, however it was noted.
        program.label("other")
        self._note_awake(program)
        return leave(program)

    def _note_awake(self, program: bpf.Program) -> None:
        """R6 sleeps, and is queued nevertheless if one believes the kernel: it is awake from
        now on.
        """
        places = self.places
        program.load64(bpf.R1, bpf.R6, places.last_queued)
        program.jump_if_equal(bpf.R1, 0, "out")
        program.load32(bpf.R1, bpf.R6, places.on_queue)
        if places.delayed is None:
            program.jump_if_not_equal(bpf.R1, 0, "out")
        else:
            program.jump_if_equal(bpf.R1, 0, "sleeps")
            program.load8(bpf.R1, bpf.R6, places.delayed)
            program.jump_if_equal(bpf.R1, 0, "out")
            program.label("sleeps")
        program.store32_constant(bpf.R9, SLEEPER_KIND, AWAKE)
        self.note_sleep(program)

    def _note_sleeper(self, program: bpf.Program) -> None:
        """R6 goes into the table if it sleeps as one that waits for something in particular."""
        places = self.places
        program.load64(bpf.R2, bpf.R1, 0)
        program.keep_bits(bpf.R2, 0xFF)
        program.jump_if_not_equal(bpf.R2, 0, "next")  # preempted: it wants to go on
        if places.has_state_argument:  # since 5.18 (9c2136be0878)
            program.load64(bpf.R2, bpf.R1, 24)
        else:
            program.load32(bpf.R2, bpf.R6, places.state)
        program.move_constant(bpf.R8, BLOCKED)
        program.move_constant(bpf.R9, 0)
        program.jump_if_any_bit(bpf.R2, NOLOAD, "next")
        program.jump_if_any_bit(bpf.R2, UNINTERRUPTIBLE, "sleeps")
        if places.calls is None:
            program.jump("next")
        else:
            program.keep_bits(bpf.R2, _INTERRUPTIBLE)
            program.jump_if_equal(bpf.R2, 0, "next")
            _leave_out_ordinary_sleeps(program, places.calls, self.maps.calls)
        program.label("sleeps")
        program.move(bpf.R1, bpf.R9)
        program.load32(bpf.R2, bpf.R6, places.tid)
        self.point_at_sleeper(program)
        program.store32(bpf.R9, SLEEPER_KIND, bpf.R8)
        program.store64(bpf.R9, SLEEPER_ADDRESS, bpf.R1)
        self.note_sleep(program)

    def _count(self, program: bpf.Program) -> None:
        """One more in the bucket of R9 on core R8; bucket = log2 of units of 1.024 us."""
        program.load_map_value(bpf.R4, self.maps.cores)
        program.move(bpf.R1, bpf.R8)
        program.shift_left(bpf.R1, _CORE_SHIFT)
        program.add(bpf.R4, bpf.R1)
        program.store64(bpf.R10, _CORE, bpf.R4)
        program.load64(bpf.R1, bpf.R4, WORST)
        program.jump_if_not_below(bpf.R1, bpf.R9, "not worst")
        program.store64(bpf.R4, WORST, bpf.R9)
        program.label("not worst")
        find_bucket(program, RUN_DELAY_BUCKETS)
        program.move(bpf.R3, bpf.R4)
        program.add(bpf.R3, bpf.R2)
        program.load64(bpf.R1, bpf.R3, 0)
        program.add_constant(bpf.R1, 1)
        program.store64(bpf.R3, 0, bpf.R1)

    def _reserve(self, program: bpf.Program, size_bytes: int, without: str = "out") -> None:
        """R0 = a record of the ring; `without` one it is counted on core R8, and that is all."""
        program.load_map(bpf.R1, self.maps.ring)
        program.move_constant(bpf.R2, size_bytes)
        program.move_constant(bpf.R3, 0)
        program.call(bpf.RINGBUF_RESERVE)
        program.jump_if_not_equal(bpf.R0, 0, "reserved")
        program.load_map_value(bpf.R1, self.maps.cores)
        program.shift_left(bpf.R8, _CORE_SHIFT)
        program.add(bpf.R1, bpf.R8)
        program.load64(bpf.R2, bpf.R1, LOST)
        program.add_constant(bpf.R2, 1)
        program.store64(bpf.R1, LOST, bpf.R2)
        program.jump(without)
        program.label("reserved")

    def _submit(self, program: bpf.Program) -> None:
        program.move(bpf.R1, bpf.R8)
        program.move_constant(bpf.R2, _NO_WAKE_UP)
        program.call(bpf.RINGBUF_SUBMIT)

    def _write_sleeper(self, program: bpf.Program) -> None:
        """Into record R8 what the table says of the sleeper in R9; how long it slept is on the
        stack.
        """
        program.load8(bpf.R1, bpf.R9, SLEEPER_KIND)
        program.store32(bpf.R8, KIND, bpf.R1)
        program.load64(bpf.R1, bpf.R9, SLEEPER_ADDRESS)
        program.store64(bpf.R8, ADDRESS, bpf.R1)
        program.load64(bpf.R2, bpf.R10, _SLEPT)
        program.store64(bpf.R8, WAITED, bpf.R2)
        program.load64(bpf.R1, bpf.R9, SINCE)
        program.add(bpf.R1, bpf.R2)
        program.store64(bpf.R8, END, bpf.R1)
        self.load_queue(program, bpf.R1, bpf.R6)
        program.load32(bpf.R1, bpf.R1, self.places.queue_cpu)
        program.store32(bpf.R8, CPU, bpf.R1)

    def _describe_current(self, program: bpf.Program) -> None:
        """Into record R8 who wakes the sleeper; its policy is not asked for."""
        program.call(bpf.GET_CURRENT_PID_TGID)
        program.store32(bpf.R8, OTHER + TID, bpf.R0)
        program.shift_right(bpf.R0, 32)
        program.store32(bpf.R8, OTHER + PID, bpf.R0)
        program.store64_constant(bpf.R8, OTHER + POLICY, 0)
        program.store64_constant(bpf.R8, OTHER + ALLOWED, 0)
        program.store64_constant(bpf.R8, OTHER_RAN, 0)
        program.call(bpf.GET_CURRENT_CGROUP_ID)
        program.store64(bpf.R8, OTHER + CGROUP, bpf.R0)
        program.move(bpf.R1, bpf.R8)
        program.add_constant(bpf.R1, OTHER + COMM)
        program.move_constant(bpf.R2, _COMM_BYTES)
        program.call(bpf.GET_CURRENT_COMM)

    def _remember_long_run(self, program: bpf.Program) -> None:
        """R6 had the core for long, not much shorter than the one remembered, or that is
        history.
        """
        places = self.places
        program.load64(bpf.R1, bpf.R10, NOW)
        program.load64(bpf.R2, bpf.R6, places.last_arrival)
        program.move(bpf.R3, bpf.R1)
        program.subtract(bpf.R3, bpf.R2)
        program.jump_if_at_most(bpf.R3, _LONG_RUN_NS, "short run")
        program.load32(bpf.R2, bpf.R6, places.tid)
        program.jump_if_equal(bpf.R2, 0, "short run")  # idle
        program.load64(bpf.R4, bpf.R10, _CORE)
        program.load64(bpf.R2, bpf.R4, _RUNNER_RAN)
        program.shift_right(bpf.R2, _MUCH_SHORTER_BITS)
        program.jump_if_not_below(bpf.R3, bpf.R2, "longer")
        program.load64(bpf.R2, bpf.R4, _RUNNER_END)
        program.move(bpf.R5, bpf.R1)
        program.subtract(bpf.R5, bpf.R2)
        program.shift_right(bpf.R5, _REMEMBERED_BITS)
        program.jump_if_equal(bpf.R5, 0, "short run")
        program.label("longer")
        program.store64(bpf.R4, _RUNNER_RAN, bpf.R3)
        program.store64(bpf.R4, _RUNNER_END, bpf.R1)
        self.describe(program, bpf.R6, bpf.R4, _RUNNER)
        program.label("short run")

    def _name_runner(self, program: bpf.Program) -> None:
        """Into record R8 who had the core: R6, or the one remembered if it ran longer and while
        this task, queued for R9, waited.
        """
        program.load64(bpf.R1, bpf.R10, NOW)
        program.load64(bpf.R2, bpf.R6, self.places.last_arrival)
        program.move(bpf.R3, bpf.R1)
        program.subtract(bpf.R3, bpf.R2)
        program.load32(bpf.R4, bpf.R6, self.places.tid)
        program.jump_if_not_equal(bpf.R4, 0, "not idle")
        program.move_constant(bpf.R3, 0)
        program.label("not idle")
        program.store64(bpf.R8, OTHER_RAN, bpf.R3)
        program.subtract(bpf.R1, bpf.R9)
        program.load64(bpf.R4, bpf.R10, _CORE)
        program.load64(bpf.R2, bpf.R4, _RUNNER_END)
        program.jump_if_not_below(bpf.R1, bpf.R2, "last")
        program.load64(bpf.R2, bpf.R4, _RUNNER_RAN)
        program.jump_if_not_below(bpf.R3, bpf.R2, "last")
        for word in range(0, OTHER_RAN + 8 - OTHER, 8):
            program.load64(bpf.R1, bpf.R4, _RUNNER + word)
            program.store64(bpf.R8, OTHER + word, bpf.R1)
        program.jump("named")
        program.label("last")
        self.describe(program, bpf.R6, bpf.R8, OTHER)
        program.label("named")


def _leave_out_ordinary_sleeps(program: bpf.Program, calls: SystemCalls, table: int) -> None:
    """R8 = for what R6 waits in a system call, R9 = the address of the lock or the descriptor. Who
    sleeps and is in no call stands in a page fault that another has to answer (userfaultfd(2)).
    """
    program.move(bpf.R1, bpf.R6)
    program.call(bpf.TASK_PT_REGS)
    program.load32(bpf.R1, bpf.R0, calls.number)  # 32 bits on arm64
    program.jump_if_above(bpf.R1, system_calls.CALLS - 1, "no call")
    program.load_map_value(bpf.R2, table)
    program.add(bpf.R2, bpf.R1)
    program.load8(bpf.R8, bpf.R2, 0)
    program.jump_if_equal(bpf.R8, system_calls.ORDINARY, "next")
    program.load64(bpf.R9, bpf.R0, calls.first)
    program.load64(bpf.R2, bpf.R0, calls.second)
    program.jump_if_equal(bpf.R8, system_calls.FUTEX, "futex")
    program.jump_if_not_equal(bpf.R8, system_calls.FCNTL, "sleeps")
    program.move_constant(bpf.R8, FILE_LOCKED)
    program.jump_if_equal(bpf.R2, _SET_LOCK_AND_WAIT, "sleeps")
    program.jump_if_equal(bpf.R2, _SET_OPEN_FILE_LOCK_AND_WAIT, "sleeps")
    program.jump("next")
    program.label("no call")
    program.add_constant(bpf.R1, 1)
    program.shift_right(bpf.R1, 32)
    program.jump_if_equal(bpf.R1, 0, "next")
    program.jump("sleeps")
    program.label("futex")
    _look_at_futex(program, calls)


def _look_at_futex(program: bpf.Program, calls: SystemCalls) -> None:
    """Of a futex at R9 with the operation R2 and the registers R0: R8 = its kind and its owner."""
    program.move_constant(bpf.R8, LOCKED)
    program.keep_bits(bpf.R2, _FUTEX_COMMAND)
    program.jump_if_equal(bpf.R2, _FUTEX_LOCK_PI, "owner")
    program.jump_if_equal(bpf.R2, _FUTEX_LOCK_PI2, "owner")
    program.jump_if_not_equal(bpf.R2, _FUTEX_WAIT, "next")
    program.load32(bpf.R2, bpf.R0, calls.third)
    program.jump_if_not_equal(bpf.R2, _LOCKED_AND_WAITED_FOR, "next")
    program.add_constant(bpf.R9, _OWNER_PLACE)
    program.label("owner")
    program.store64(bpf.R10, _COMMAND, bpf.R2)
    program.move(bpf.R1, bpf.R10)
    program.add_constant(bpf.R1, _OWNER)
    program.move_constant(bpf.R2, _OWNER_BYTES)
    program.move(bpf.R3, bpf.R9)
    program.call(bpf.PROBE_READ_USER)
    program.load64(bpf.R1, bpf.R10, _COMMAND)
    program.jump_if_not_equal(bpf.R1, _LOCKED_AND_WAITED_FOR, "at the lock")
    program.add_constant(bpf.R9, -_OWNER_PLACE)
    program.label("at the lock")
    program.jump_if_not_equal(bpf.R0, 0, "sleeps")
    program.load32(bpf.R1, bpf.R10, _OWNER)
    program.keep_bits(bpf.R1, (1 << _THREAD_BITS) - 1)
    program.shift_left(bpf.R1, OWNER_SHIFT)
    program.add(bpf.R8, bpf.R1)
