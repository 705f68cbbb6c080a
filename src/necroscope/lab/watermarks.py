"""Memory made scarce without using it up: the kernel's watermarks of free memory are lifted up to
what is free, for seconds at a time.

A zone's watermarks follow from vm.min_free_kbytes (mm/page_alloc.c, __setup_per_zone_wmarks): `low`
is 5/4 of `min` and `high` 6/4 of it. Below `low` an allocation wakes kswapd, which works until
`high`; below `min` it has to reclaim itself. What could go wrong is kept away: out of memory, since
the caches that can be given back always reach above `min`; throttled writers, since their limit
follows free memory unless it is set in bytes; a killed run, since a process that outlives it puts
everything back.
"""

import os
import re
import time
from collections.abc import Iterator
from contextlib import contextmanager, suppress
from dataclasses import dataclass
from pathlib import Path
from typing import Final

from necroscope.lab.actor import Actor
from necroscope.lab.scenario import CannotProvoke
from necroscope.lab.stage import Stage

_MIN_FREE: Final = "/proc/sys/vm/min_free_kbytes"
_RESERVE: Final = "/proc/sys/vm/lowmem_reserve_ratio"
_DIRTY_RATIO: Final = "/proc/sys/vm/dirty_ratio"
_DIRTY_BACKGROUND_RATIO: Final = "/proc/sys/vm/dirty_background_ratio"
_PAGE_KB: Final = os.sysconf("SC_PAGESIZE") // 1024
_MIB_KB: Final = 1024
_GIB_KB: Final = 1024 * 1024
# As parts of `min`, see above.
_LOW: Final = 1.25
_LEAST_FREE_KB: Final = 4 * _GIB_KB
_LEAST_CACHE_KB: Final = 1 * _GIB_KB
_LEAST_MIN_KB: Final = 64 * _MIB_KB


@dataclass(frozen=True, slots=True)
class Zone:
    """The highest zone, which ordinary allocations come from; `share` is its part of all that
    watermarks are spread over.
    """

    free_kb: int
    share: float


def prepare(stage: Stage) -> None:
    """Into the ledger, and what keeps others out of it; nothing is scarce yet."""
    if _value_kb(Path("/proc/meminfo").read_text(), "MemFree") < _LEAST_FREE_KB:
        raise CannotProvoke(
            "less than 4 GiB of memory are free", "the lab needs free memory to make it scarce"
        )
    stage.set_file(_MIN_FREE, Path(_MIN_FREE).read_text())
    # A lower zone must not help out, as none does on a machine whose memory is really used.
    stage.set_file(_RESERVE, " ".join("1" for _ in Path(_RESERVE).read_text().split()))
    for ratio, limit, size in (
        (_DIRTY_BACKGROUND_RATIO, "dirty_background_bytes", 256),
        (_DIRTY_RATIO, "dirty_bytes", 1024),
    ):
        if Path(ratio).read_text().strip() != "0":  # 0: the limit is in bytes already
            stage.set_file(ratio, Path(ratio).read_text())
            Path(ratio).with_name(limit).write_text(str(size << 20))


def press(kind: str, on_s: float, off_s: float, old: str) -> None:
    """A process: scarcity for `on_s`, plenty for `off_s`, and so on. `kind` is kswapd (below `low`)
    or direct (below `min`).
    """
    _leave_guardian(old)
    for end in _bursts(on_s, off_s):
        lifted_kb = 0
        while time.monotonic() < end:
            zone = parse_zone(Path("/proc/zoneinfo").read_text())
            lifted_kb = max(lifted_kb, wanted_min_kb(kind, zone))
            Path(_MIN_FREE).write_text(
                str(min(lifted_kb, safe_min_kb(zone, cache_kb(Path("/proc/meminfo").read_text()))))
            )
            time.sleep(0.05 if kind == "direct" else 0.5)
        Path(_MIN_FREE).write_text(old)


@contextmanager
def pressed(stage: Stage, kind: str) -> Iterator[Actor]:
    """Scarcity in bursts, by a process of its own; plenty again, at once, when the block ends."""
    old = Path(_MIN_FREE).read_text()
    on_s, off_s = stage.random.uniform(4.0, 5.0), stage.random.uniform(1.5, 2.0)
    presser = stage.start(
        press, kind, on_s, off_s, old, comm=stage.invent("tool"), cpu=stage.other_cores, nice=-15
    )
    yield presser
    presser.stop()
    Path(_MIN_FREE).write_text(old)


def parse_zone(text: str) -> Zone:
    """Of the last zone in /proc/zoneinfo that has memory."""
    free = [int(pages) for pages in re.findall(r"pages free +(\d+)", text)]
    managed = [int(pages) for pages in re.findall(r"managed +(\d+)", text)]
    last = max(number for number, pages in enumerate(managed) if pages)
    return Zone(free[last] * _PAGE_KB, managed[last] / sum(managed))


def wanted_min_kb(kind: str, zone: Zone) -> int:
    """What puts all that is free just below the watermark."""
    if kind == "direct":
        return int((zone.free_kb + 64 * _MIB_KB) / zone.share)
    return int((zone.free_kb + 128 * _MIB_KB) / _LOW / zone.share)


def safe_min_kb(zone: Zone, caches_kb: int) -> int:
    """With all caches given back there would still be a good GiB above it, so that nothing is ever
    out of memory.
    """
    return max(_LEAST_MIN_KB, int((zone.free_kb + caches_kb - _LEAST_CACHE_KB) / zone.share))


def cache_kb(meminfo: str) -> int:
    """Of files, which can be given back: without swap nothing else can."""
    return _value_kb(meminfo, "Active(file)") + _value_kb(meminfo, "Inactive(file)")


def _bursts(on_s: float, off_s: float) -> Iterator[float]:
    """The end of each stretch of scarcity."""
    while True:
        yield time.monotonic() + on_s
        time.sleep(off_s)


def _leave_guardian(old: str) -> None:
    """Puts the watermarks back when this process is gone, however it went."""
    reader, writer = os.pipe()
    if os.fork():
        os.close(reader)
        os.set_inheritable(writer, False)
        return
    os.close(writer)
    with suppress(OSError):
        os.read(reader, 1)
    Path(_MIN_FREE).write_text(old)
    os._exit(0)


def _value_kb(meminfo: str, key: str) -> int:
    found = re.search(rf"^{re.escape(key)}: +(\d+)", meminfo, re.MULTILINE)
    return int(found.group(1)) if found else 0
