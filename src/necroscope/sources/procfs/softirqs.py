"""Softirqs handled by each core, by vector: /proc/softirqs (fs/proc/softirqs.c), counters of 32
bits for every possible CPU.
"""

from collections.abc import Mapping, Sequence
from functools import lru_cache
from pathlib import Path
from typing import Final

from necroscope.model.reading import Gap, Moment, Reading, Row, Rows, Source, Value
from necroscope.model.tables import SOFTIRQ_VECTORS
from necroscope.sources.kept_file import KeptFile
from necroscope.sources.kept_numbers import KeptNumbers
from necroscope.sources.procfs.counters import increases_32_bit, rises_32_bit
from necroscope.sources.sysfs.cpus import OnlineCpus

_LABELS: Final = tuple(f"{vector.upper()}:".encode() for vector in SOFTIRQ_VECTORS)
Counts = tuple[int, ...]


def parse(data: bytes) -> tuple[dict[int, Counts], tuple[str, ...]]:
    """Counts of each CPU in the order of SOFTIRQ_VECTORS, and the vectors this kernel lacks (their
    counts are left out).
    """
    # One line of CPUs, then lines of a label and a number for each of them: all words together are
    # columns.
    cpus = _cpus(data[: data.index(b"\n")])
    words = data[: data.rfind(b"\n") + 1].split()
    width = len(cpus) + 1
    labels = tuple(words[width - 1 :: width])
    if len(words) != width - 1 + width * len(labels) or b"".join(labels).count(b":") != len(labels):
        raise ValueError("a vector has not one number for each CPU")
    places, missing = _places(labels)
    if not cpus or not places:
        raise ValueError("it is empty or cut")
    return {
        cpu: tuple(map(int, map(words[width + at :: width].__getitem__, places)))
        for at, cpu in enumerate(cpus)
    }, missing


@lru_cache(maxsize=8)
def _cpus(header: bytes) -> tuple[int, ...]:
    return tuple(int(name) for name in header.replace(b"CPU", b"").split())


@lru_cache(maxsize=8)
def _places(labels: tuple[bytes, ...]) -> tuple[tuple[int, ...], tuple[str, ...]]:
    """Which line holds each vector, and the vectors that none holds."""
    missing = tuple(
        vector
        for vector, label in zip(SOFTIRQ_VECTORS, _LABELS, strict=True)
        if label not in labels
    )
    return tuple(labels.index(label) for label in _LABELS if label in labels), missing


def _number_places(data: bytes) -> list[int]:
    """The words that hold the counts, vector by vector; none if their lines are in another order
    than ours.
    """
    cpus = len(_cpus(data[: data.index(b"\n")]))
    lines, _missing = _places(tuple(data.split()[cpus :: cpus + 1]))
    if list(lines) != sorted(lines):
        return []
    return [cpus + line * (cpus + 1) + 1 + cpu for line in lines for cpu in range(cpus)]


class Softirqs(Source):
    """One row a core and tick, zeros included: a core whose softirqs all stand still is what
    starvation looks like.
    """

    name = "softirqs"
    tables: tuple[str, ...] = ("softirqs",)

    def __init__(self, root: Path) -> None:
        self._file = KeptFile(root / "proc/softirqs")
        self._online = OnlineCpus(root)
        self._numbers = KeptNumbers(self._file)
        self._cpus: tuple[int, ...] = ()
        self._missing: tuple[str, ...] = ()
        # None: they are in `_numbers`.
        self._before: dict[int, Counts] | None = {}
        # Offline at the last read: the next is compared with nothing.
        self._offline: set[Value] = set()
        self._read_at: Moment | None = None

    def read(self, now: Moment) -> Reading:
        last = self._read_at
        elapsed_ns = now.monotonic_ns - (last or now).monotonic_ns
        reading = Reading()
        rises: Mapping[int, Sequence[int] | None]
        if self._numbers.take():
            numbers, width, self._before = self._numbers.rises, len(self._cpus), None
            rises = {
                cpu: rises_32_bit(numbers[place::width], elapsed_ns)
                for place, cpu in enumerate(self._cpus)
            }
        else:
            before = self._last_counts()
            counts, self._missing = self._file.parse(self._parse, record=True)
            rises = {
                cpu: increases_32_bit(values, before[cpu], elapsed_ns) if cpu in before else None
                for cpu, values in counts.items()
            }
            self._before = counts
        if last is not None:
            reading.rows["softirqs"] = self._rows(rises, now, elapsed_ns)
        elif self._missing:
            cause = f"this kernel has no softirq vector {', '.join(self._missing)}"
            reading.gaps.append(Gap("softirqs", now.time_ns, now.time_ns, cause))
        self._read_at = now
        return reading

    def close(self) -> None:
        self._file.close()
        self._online.close()

    def _last_counts(self) -> dict[int, Counts]:
        if self._before is not None:
            return self._before
        numbers, width = self._numbers.values, len(self._cpus)
        return {cpu: numbers[place::width] for place, cpu in enumerate(self._cpus)}

    def _parse(self, data: bytes) -> tuple[dict[int, Counts], tuple[str, ...]]:
        counts, missing = parse(data)
        self._numbers.learn(data, _number_places(data))
        self._cpus = tuple(counts)
        return counts, missing

    def _rows(
        self, rises_of: Mapping[int, Sequence[int] | None], now: Moment, elapsed_ns: int
    ) -> Rows:
        rows: Rows = []
        still: set[Value] = set()
        for cpu, rises in rises_of.items():
            if rises is not None and cpu not in self._offline:
                values = _with_missing(rises, self._missing) if self._missing else rises
                rows.append((now.time_ns, cpu, elapsed_ns, *values))
            if not any(rises or ()):
                still.add(cpu)
        # Every possible CPU has a column, and one that is offline would look frozen.
        self._offline = still - set(self._online.read() or still) if still else still
        return [row for row in rows if row[1] not in self._offline] if self._offline else rows


def _with_missing(rises: Sequence[int], missing: tuple[str, ...]) -> Row:
    left = iter(rises)
    return tuple(None if vector in missing else next(left) for vector in SOFTIRQ_VECTORS)
