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
from necroscope.sources.procfs.counters import increases_32_bit
from necroscope.sources.sysfs.cpus import OnlineCpus

_OLDEST_WIDTH: Final = 11
_BACKLOG: Final = 11
_CPU: Final = 12
_LONGEST_LINE_BYTES: Final = 256


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
        self._data = b""
        self._is_numbered = False
        self._before: dict[int, Softnet] = {}
        self._read_at: Moment | None = None

    def read(self, now: Moment) -> Reading:
        lines = self._file.parse(self._parse, longest_record_bytes=_LONGEST_LINE_BYTES)
        reading = Reading()
        if self._read_at is not None:
            reading.rows["softnet"] = self._rows(
                lines, now, now.monotonic_ns - self._read_at.monotonic_ns
            )
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
        """The same bytes are the same lines; and only kernels that do not number them need to know
        who is online.
        """
        if data == self._data and self._is_numbered:
            return self._before
        lines = parse(data, None if self._is_numbered else self._online.read())
        self._data, self._is_numbered = (
            data,
            all(backlog is not None for _counters, backlog in lines.values()),
        )
        return lines

    def _rows(self, lines: dict[int, Softnet], now: Moment, elapsed_ns: int) -> Rows:
        rows = (self._row(cpu, line, now.time_ns, elapsed_ns) for cpu, line in lines.items())
        return [row for row in rows if row is not None]

    def _row(self, cpu: int, line: Softnet, time_ns: int, elapsed_ns: int) -> Row | None:
        before = self._before.get(cpu)
        rises = None if before is None else increases_32_bit(line[0], before[0], elapsed_ns)
        return None if rises is None else (time_ns, cpu, elapsed_ns, *rises, line[1])
