"""Logs are compressed.

What it does: the machine's own `gzip` packs files one after the other, reading and writing the page
cache.

Seen in the wild: log rotation and every backup. One thread, one core, user time in a compression
library: it moves between cores and leaves room to tasks that want it.

What must be seen: nothing wrong.
"""

import random
import subprocess
from pathlib import Path

from necroscope.lab.busy import busy_and_well
from necroscope.lab.measured import Measurements
from necroscope.lab.scenario import Scenario, Truth
from necroscope.lab.stage import Stage

_WORDS = (
    "GET",
    "POST",
    "/index",
    "/api/v1/items",
    "200",
    "404",
    "500",
    "user",
    "took",
    "ms",
    "error",
    "timeout",
    "retry",
)


def compress_again_and_again(log: str, level: int, seed: int) -> None:
    """As long as it lives."""
    chosen = random.Random(seed)
    lines = (
        " ".join(chosen.choices(_WORDS, k=8)) + f" {chosen.getrandbits(32)}\n"
        for _ in range(300_000)
    )
    Path(log).write_text("".join(lines))
    while True:
        subprocess.run(["gzip", f"-{level}", "--keep", "--force", log], check=True)


class Gzip(Scenario):
    name = "gzip"
    twin = "userspace-hog"
    # Where no other task wants a core it may stay on one for all its life.
    tolerates = ("userspace-hog",)
    needs = ("gzip", "ip")

    def prepare(self, stage: Stage) -> None:
        stage.make_network(gap_s=0.02)

    def provoke(self, stage: Stage) -> None:
        log, level = stage.scratch / f"{stage.invent('app')}.log", stage.random.randrange(5, 10)
        stage.hold(
            stage.start(
                compress_again_and_again,
                str(log),
                level,
                stage.random.randrange(1 << 16),
                comm=stage.invent("tool"),
            )
        )

    def verify(self, stage: Stage, measured: Measurements) -> Truth:
        return busy_and_well(stage, measured, least_busy=0.6)
