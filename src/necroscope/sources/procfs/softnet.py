"""Network receive processing by core: /proc/net/softnet_stat (net/core/net-procfs.c), rows of
32-bit numbers in hex.

Columns from 1: 1 processed, 2 dropped, 3 time_squeeze, 10 received_rps, 11 flow_limit; 12 backlog
length and 13 CPU since 5.10. Without column 13 rows are numbered by the online CPUs, because the
kernel leaves offline ones out.
"""

import struct
from collections.abc import Sequence
from pathlib import Path
from typing import Final

from necroscope.model.reading import Gap, Moment, Reading, Row, Rows, Source
from necroscope.sources.kept_file import KeptFile
from necroscope.sources.kept_numbers import KeptNumbers
from necroscope.sources.procfs.counters import increases_32_bit, rises_32_bit
from necroscope.sources.sysfs.cpus import OnlineCpus

_OLDEST_WIDTH: Final = 11
_BACKLOG: Final = 11
_CPU: Final = 12
_LONGEST_LINE_BYTES: Final = 256
_COUNTERS: Final = (0, 1, 2, 9, 10)
# Of a line that has all of them.
_TAKEN: Final = (*_COUNTERS, _BACKLOG, _CPU)


# One core's five counters, and the backlog's length now (None before 5.10).
Softnet = tuple[tuple[int, ...], int | None]


def parse(data: bytes, online: Sequence[int] | None) -> dict[int, Softnet]:
    """The line of each core; `online` numbers the rows of kernels that do not number them."""
    text = data.decode("ascii")
    width = len(text.partition("\n")[0].split())
    raw = bytes.fromhex(text)
    if width < _OLDEST_WIDTH or len(raw) % (4 * width):
        raise ValueError("it is empty or cut")
    words = struct.unpack(f">{len(raw) // 4}I", raw)
    lines = [words[at : at + width] for at in range(0, len(words), width)]
    if width > _CPU:
        return {line[_CPU]: ((*line[:3], *line[9:11]), line[_BACKLOG]) for line in lines}
    cpus = range(len(lines)) if online is None else online
    if len(cpus) != len(lines):
        raise ValueError(f"{len(lines)} lines for {len(cpus)} online CPUs")
    return {cpu: ((*line[:3], *line[9:11]), None) for cpu, line in zip(cpus, lines, strict=True)}


class SoftnetStat(Source):
    """One row a core and tick, of the node's own network namespace."""

    name = "softnet"
    tables: tuple[str, ...] = ("softnet",)

    def __init__(self, root: Path) -> None:
        # /proc/net is the reader's own namespace, also below a host mount: that of PID 1 is the
        # node's.
        of_init = root / "proc/1/net/softnet_stat"
        self._file = KeptFile(of_init if of_init.exists() else root / "proc/net/softnet_stat")
        self._online = OnlineCpus(root)
        self._numbers = KeptNumbers(self._file, base=16, longest_record_bytes=_LONGEST_LINE_BYTES)
        # None: they are in `_numbers`.
        self._before: dict[int, Softnet] | None = {}
        self._read_at: Moment | None = None

    def read(self, now: Moment) -> Reading:
        elapsed_ns = now.monotonic_ns - (self._read_at or now).monotonic_ns
        if self._numbers.take():
            self._before, self._read_at = None, now
            return Reading({"softnet": self._rates(now.time_ns, elapsed_ns)})
        before = self._last_lines()
        lines = self._file.parse(self._parse, longest_record_bytes=_LONGEST_LINE_BYTES)
        reading = Reading()
        if self._read_at is not None:
            rows = [
                _row(now.time_ns, cpu, elapsed_ns, counters, before[cpu][0], backlog)
                for cpu, (counters, backlog) in lines.items()
                if cpu in before
            ]
            reading.rows["softnet"] = [row for row in rows if row is not None]
        elif any(backlog is None for _counters, backlog in lines.values()):
            reading.gaps.append(
                Gap(
                    "softnet",
                    now.time_ns,
                    now.time_ns,
                    "this kernel's softnet_stat has no backlog column",
                )
            )
        self._before, self._read_at = lines, now
        return reading

    def close(self) -> None:
        self._file.close()
        self._online.close()

    def _parse(self, data: bytes) -> dict[int, Softnet]:
        lines = parse(data, self._online.read())
        width = len(data.partition(b"\n")[0].split())
        if width > _CPU:
            self._numbers.learn(
                data, [line * width + place for line in range(len(lines)) for place in _TAKEN]
            )
        return lines

    def _last_lines(self) -> dict[int, Softnet]:
        if self._before is not None:
            return self._before
        numbers, count = self._numbers.values, len(_TAKEN)
        lines = (numbers[at : at + count] for at in range(0, len(numbers), count))
        return {cpu: (tuple(counters), backlog) for *counters, backlog, cpu in lines}

    def _rates(self, time_ns: int, elapsed_ns: int) -> Rows:
        """As long as each core has its line. One that came for another that went is compared with
        nothing.
        """
        values, rises = self._numbers.values, self._numbers.rises
        rows: Rows = []
        for at in range(0, len(values), len(_TAKEN)):
            end = at + len(_COUNTERS)
            risen = rises_32_bit(rises[at:end], elapsed_ns) if not rises[end + 1] else None
            if risen is not None:
                rows.append((time_ns, values[end + 1], elapsed_ns, *risen, values[end]))
        return rows


def _row(
    time_ns: int,
    cpu: int,
    elapsed_ns: int,
    counters: Sequence[int],
    before: Sequence[int],
    backlog: int | None,
) -> Row | None:
    rises = increases_32_bit(counters, before, elapsed_ns)
    return None if rises is None else (time_ns, cpu, elapsed_ns, *rises, backlog)
