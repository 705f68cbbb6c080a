"""What network devices counted: their watchdog, resets, losses, allowances and carrier, by the
table `nics`.

A counter has a row when it changes, and one at the start of a segment, so what it was before is its
last row. Packets and bytes change at every read and are left out; so are virtual devices, which
have neither watchdog nor driver.
"""

import re
from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from enum import StrEnum
from typing import Final

import pyarrow as pa
import pyarrow.compute as pc

from necroscope.analysis.recording import Recording
from necroscope.model.definitions import late_ns
from necroscope.model.span import Span
from necroscope.model.tables import TABLES

LATE_NS: Final = late_ns(TABLES["nics"])
_COLUMNS: Final = ("time", "device", "driver", "firmware", "counter", "value")
_QUEUE: Final = re.compile(r"tx-(\d{1,5})/")


class CounterKind(StrEnum):
    """What a rise of it says."""

    WATCHDOG = "its transmit watchdog fired"
    STARVED = "its driver says that a poll got no core"
    FAULT = "its driver says that the device did not answer"
    RESET = "it was reset"
    ALLOWANCE = "the instance's allowance was exceeded"
    LOST = "packets were lost"
    CARRIER = "its link went down and up"


# By kind, over all drivers that were read (ENA 2.17, mlx5, ice, ixgbe, virtio, veth, sysfs).
_FORMS: Final = {
    CounterKind.WATCHDOG: r"(?:tx-\d{1,5}/)?tx_timeout|os_netdev_wd|tx_timeout_count",
    CounterKind.STARVED: r"suspected_poll_starvation",
    CounterKind.FAULT: (
        r"missing_(?:tx_cmpl|intr|first_intr|admin_interrupt)|admin_to|wd_expired|reset_fail"
        r"|device_request_reset"
    ),
    CounterKind.RESET: r"total_resets",
    CounterKind.ALLOWANCE: r"\w{1,40}_allowance_exceeded",
    CounterKind.LOST: (
        r"[rt]x_(?:dropped|errors)|rx_(?:drops|overruns|missed_errors|out_of_buffer)|total_[rt]x_drops"
    ),
    CounterKind.CARRIER: r"carrier_changes",
}
_ALL: Final = "^(?:" + "|".join(_FORMS.values()) + ")$"


@dataclass(frozen=True, slots=True)
class CounterRise:
    """By how much a counter rose until `time_ns`, since the read before. `version` is the driver's
    and the firmware's.
    """

    time_ns: int
    device: str
    counter: str
    kind: CounterKind
    rise: int
    driver: str | None = None
    version: str | None = None

    @property
    def queue(self) -> int | None:
        found = _QUEUE.match(self.counter)
        return int(found[1]) if found else None


def read_rises(recording: Recording, span: Span) -> list[CounterRise]:
    """Every rise of a counter that reports trouble, in order of time."""
    rows = recording.rows("nics", *span, columns=_COLUMNS)
    if not rows.num_rows:
        return []
    counters = rows.column("counter").cast(pa.utf8())
    is_real = pc.fill_null(pc.not_equal(rows.column("driver").cast(pa.utf8()), "veth"), True)
    wanted = rows.filter(pc.and_(is_real, pc.match_substring_regex(counters, _ALL)))
    before: dict[tuple[str, str], int] = {}
    found = []
    for row in wanted.to_pylist():
        key, value = (str(row["device"]), str(row["counter"])), int(row["value"])
        rise = value - before.get(key, value)
        before[key] = value
        # One that fell counts again: since the device was made again, or its driver loaded.
        if rise > 0:
            kind = _kind_of(key[1])
            found.append(
                CounterRise(int(row["time"]), *key, kind, rise, row["driver"], row["firmware"])
            )
    return found


def _kind_of(counter: str) -> CounterKind:
    return next(kind for kind, form in _FORMS.items() if re.fullmatch(form, counter))


def within(rises: Iterable[CounterRise], span: Span) -> list[CounterRise]:
    """Those of a stretch: a read covers the time before it."""
    return [one for one in rises if span[0] < one.time_ns <= span[1] + LATE_NS]


def summed(rises: Sequence[CounterRise]) -> list[tuple[CounterRise, int]]:
    """Of each device and counter the last rise, with the sum of all; the largest first."""
    totals: dict[tuple[str, str], int] = {}
    last: dict[tuple[str, str], CounterRise] = {}
    for one in rises:
        key = one.device, one.counter
        totals[key] = totals.get(key, 0) + one.rise
        last[key] = one
    return sorted(((last[key], total) for key, total in totals.items()), key=lambda item: -item[1])
