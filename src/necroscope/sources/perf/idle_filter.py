"""Drops samples of idle cores in the kernel: a BPF program at the sampling event that decides
before perf writes.

A sample is idle if the idle task was interrupted inside one of the functions of `model/idle.py`:
the rule that user space applies to the innermost address. An interrupt on an idle core is work: the
clock then interrupts its handler, which is not one of these functions, and perf writes its record.

The ranges are constants of the program: the kernel's own text does not move until the next boot.
Idle functions in modules are not among them (acpi_idle may be a module); their samples reach user
space and are dropped there.

The price: the kernel does not run a perf event's program while another program runs on that core by
kprobe, by perf's tracepoints or in a map operation, and drops the sample (`bpf_prog_active`,
bpf_overflow_handler in kernel/events/core.c). Measured on 6.18 with a slow program on
raw_syscalls:sys_enter: 11,239 samples inside it without the filter, 0 with it, which the count does
not show. Programs on raw tracepoints, as our own, are seen as before (11,633 and 11,636). Therefore
the filter works only while no program of those types is loaded (`is_harmless`).
"""

import platform
from collections.abc import Sequence
from typing import Final

from necroscope.errors import NecroscopeError, SourceUnavailable
from necroscope.sources.perf import bpf_assembler as bpf
from necroscope.sources.perf.bpf import (
    PROG_TYPE_KPROBE,
    PROG_TYPE_TRACEPOINT,
    PerCpuValue,
    PerfEventProgram,
    allow_locked_memory,
    program_types,
)

Range = tuple[int, int]
# Where struct bpf_perf_event_data has the interrupted address: its registers come first, in the
# layout of pt_regs (x86) and of user_pt_regs (aarch64).
ADDRESS_OFFSETS: Final = {"x86_64": 128, "aarch64": 256}
_HIDDEN_TYPES: Final = frozenset({PROG_TYPE_KPROBE, PROG_TYPE_TRACEPOINT})
_DROP: Final = 0
_WRITE: Final = 1
_STACK_KEY: Final = -4
_HINT: Final = "idle samples are dropped after they were read instead: this costs CPU only"


class IdleFilter:
    """One program for the sampling events of all cores, until it is taken off them or closed."""

    def __init__(self, ranges: Sequence[Range], cpus: int) -> None:
        """`cpus` are the possible ones, also those that are not online: the kernel writes a count
        for each.
        """
        address_offset = ADDRESS_OFFSETS.get(platform.machine())
        if address_offset is None:
            raise SourceUnavailable(
                f"no BPF filter for idle samples on {platform.machine()}", _HINT
            )
        self._types: dict[int, int] = {}
        allow_locked_memory()
        try:
            self._count = PerCpuValue(8, cpus)
        except OSError as error:
            raise _unavailable(error) from None
        try:
            self._program = PerfEventProgram(
                filter_program(merge(ranges), self._count.descriptor, address_offset)
            )
        except OSError as error:
            self._count.close()
            raise _unavailable(error) from None
        except BaseException:
            self._count.close()
            raise

    def attach(self, descriptor: int) -> None:
        """To a sampling event, whether it runs already or not."""
        try:
            self._program.attach(descriptor)
        except OSError as error:
            raise _unavailable(error) from None

    def detach(self, descriptor: int) -> None:
        self._program.detach(descriptor)

    def is_harmless(self) -> bool:
        """Whether no program is loaded that samples would be missed of."""
        try:
            self._types = program_types(self._types)
        except (NecroscopeError, OSError):  # who may not look (CAP_SYS_ADMIN) cannot know
            return False
        return _HIDDEN_TYPES.isdisjoint(self._types.values())

    def dropped(self) -> int:
        """Idle samples of all cores that perf did not write; it only grows."""
        return sum(memoryview(self._count.read()).cast("Q"))

    def close(self) -> None:
        self._program.close()
        self._count.close()


def make_idle_filter(ranges: Sequence[Range], cpus: int) -> IdleFilter | None:
    """None where there can be none: BPF is not allowed, kernel symbols are hidden, or all idle
    functions are in modules.
    """
    if not merge(ranges):
        return None
    try:
        return IdleFilter(ranges, cpus)
    except NecroscopeError:
        return None


def merge(ranges: Sequence[Range]) -> list[Range]:
    """In order, without those that are empty or hidden (from address 0), and with those that touch
    as one.
    """
    merged: list[Range] = []
    for start, end in sorted(ranges):
        if not 0 < start < end:
            continue
        if merged and start <= merged[-1][1]:
            merged[-1] = merged[-1][0], max(merged[-1][1], end)
        else:
            merged.append((start, end))
    return merged


def filter_program(ranges: Sequence[Range], count: int, address_offset: int) -> bytes:
    """`ranges` are in order, `count` is the descriptor of the map. Instructions of Linux 4.9 only:
    it has no "jump if below".
    """
    program = bpf.Program()
    program.move(bpf.R6, bpf.R1)
    program.call(bpf.GET_CURRENT_PID_TGID)
    program.jump_if_not_equal(bpf.R0, 0, "write")
    program.load64(bpf.R6, bpf.R6, address_offset)
    for start, end in ranges:
        program.load_constant(bpf.R1, start)
        program.jump_if_above_register(bpf.R1, bpf.R6, "write")
        program.load_constant(bpf.R1, end)
        program.jump_if_above_register(bpf.R1, bpf.R6, "idle")
    program.label("write")
    program.move_constant(bpf.R0, _WRITE)
    program.leave()
    program.label("idle")
    program.store32_constant(bpf.R10, _STACK_KEY, 0)
    program.load_map(bpf.R1, count)
    program.move(bpf.R2, bpf.R10)
    program.add_constant(bpf.R2, _STACK_KEY)
    program.call(bpf.MAP_LOOKUP)
    program.jump_if_equal(bpf.R0, 0, "drop")
    program.load64(bpf.R1, bpf.R0, 0)
    program.add_constant(bpf.R1, 1)
    program.store64(bpf.R0, 0, bpf.R1)
    program.label("drop")
    program.move_constant(bpf.R0, _DROP)
    program.leave()
    return program.code()


def _unavailable(error: OSError) -> SourceUnavailable:
    return SourceUnavailable(f"cannot filter idle samples by BPF: {error.strerror}", _HINT)
