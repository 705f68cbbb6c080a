"""A pipe whose reader is slower than its writer, as pipes are meant.

What it does: a program writes into a pipe as fast as it can, and another reads it piece by piece,
at the speed of its own work. The writer stands in write(2) most of the time.

Seen in the wild: `tar | ssh`, `pg_dump | gzip`, every shell pipeline.

What must be seen: nothing wrong.
"""

import os
import time

from necroscope.lab.actor import Actor
from necroscope.lab.incidents.stalled_reader import LogPipe
from necroscope.lab.measured import Measurements
from necroscope.lab.scenario import Truth, reached
from necroscope.lab.stage import Stage


def read_slowly(path: str, pause_s: float) -> None:
    pipe = os.open(path, os.O_RDONLY)
    while os.read(pipe, 1 << 16):
        time.sleep(pause_s)


class SlowReader(LogPipe):
    name = "slow-reader"
    twin = "stalled-reader"
    seconds = 15
    pause_s = 0.0

    def start_reader(self, stage: Stage) -> Actor:
        pause_s = stage.random.uniform(0.8, 2.5)
        return stage.start(read_slowly, self.pipe, pause_s, comm=stage.invent("agent"))

    def verify(self, stage: Stage, measured: Measurements) -> Truth:
        stood_s = self.stood_s(stage, measured)
        return Truth({"stood_s": reached("seconds in which the writer stood", stood_s, at_least=5)})
