"""What the recorder costs others: small victims with it and without it, in turns, and how sure the ratio is."""

import os
import random
import statistics
import subprocess
import sys
import time
from collections.abc import Callable, Sequence
from contextlib import AbstractContextManager
from pathlib import Path

from victims import VICTIMS

TURNS = 16
_SECONDS = 2.0
_SETTLE_S = 2.5
_RESAMPLES = 2000


def others_rows(recorded: Callable[[], AbstractContextManager[object]], turns: int = TURNS) -> list[list[str]]:
    """A row for each victim: its speed, the ratio with a 95 % interval, and the same by wall time."""
    return [_row(name, pairs(name, recorded, turns)) for name in VICTIMS]


def pairs(name: str, recorded: Callable[[], AbstractContextManager[object]], turns: int) -> list[tuple[list[float], list[float]]]:
    """(with, without) of each turn, each as speed by CPU time and by wall time. Who is first changes, because a machine drifts."""
    found = []
    for turn in range(turns):
        speeds = {}
        for is_on in (True, False) if turn % 2 else (False, True):
            if is_on:
                with recorded():
                    time.sleep(_SETTLE_S)
                    speeds[is_on] = speed(name)
            else:
                speeds[is_on] = speed(name)
        found.append((speeds[True], speeds[False]))
    return found


def speed(name: str) -> list[float]:
    """Medians over the tenths of a second: by CPU time, by wall time."""
    command = [sys.executable, "-I", "-S", str(Path(__file__).with_name("victims.py"))]
    core = (os.cpu_count() or 1) - 1
    done = subprocess.run([*command, name, str(_SECONDS), str(core)], capture_output=True, text=True, check=True)
    slices = [[float(number) for number in line.split()] for line in done.stdout.splitlines()]
    return [statistics.median(column) for column in zip(*slices, strict=True)]


def interval(ratios: Sequence[float]) -> tuple[float, float, float]:
    """The median, and between which values it lies in 95 of 100 draws of as many turns from these."""
    chance = random.Random(1)
    medians = sorted(statistics.median(chance.choices(ratios, k=len(ratios))) for _ in range(_RESAMPLES))
    return statistics.median(ratios), medians[_RESAMPLES // 40], medians[-1 - _RESAMPLES // 40]


def _row(name: str, found: list[tuple[list[float], list[float]]]) -> list[str]:
    by_clock = []
    for clock in range(2):
        ratio, low, high = interval([on[clock] / off[clock] for on, off in found])
        by_clock.append(f"{ratio:.4f} ({low:.4f} to {high:.4f})")
    return [name, f"{statistics.median(off[0] for _, off in found):,.0f}", *by_clock]
