"""What the programs that time waits have in common: the table of sleepers, run queues, how a task
is written into a record.
"""

from typing import Final

from necroscope.sources.perf import bpf_assembler as bpf
from necroscope.sources.perf.wait_layout import (
    ALLOWED,
    AWAKE,
    CGROUP,
    COMM,
    FLAGS,
    PID,
    POLICY,
    PRIORITY,
    SLEEPERS,
    STACK_BYTES,
    TID,
    UNREAD,
    Places,
    WaitMaps,
)

# Of a sleeper in the table, behind its thread number: the kind of its sleep in the lowest byte of a
# word whose other bits are the thread that has the lock, if that is known; since when; by how often
# it slept tells one sleep from the next.
SLEEPER_KIND, SINCE, SLEEPER_ADDRESS, SWITCHES = 4, 8, 16, 24
OWNER_SHIFT: Final = 8
# include/linux/sched.h
UNINTERRUPTIBLE, NOLOAD = 0x2, 0x400
# On a program's stack: the clock of the run queue.
NOW: Final = -8
_DELAY: Final = -32
# Who writes to a slow reader waits in many short pauses, which are not news.
_UNREAD_NS: Final = 100_000_000
_SLEEPER_SHIFT: Final = 5
_COMM_BYTES: Final = 16


class WaitCode:
    """What a threshold, the maps and this kernel make of them."""

    def __init__(self, places: Places, maps: WaitMaps, threshold_ns: int) -> None:
        self.places = places
        self.maps = maps
        self.threshold_ns = threshold_ns
        self._described = 0

    def point_at_sleeper(self, program: bpf.Program) -> None:
        """R9 = the place of thread R2 in the table."""
        program.load_map_value(bpf.R9, self.maps.sleepers)
        program.move(bpf.R3, bpf.R2)
        program.keep_bits(bpf.R3, SLEEPERS - 1)
        program.shift_left(bpf.R3, _SLEEPER_SHIFT)
        program.add(bpf.R9, bpf.R3)

    def note_sleep(self, program: bpf.Program) -> None:
        """Place R9 is task R6's from now on."""
        program.load32(bpf.R2, bpf.R6, self.places.tid)
        program.store32(bpf.R9, 0, bpf.R2)
        program.load64(bpf.R1, bpf.R6, self.places.switches)
        program.store64(bpf.R9, SWITCHES, bpf.R1)
        program.call(bpf.KTIME_GET_NS)
        program.store64(bpf.R9, SINCE, bpf.R0)

    def leave_out_short(self, program: bpf.Program, waited: int, without: str) -> None:
        """A sleep of kind R1 that was no longer than is usual for its kind."""
        program.jump_if_at_most(waited, self.threshold_ns, without)
        program.jump_if_not_equal(bpf.R1, UNREAD, "long")
        program.jump_if_at_most(waited, max(self.threshold_ns, _UNREAD_NS), without)
        program.label("long")

    def correct_delay(self, program: bpf.Program, task: int, label: str) -> None:
        """R9, how long the kernel believes `task` to be queued, since it was woken if that is not
        as long. One that has run since waits no longer than the kernel says.

        Where a sleeper is moved to another core with those that run (6.12), the kernel notes it as
        queued, and counts its sleep as a wait for a core when it is woken, seconds later.
        """
        places = self.places
        program.store64(bpf.R10, _DELAY, bpf.R9)
        program.load32(bpf.R2, task, places.tid)
        self.point_at_sleeper(program)
        program.load32(bpf.R1, bpf.R9, 0)
        program.jump_if_differs(bpf.R1, bpf.R2, f"{label} kept")
        program.load8(bpf.R1, bpf.R9, SLEEPER_KIND)
        program.jump_if_not_equal(bpf.R1, AWAKE, f"{label} kept")
        program.load64(bpf.R1, bpf.R9, SWITCHES)
        program.load64(bpf.R2, task, places.switches)
        program.jump_if_differs(bpf.R1, bpf.R2, f"{label} kept")
        program.call(bpf.KTIME_GET_NS)
        program.load64(bpf.R1, bpf.R9, SINCE)
        program.subtract(bpf.R0, bpf.R1)
        program.load64(bpf.R1, bpf.R10, _DELAY)
        program.jump_if_above_register(bpf.R0, bpf.R1, f"{label} kept")
        program.store64(bpf.R10, _DELAY, bpf.R0)
        program.label(f"{label} kept")
        program.load64(bpf.R9, bpf.R10, _DELAY)

    def load_queue(self, program: bpf.Program, register: int, task: int) -> None:
        program.load64(register, task, self.places.task_queue)
        program.load64(register, register, self.places.queue)

    def load_time_asleep(self, program: bpf.Program) -> None:
        """R1 = how long ago R6 last got a core, on the clock of the core that this runs on: that of
        an idle core stands still.
        """
        program.call(bpf.GET_CURRENT_TASK_BTF)
        self.load_queue(program, bpf.R1, bpf.R0)
        program.load64(bpf.R1, bpf.R1, self.places.clock)
        program.load64(bpf.R2, bpf.R6, self.places.last_arrival)
        program.jump_if_not_below(bpf.R1, bpf.R2, "asleep for a while")
        program.move(bpf.R1, bpf.R2)
        program.label("asleep for a while")
        program.subtract(bpf.R1, bpf.R2)

    def describe(self, program: bpf.Program, task: int, record: int, at: int) -> None:
        places = self.places
        for offset, field in (
            (places.tid, TID),
            (places.pid, PID),
            (places.policy, POLICY),
            (places.priority, PRIORITY),
            (places.allowed, ALLOWED),
            (places.flags, FLAGS),
        ):
            program.load32(bpf.R1, task, offset)
            program.store32(record, at + field, bpf.R1)
        program.store64_constant(record, at + CGROUP, 0)
        self._described += 1
        label = f"cgroup {self._described}"
        program.load64(bpf.R1, task, places.cgroups)
        for offset in (places.default_cgroup, places.cgroup_node, places.node_id):
            program.jump_if_equal(bpf.R1, 0, label)
            program.load64(bpf.R1, bpf.R1, offset)
        program.store64(record, at + CGROUP, bpf.R1)
        program.label(label)
        program.move(bpf.R1, record)
        program.add_constant(bpf.R1, at + COMM)
        program.move_constant(bpf.R2, _COMM_BYTES)
        program.move(bpf.R3, task)
        program.add_constant(bpf.R3, places.comm)
        program.call(bpf.PROBE_READ_KERNEL)


def take_stack(program: bpf.Program, function: int, of: int, at: int, length: int) -> None:
    """Into record R8 the kernel's functions, innermost first."""
    program.move(bpf.R1, of)
    program.move(bpf.R2, bpf.R8)
    program.add_constant(bpf.R2, at)
    program.move_constant(bpf.R3, STACK_BYTES)
    program.move_constant(bpf.R4, 0)
    program.call(function)
    program.store64(bpf.R8, length, bpf.R0)


def leave(program: bpf.Program) -> bytes:
    program.label("out")
    program.move_constant(bpf.R0, 0)
    program.leave()
    return program.code()
