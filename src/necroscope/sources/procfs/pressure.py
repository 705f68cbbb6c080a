"""Time that work stalled for lack of a resource: /proc/pressure (kernel/sched/psi.c), whose
`total=` counts microseconds.

`irq` exists since 6.1 where interrupt time is accounted, and has no `some` line. `cpu` has a `full`
line since 5.13.
"""

import re
from pathlib import Path
from typing import Final

from necroscope.errors import SourceUnavailable
from necroscope.model.reading import Gap, Moment, Reading, Row, Source
from necroscope.model.units import NS_PER_US
from necroscope.sources.kept_file import KeptFile
from necroscope.sources.kept_numbers import KeptNumbers

_LINE: Final = re.compile(rb"(\w+) .*total=(\d+)\n")
_RESOURCES: Final = ("cpu", "memory", "io")
Totals = tuple[int | None, int | None]


def parse(data: bytes) -> Totals:
    """Stalled time of `some` and of `full` since boot, in ns."""
    totals = {kind: int(total_us) * NS_PER_US for kind, total_us in _LINE.findall(data)}
    if not totals or len(totals) != data.count(b"\n"):
        raise ValueError("it is empty or cut")
    return totals.get(b"some"), totals.get(b"full")


class _Resource:
    """The totals of one file."""

    def __init__(self, path: Path) -> None:
        self.file = KeptFile(path)
        self._numbers = KeptNumbers(self.file)
        self._kinds: list[bytes] = []

    def read(self) -> Totals:
        if not self._numbers.take():
            return self.file.parse(self._parse, record=True)
        totals_us = dict(zip(self._kinds, self._numbers.values, strict=True))
        some_us, full_us = totals_us.get(b"some"), totals_us.get(b"full")
        return (
            None if some_us is None else some_us * NS_PER_US,
            None if full_us is None else full_us * NS_PER_US,
        )

    def _parse(self, data: bytes) -> Totals:
        totals = parse(data)
        words = data.replace(b"=", b" ").split()
        self._numbers.learn(data, [at for at, word in enumerate(words, 1) if word == b"total"])
        self._kinds = [line.partition(b" ")[0] for line in data.splitlines()]
        return totals


class Pressure(Source):
    """One row a resource and tick."""

    name = "pressure"
    tables: tuple[str, ...] = ("pressure",)

    def __init__(self, root: Path) -> None:
        folder = root / "proc/pressure"
        resources = (*_RESOURCES, "irq") if (folder / "irq").exists() else _RESOURCES
        self._resources = {resource: _Resource(folder / resource) for resource in resources}
        self._before: dict[str, Totals] = {}
        self._read_at: Moment | None = None

    def read(self, now: Moment) -> Reading:
        try:
            totals = {name: resource.read() for name, resource in self._resources.items()}
        except SourceUnavailable as error:
            raise SourceUnavailable(
                error.facts, "boot with psi=1 on a kernel that has CONFIG_PSI"
            ) from None
        reading = Reading()
        if self._read_at is None:
            reading.gaps += _missing(totals, now)
        else:
            elapsed_ns = now.monotonic_ns - self._read_at.monotonic_ns
            rows = [
                self._row(resource, totals[resource], now.time_ns, elapsed_ns)
                for resource in totals
            ]
            reading.rows["pressure"] = [row for row in rows if row is not None]
        self._before, self._read_at = totals, now
        return reading

    def close(self) -> None:
        for resource in self._resources.values():
            resource.file.close()

    def _row(self, resource: str, totals: Totals, time_ns: int, elapsed_ns: int) -> Row | None:
        (some, full), (some_before, full_before) = totals, self._before[resource]
        some_ns = None if some is None or some_before is None else some - some_before
        full_ns = None if full is None or full_before is None else full - full_before
        if (some_ns or 0) < 0 or (full_ns or 0) < 0:
            return None
        return (time_ns, resource, elapsed_ns, some_ns, full_ns)


def _missing(totals: dict[str, Totals], now: Moment) -> list[Gap]:
    lacking = [resource for resource in _RESOURCES if None in totals[resource]]
    return [
        Gap(
            "pressure",
            now.time_ns,
            now.time_ns,
            f"this kernel's {resource} pressure has no full line",
        )
        for resource in lacking
    ]
