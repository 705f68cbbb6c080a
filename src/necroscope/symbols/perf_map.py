"""JIT symbols from /tmp/perf-PID.map (tools/perf/Documentation/jit-interface.txt): lines of `START SIZE name`, in hexadecimal."""

from collections.abc import Sequence
from typing import Final

import numpy as np

from necroscope.symbols.demangle import demangle
from necroscope.symbols.table import ADDRESS_END, as_addresses

# The newest entries are at the end: of a longer map only this much of its end is read.
MAP_LIMIT_BYTES: Final = 16 << 20


class PerfMap:
    """Grows with its file: `append` takes what was written since."""

    def __init__(self) -> None:
        self._starts = np.zeros(0, np.uint64)
        self._ends = np.zeros(0, np.uint64)
        self._names: list[bytes] = []
        self._names_bytes = 0

    def __len__(self) -> int:
        return len(self._names)

    @property
    def size_bytes(self) -> int:
        # 33 bytes of header and 8 of list slot for each name.
        return self._starts.nbytes + self._ends.nbytes + self._names_bytes + 41 * len(self._names)

    def append(self, text: bytes) -> int:
        """Take in whole lines; returns how many bytes that was. A line being written stays for the next time."""
        length = text.rfind(b"\n") + 1
        entries = [entry for line in text[:length].split(b"\n") if (entry := _parse_line(line))]
        self._starts = np.append(self._starts, np.array([start for start, _, _ in entries], np.uint64))
        self._ends = np.append(self._ends, np.array([end for _, end, _ in entries], np.uint64))
        self._names += [name for _, _, name in entries]
        self._names_bytes += sum(len(name) for _, _, name in entries)
        return length

    def lookup(self, addresses: Sequence[int]) -> list[str | None]:
        """JITs use memory again, so of all entries around an address the last one written holds."""
        names: list[str | None] = []
        for address in as_addresses(addresses):
            around = np.flatnonzero((self._starts <= address) & (address < self._ends))
            names.append(demangle(self._names[around[-1]]) if len(around) else None)
        return names


def _parse_line(line: bytes) -> tuple[int, int, bytes] | None:
    parts = line.split(b" ", 2)
    if len(parts) != 3 or not parts[2].strip() or len(parts[0]) > 18 or len(parts[1]) > 18:
        return None
    try:
        start, size = int(parts[0], 16), int(parts[1], 16)
    except ValueError:
        return None
    is_range = start >= 0 and size > 0 and start + size < ADDRESS_END
    return (start, start + size, parts[2].strip()[:512]) if is_range else None
