"""The part of the look at all tasks that knows which threads keep a rhythm, and which of those are
late: heartbeats, leases, health checks, found by what they do and not by their names.

The kernel keeps how often a thread went to sleep (`nvcsw`) and when it last got a core
(`sched_info.last_arrival`). From one look to the next

    beats           k = nvcsw now - nvcsw then
    elapsed         e = last_arrival now - last_arrival then
    period          e / k, exact whenever the looks were

is the same again and again for a thread that a timer wakes, and never for one that waits for
requests. Who had the same period at several looks keeps a rhythm. It is late by e - k * period when
it comes back, and as long as it does not (k is 0) by the time since it was last seen to run, less a
period. No switch and no wake-up is looked at for this.
"""

from typing import Final

from necroscope.sources.perf import bpf_assembler as bpf
from necroscope.sources.perf.wait_code import WaitCode, take_stack
from necroscope.sources.perf.wait_layout import (
    ADDRESS,
    CPU,
    END,
    KIND,
    LATE,
    OPEN_BYTES,
    OTHER,
    OTHER_RAN,
    RHYTHMS,
    STACK,
    STACK_LENGTH,
    TASK,
    WAITED,
)

# Of a thread, behind its number: looks at which its period was the same; its period; what the
# kernel had counted and when it last ran at the look before; when it was last seen to have run.
_STEADY, _PERIOD, _SWITCHES, _ARRIVAL, _SEEN = 4, 8, 16, 24, 32
_PLACE_SHIFT: Final = 6
_ENOUGH: Final = 5
# Shorter ones are loops that poll, longer ones are not a rhythm that other tasks wait for.
_SHORTEST_NS, _LONGEST_NS = 10_000_000, 90_000_000_000
_LEAST_LATE_NS: Final = 200_000_000
# A period may differ from the one before by this part of it: 1/32.
_TOLERANCE_BITS: Final = 5
# On the program's stack.
_BEATS, _LATE = -40, -48
_PF_KTHREAD: Final = 0x00200000


