"""What the recorder costs others: small victims with it and without it, in turns, and how sure the
ratio is.
"""

import os
import random
import statistics
import subprocess
import sys
import time
from collections.abc import Callable, Sequence
from contextlib import AbstractContextManager, nullcontext
from pathlib import Path

TURNS = 8
# Packets for two rounds of the softirq probe, which at their rate times one second and rests eleven
# (sources/perf/probe_rest.py).
# Switches for two rounds of the probe of waits, which rests for up to fourteen ticks.
SECONDS = {
    "loopback packets": 24.0,
    "forks": 5.0,
    "system calls": 5.0,
    "pipe switches": 30.0,
    "pipe switches and work": 30.0,
}
HEAD = [
    "operation",
    "a second, off",
    "on / off by CPU time (95 % interval)",
    "on / off by wall time (95 % interval)",
]
_SETTLE_S = 2.5
_RESAMPLES = 2000

Speeds = dict[str, tuple[float, float]]


def others_rows(
    recorded: Callable[[], AbstractContextManager[object]], turns: int = TURNS
) -> list[list[str]]:
    """A row for each victim. Who is first changes from turn to turn, because a machine drifts."""
    pairs: list[tuple[Speeds, Speeds]] = []
    for turn in range(turns):
        both = {
            is_on: _speeds(recorded() if is_on else nullcontext())
            for is_on in ((True, False) if turn % 2 else (False, True))
        }
        pairs.append((both[True], both[False]))
    return [_row(name, [(on[name], off[name]) for on, off in pairs]) for name in SECONDS]


def interval(ratios: Sequence[float]) -> tuple[float, float, float]:
    """The median, and between which values it lies in 95 of 100 draws of as many turns from
    these.
    """
    chance = random.Random(1)
    medians = sorted(
        statistics.median(chance.choices(ratios, k=len(ratios))) for _ in range(_RESAMPLES)
    )
    return statistics.median(ratios), medians[_RESAMPLES // 40], medians[-1 - _RESAMPLES // 40]


def speed(name: str, seconds: float) -> tuple[float, float]:
    """Operations a second of CPU time and of wall time, of the whole run: what comes and goes is in
    it as often as it came.
    """
    command = [sys.executable, "-I", "-S", str(Path(__file__).with_name("victims.py"))]
    core = (os.cpu_count() or 1) - 1
    done = subprocess.run(
        [*command, name, str(seconds), str(core)], capture_output=True, text=True, check=True
    )
    slices = [[float(number) for number in line.split()] for line in done.stdout.splitlines()]
    count, cpu_s, wall_s = (sum(column) for column in zip(*slices, strict=True))
    return count / cpu_s, count / wall_s


def _speeds(recorded: AbstractContextManager[object]) -> Speeds:
    with recorded:
        time.sleep(_SETTLE_S)
        return {name: speed(name, seconds) for name, seconds in SECONDS.items()}


def _row(name: str, pairs: list[tuple[tuple[float, float], tuple[float, float]]]) -> list[str]:
    found = []
    for clock in range(2):
        ratio, low, high = interval([on[clock] / off[clock] for on, off in pairs])
        found.append(f"{ratio:.4f} ({low:.4f} to {high:.4f})")
    return [name, f"{statistics.median(off[0] for _, off in pairs):,.0f}", *found]
