"""Softirqs handled by each core, by vector: /proc/softirqs (fs/proc/softirqs.c), counters of 32 bits for every possible CPU."""

from pathlib import Path
from typing import Final

from necroscope.model.reading import Gap, Moment, Reading, Row, Rows
from necroscope.model.tables import SOFTIRQ_VECTORS
from necroscope.sources.kept_file import KeptFile
from necroscope.sources.procfs.counters import increases_32_bit
from necroscope.sources.sysfs.cpus import OnlineCpus

_LABELS: Final = tuple(f"{vector.upper()}:".encode() for vector in SOFTIRQ_VECTORS)
Counts = tuple[int, ...]


def parse(data: bytes) -> tuple[dict[int, Counts], tuple[str, ...]]:
    """Counts of each CPU in the order of SOFTIRQ_VECTORS, and the vectors this kernel lacks (their counts are left out)."""
    header, *lines = data.splitlines()[: data.count(b"\n")]
    cpus = [int(name) for name in header.replace(b"CPU", b"").split()]
    counts = {}
    for line in lines:
        label, *numbers = line.split()
        if len(numbers) != len(cpus):
            raise ValueError("a vector has not one number for each CPU")
        counts[label] = map(int, numbers)
    present = [counts[label] for label in _LABELS if label in counts]
    missing = tuple(vector for vector, label in zip(SOFTIRQ_VECTORS, _LABELS, strict=True) if label not in counts)
    if not cpus or not present:
        raise ValueError("it is empty or cut")
    return dict(zip(cpus, zip(*present, strict=True), strict=True)), missing


class Softirqs:
    """One row a core and tick, zeros included: a core whose softirqs all stand still is what starvation looks like."""

    name = "softirqs"
    tables: tuple[str, ...] = ("softirqs",)
    period_s = 1.0

    def __init__(self, root: Path) -> None:
        self._file = KeptFile(root / "proc/softirqs")
        self._online = OnlineCpus(root)
        self._before: dict[int, Counts] = {}
        self._read_at: Moment | None = None

    def read(self, now: Moment) -> Reading:
        counts, missing = self._file.parse(parse)
        # Every possible CPU has a column. One that is offline would look frozen, so only those online count.
        online = self._online.read()
        if online is not None:
            counts = {cpu: counts[cpu] for cpu in online if cpu in counts}
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

    def _rows(self, counts: dict[int, Counts], missing: tuple[str, ...], now: Moment, last: Moment) -> Rows:
        elapsed_ns = now.monotonic_ns - last.monotonic_ns
        rows: Rows = []
        for cpu, values in counts.items():
            before = self._before.get(cpu)
            rises = None if before is None else increases_32_bit(values, before, elapsed_ns)
            if rises is not None:
                rows.append((now.time_ns, cpu, elapsed_ns, *(_with_missing(rises, missing) if missing else rises)))
        return rows


def _with_missing(rises: list[int], missing: tuple[str, ...]) -> Row:
    left = iter(rises)
    return tuple(None if vector in missing else next(left) for vector in SOFTIRQ_VECTORS)