class RhythmCode(WaitCode):
    def follow_rhythm(self, program: bpf.Program) -> None:
        """Of task R6, with the answer's file in R7 and a record in R8; R9 = its place."""
        places = self.places
        program.load32(bpf.R1, bpf.R6, places.flags)
        program.jump_if_any_bit(bpf.R1, _PF_KTHREAD, "no rhythm")
        program.call(bpf.KTIME_GET_NS)
        program.store64(bpf.R8, END, bpf.R0)
        self._point(program)
        program.load32(bpf.R1, bpf.R9, 0)
        program.load32(bpf.R2, bpf.R6, places.tid)
        program.jump_if_differs(bpf.R1, bpf.R2, "first look")
        program.load64(bpf.R3, bpf.R6, places.switches)
        program.load64(bpf.R1, bpf.R9, _SWITCHES)
        program.subtract(bpf.R3, bpf.R1)
        program.store64(bpf.R10, _BEATS, bpf.R3)
        program.jump_if_equal(bpf.R3, 0, "missing")
        self._measure(program)
        program.label("missing")
        self._find_overdue(program)
        program.label("first look")
        program.load32(bpf.R1, bpf.R6, places.tid)
        program.store32(bpf.R9, 0, bpf.R1)
        program.store32_constant(bpf.R9, _STEADY, 0)
        program.store64_constant(bpf.R9, _PERIOD, 0)
        self._note(program)
        program.jump("no rhythm")
        program.label("late")
        self._write(program)
        program.label("no rhythm")

    def _point(self, program: bpf.Program) -> None:
        program.load32(bpf.R2, bpf.R6, self.places.tid)
        program.load_map_value(bpf.R9, self.maps.rhythms)
        program.keep_bits(bpf.R2, RHYTHMS - 1)
        program.shift_left(bpf.R2, _PLACE_SHIFT)
        program.add(bpf.R9, bpf.R2)

    def _note(self, program: bpf.Program) -> None:
        """What the next look compares with; R9 = the place."""
        places = self.places
        program.load64(bpf.R1, bpf.R6, places.switches)
        program.store64(bpf.R9, _SWITCHES, bpf.R1)
        program.load64(bpf.R1, bpf.R6, places.last_arrival)
        program.store64(bpf.R9, _ARRIVAL, bpf.R1)
        program.load64(bpf.R1, bpf.R8, END)
        program.store64(bpf.R9, _SEEN, bpf.R1)

    def _measure(self, program: bpf.Program) -> None:
        """It ran since the last look, R3 times. R4 = how long these took; it is steady, late, or
        learnt again.
        """
        program.load64(bpf.R4, bpf.R6, self.places.last_arrival)
        program.load64(bpf.R1, bpf.R9, _ARRIVAL)
        program.jump_if_above_register(bpf.R1, bpf.R4, "first look")
        program.subtract(bpf.R4, bpf.R1)
        self._note(program)
        program.load64(bpf.R3, bpf.R10, _BEATS)
        program.load64(bpf.R5, bpf.R9, _PERIOD)
        program.move(bpf.R2, bpf.R5)
        program.multiply(bpf.R2, bpf.R3)  # how long they should have taken
        program.move(bpf.R1, bpf.R2)
        program.shift_right(bpf.R1, _TOLERANCE_BITS)
        program.move(bpf.R0, bpf.R4)
        program.subtract(bpf.R0, bpf.R2)
        program.jump_if_not_below(bpf.R4, bpf.R2, "not early")
        program.move(bpf.R0, bpf.R2)
        program.subtract(bpf.R0, bpf.R4)
        program.label("not early")
        program.jump_if_not_below(bpf.R1, bpf.R0, "steady")
        program.load32(bpf.R1, bpf.R9, _STEADY)
        program.jump_if_at_most(bpf.R1, _ENOUGH - 1, "learn")
        # It kept a rhythm. That is not forgotten at once: to be stopped is a sleep as well.
        program.add_constant(bpf.R1, -1)
        program.store32(bpf.R9, _STEADY, bpf.R1)
        program.jump_if_above_register(bpf.R2, bpf.R4, "no rhythm")
        program.jump_if_at_most(bpf.R0, _LEAST_LATE_NS, "no rhythm")
        program.jump_if_not_below(bpf.R5, bpf.R0, "no rhythm")
        program.store64(bpf.R10, _LATE, bpf.R0)
        program.jump("late")
        program.label("learn")
        program.store32_constant(bpf.R9, _STEADY, 0)
        program.divide(bpf.R4, bpf.R3)
        program.store64(bpf.R9, _PERIOD, bpf.R4)
        program.jump("no rhythm")
        program.label("steady")
        program.load32(bpf.R1, bpf.R9, _STEADY)
        program.jump_if_above(bpf.R1, 2 * _ENOUGH, "no rhythm")
        program.add_constant(bpf.R1, 1)
        program.store32(bpf.R9, _STEADY, bpf.R1)
        program.jump("no rhythm")

    def _find_overdue(self, program: bpf.Program) -> None:
        """It has not run since the last look: late if it should have, by a period and more."""
        program.load32(bpf.R1, bpf.R9, _STEADY)
        program.jump_if_at_most(bpf.R1, _ENOUGH - 1, "no rhythm")
        program.load64(bpf.R2, bpf.R9, _PERIOD)
        program.jump_if_at_most(bpf.R2, _SHORTEST_NS, "no rhythm")
        program.load64(bpf.R3, bpf.R8, END)
        program.load64(bpf.R4, bpf.R9, _SEEN)
        program.add(bpf.R4, bpf.R2)
        program.jump_if_above_register(bpf.R4, bpf.R3, "no rhythm")
        program.subtract(bpf.R3, bpf.R4)
        program.jump_if_at_most(bpf.R3, _LEAST_LATE_NS, "no rhythm")
        program.jump_if_not_below(bpf.R2, bpf.R3, "no rhythm")
        program.store64(bpf.R10, _LATE, bpf.R3)
        program.jump("late")

    def _write(self, program: bpf.Program) -> None:
        """A record: how late it is, and in place of an address its period; R9 = the place."""
        program.load64(bpf.R1, bpf.R9, _PERIOD)
        program.jump_if_at_most(bpf.R1, _SHORTEST_NS, "no rhythm")
        program.load_constant(bpf.R2, _LONGEST_NS)
        program.jump_if_above_register(bpf.R1, bpf.R2, "no rhythm")
        program.store64(bpf.R8, ADDRESS, bpf.R1)
        program.store32_constant(bpf.R8, KIND, LATE)
        program.load64(bpf.R1, bpf.R10, _LATE)
        program.store64(bpf.R8, WAITED, bpf.R1)
        program.load64(bpf.R1, bpf.R10, _BEATS)  # 0: it has not come yet
        program.store64(bpf.R8, OTHER_RAN, bpf.R1)
        program.store64_constant(bpf.R8, OTHER, 0)
        self.describe(program, bpf.R6, bpf.R8, TASK)
        self.load_queue(program, bpf.R1, bpf.R6)
        program.load32(bpf.R1, bpf.R1, self.places.queue_cpu)
        program.store32(bpf.R8, CPU, bpf.R1)
        take_stack(program, bpf.GET_TASK_STACK, bpf.R6, STACK, STACK_LENGTH)
        program.load64(bpf.R1, bpf.R7, 0)
        program.move(bpf.R2, bpf.R8)
        program.move_constant(bpf.R3, OPEN_BYTES)
        program.call(bpf.SEQ_WRITE)
