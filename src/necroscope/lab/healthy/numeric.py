"""A numeric program, and nothing else.

What it does: one process per core multiplies and adds matrices of floating-point numbers in pure
Python: allocation, cache misses, no system calls worth the name.

Seen in the wild: every training job's data loader and every notebook. User time on all cores is
what such nodes are bought for.

What must be seen: nothing wrong. A core full of user time is not an incident, nor are all cores
full of it.
"""

import random

from necroscope.lab.busy import busy_and_well
from necroscope.lab.measured import Measurements
from necroscope.lab.scenario import Scenario, Truth
from necroscope.lab.stage import Stage


def multiply(size: int, seed: int) -> None:
    """Matrices, as long as it lives."""
    chosen = random.Random(seed)
    left, right = ([[chosen.random() for _ in range(size)] for _ in range(size)] for _ in range(2))
    while True:
        columns = list(zip(*right, strict=True))
        product = [
            [sum(a * b for a, b in zip(row, column, strict=True)) for column in columns]
            for row in left
        ]
        largest = max(max(row) for row in product)
        left = [[value / largest for value in row] for row in product]


class Numeric(Scenario):
    name = "numeric-python"
    twin = "userspace-hog"
    needs = ("ip",)

    def prepare(self, stage: Stage) -> None:
        stage.make_network(gap_s=0.02)

    def provoke(self, stage: Stage) -> None:
        size, comm = stage.random.randrange(60, 120), stage.invent("app")
        cores = [stage.core, *stage.other_cores]
        stage.hold(
            *(
                stage.start(multiply, size, stage.random.randrange(1 << 16), comm=comm)
                for _ in cores
            )
        )

    def verify(self, stage: Stage, measured: Measurements) -> Truth:
        return busy_and_well(stage, measured, least_busy=0.7 * (1 + len(stage.other_cores)))
