"""JIT symbols from /tmp/perf-PID.map (tools/perf/Documentation/jit-interface.txt): lines of `START
SIZE name`, in hexadecimal.
"""

from collections import defaultdict, deque
from collections.abc import Sequence
from typing import Final

from necroscope.symbols.demangle import demangle

# The newest entries are at the end: of a longer map only this much of its end is read.
MAP_LIMIT_BYTES: Final = 16 << 20
_ADDRESS_END: Final = 1 << 64
_PAGE_BITS: Final = 12
# An entry of more pages than this is looked at for every address instead of being noted for each of
# its pages.
_MOST_PAGES: Final = 16
# The process that writes the map could put all entries around one address. A page has no more
# functions than bytes, and few functions are larger than 64 KiB: older ones were written over.
_MOST_OF_PAGE: Final = 1 << _PAGE_BITS
_MOST_LARGE: Final = 1024

Entry = tuple[int, int, bytes]
# A tuple with two numbers and a name in addition to its text, and its place in one list or two.
_ENTRY_BYTES: Final = 200


class PerfMap:
    """Grows with its file: `append` takes what was written since."""

    def __init__(self) -> None:
        self._by_page: defaultdict[int, deque[tuple[int, Entry]]] = defaultdict(
            lambda: deque(maxlen=_MOST_OF_PAGE)
        )
        self._large: deque[tuple[int, Entry]] = deque(maxlen=_MOST_LARGE)
        self._count = 0
        self._names_bytes = 0

    def __len__(self) -> int:
        return self._count

    @property
    def size_bytes(self) -> int:
        return self._names_bytes + _ENTRY_BYTES * self._count

    def append(self, text: bytes) -> int:
        """Take in whole lines; returns how many bytes that was. A line being written stays for the
        next time.
        """
        length = text.rfind(b"\n") + 1
        for line in text[:length].split(b"\n"):
            entry = _parse_line(line)
            if entry is not None:
                self._add(entry)
        return length

    def lookup(self, addresses: Sequence[int]) -> list[str | None]:
        """JITs use memory again, so of all entries around an address the last one written holds."""
        return [self._find(address) for address in addresses]

    def _add(self, entry: Entry) -> None:
        self._count += 1
        self._names_bytes += len(entry[2])
        pages = range(entry[0] >> _PAGE_BITS, (entry[1] - 1 >> _PAGE_BITS) + 1)
        if len(pages) > _MOST_PAGES:
            self._large.append((self._count, entry))
        else:
            for page in pages:
                self._by_page[page].append((self._count, entry))

    def _find(self, address: int) -> str | None:
        candidates = (*self._by_page.get(address >> _PAGE_BITS, ()), *self._large)
        around = [
            (number, name) for number, (start, end, name) in candidates if start <= address < end
        ]
        return demangle(max(around)[1]) if around else None


def _parse_line(line: bytes) -> Entry | None:
    parts = line.split(b" ", 2)
    if len(parts) != 3 or not parts[2].strip() or len(parts[0]) > 18 or len(parts[1]) > 18:
        return None
    try:
        start, size = int(parts[0], 16), int(parts[1], 16)
    except ValueError:
        return None
    is_range = start >= 0 and size > 0 and start + size < _ADDRESS_END
    return (start, start + size, parts[2].strip()[:512]) if is_range else None
