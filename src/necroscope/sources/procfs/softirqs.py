"""Softirqs handled by each core, by vector: /proc/softirqs (fs/proc/softirqs.c), counters of 32
bits for every possible CPU.
"""

from functools import lru_cache
from pathlib import Path
from typing import Final

from necroscope.model.reading import Gap, Moment, Reading, Row, Rows, Source, Value
from necroscope.model.tables import SOFTIRQ_VECTORS
from necroscope.sources.kept_file import KeptFile
from necroscope.sources.procfs.counters import increases_32_bit
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


class Softirqs(Source):
    """One row a core and tick, zeros included: a core whose softirqs all stand still is what
    starvation looks like.
    """

    name = "softirqs"
    tables: tuple[str, ...] = ("softirqs",)

    def __init__(self, root: Path) -> None:
        self._file = KeptFile(root / "proc/softirqs")
        self._online = OnlineCpus(root)
        self._before: dict[int, Counts] = {}
        self._read_at: Moment | None = None

    def read(self, now: Moment) -> Reading:
        counts, missing = self._file.parse(parse, record=True)
        reading = Reading()
        if self._read_at is not None:
            reading.rows["softirqs"] = self._rows(counts, missing, now, self._read_at)
        elif missing:
            cause = f"this kernel has no softirq vector {', '.join(missing)}"
            reading.gaps.append(Gap("softirqs", now.time_ns, now.time_ns, cause))
        self._before, self._read_at = counts, now
        return reading

    def close(self) -> None:
        self._file.close()
        self._online.close()

    def _rows(
        self, counts: dict[int, Counts], missing: tuple[str, ...], now: Moment, last: Moment
    ) -> Rows:
        elapsed_ns = now.monotonic_ns - last.monotonic_ns
        rows: Rows = []
        still: set[Value] = set()
        for cpu, values in counts.items():
            before = self._before.get(cpu)
            rises = None if before is None else increases_32_bit(values, before, elapsed_ns)
            if rises is not None:
                rows.append(
                    (
                        now.time_ns,
                        cpu,
                        elapsed_ns,
                        *(_with_missing(rises, missing) if missing else rises),
                    )
                )
            if before is None or not any(rises or ()):
                still.add(cpu)
        offline = still - set(self._online.read() or still) if still else ()
        if not offline:
            return rows
        # Every possible CPU has a column, and one that is offline would look frozen. Back online it
        # is compared with nothing.
        for cpu in counts.keys() & offline:
            del counts[cpu]
        return [row for row in rows if row[1] not in offline]


def _with_missing(rises: list[int], missing: tuple[str, ...]) -> Row:
    left = iter(rises)
    return tuple(None if vector in missing else next(left) for vector in SOFTIRQ_VECTORS)
