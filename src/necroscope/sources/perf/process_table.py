"""A table of processes by number at the beginning of a BPF map: the program leaves out all others.
Of two processes that meet at one place the later stays.
"""

from collections.abc import Iterable
from typing import Final

from necroscope.sources.perf import bpf_assembler as bpf
from necroscope.sources.perf.bpf import MapValue

_PROCESSES: Final = 1024
_SHIFT: Final = 3
TABLE_BYTES: Final = _PROCESSES << _SHIFT


def write_processes(table: MapValue, pids: Iterable[int]) -> None:
    """Into a map that is clear."""
    for pid in pids:
        table.write_word((pid % _PROCESSES) << _SHIFT, pid)


def leave_out_others(program: bpf.Program, own_map: int) -> None:
    """To `out`, unless the process whose number is in R1 is in the table."""
    program.load_map_value(bpf.R3, own_map)
    program.move(bpf.R2, bpf.R1)
    program.keep_bits(bpf.R2, _PROCESSES - 1)
    program.shift_left(bpf.R2, _SHIFT)
    program.add(bpf.R3, bpf.R2)
    program.load64(bpf.R2, bpf.R3, 0)
    program.jump_if_differs(bpf.R1, bpf.R2, "out")
