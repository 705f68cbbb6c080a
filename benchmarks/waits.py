"""How many injected waits the recorder's source finds, with their kind, and what a switch costs:
`python benchmarks/waits.py [TIMES]`, as root.

Waits of 100 to 300 ms of each kind are made one after the other (tests/injected_waits.py); a wait is
found if a row of its thread says the kind and at least 90 % of the length. Then two processes pass a
byte to and fro over pipes on one core, with the programs attached and without, in turns.
"""

import os
import random
import statistics
import sys
import time
from pathlib import Path

sys.path.insert(0, str(Path(__file__).parents[1]))

from tests.injected_waits import INJECTIONS

from necroscope.model.reading import Moment, Rows
from necroscope.model.units import NS_PER_MS, NS_PER_S
from necroscope.sources.perf.waits import Waits
from necroscope.sources.sysfs import cpus

_ROUNDS = 40_000
_TURNS = 6


def main() -> None:
    times = int(sys.argv[1]) if len(sys.argv) > 1 else 34
    chance, possible = random.Random(1), Path("/sys/devices/system/cpu/possible").read_text()
    source = Waits(Path("/"), cpus.parse(possible), 20 * NS_PER_MS, lambda _: "f")
    _read(source)
    for kind, inject in INJECTIONS.items():
        found = 0
        for _ in range(times):
            seconds = chance.uniform(0.1, 0.3)
            tid = inject(seconds)
            rows = [row for row in _read(source) if row[6] == tid and row[2] == kind]
            found += any(_number(row[1]) >= 0.9 * seconds * NS_PER_S for row in rows)
        print(f"{kind}: {found} of {times} found ({found / times:.1%})", flush=True)
    source.close()
    ratios = []
    for _ in range(_TURNS):
        off = _switches_per_s()
        source = Waits(Path("/"), cpus.parse(possible), 20 * NS_PER_MS, lambda _: None)
        _read(source)
        ratios.append(_switches_per_s() / off)
        source.close()
    low, middle, high = min(ratios), statistics.median(ratios), max(ratios)
    print(
        f"switches per second, attached all the time: {middle:.3f} of without ({low:.3f} to {high:.3f})"
    )


def _read(source: Waits) -> Rows:
    now_ns = time.monotonic_ns()
    return source.read(Moment(now_ns, now_ns)).rows.get("waits", [])


def _number(value: object) -> int:
    return value if isinstance(value, int) else 0


def _switches_per_s() -> float:
    (there_read, there), (back_read, back) = os.pipe(), os.pipe()
    core = max(os.sched_getaffinity(0))
    child = os.fork()
    if child == 0:
        os.sched_setaffinity(0, {core})
        for _ in range(_ROUNDS):
            os.write(back, os.read(there_read, 1))
        os._exit(0)
    allowed = os.sched_getaffinity(0)
    os.sched_setaffinity(0, {core})
    began = time.monotonic()
    for _ in range(_ROUNDS):
        os.write(there, b"x")
        os.read(back_read, 1)
    took_s = time.monotonic() - began
    os.waitpid(child, 0)
    os.sched_setaffinity(0, allowed)
    for descriptor in (there_read, there, back_read, back):
        os.close(descriptor)
    return 2 * _ROUNDS / took_s


if __name__ == "__main__":
    main()
