"""A sort of more text than fits into its buffer.

What it does: lines of random text are sorted by the machine's own `sort` with several threads and
little memory, so that it writes and merges temporary files, over and over.

Seen in the wild: the shuffle of every batch job, and log files that an engineer looks through.

What must be seen: nothing wrong: user time, some system time for the files, threads that wait for
one another.
"""

import random
import subprocess
from pathlib import Path

from necroscope.lab.busy import busy_and_well
from necroscope.lab.measured import Measurements
from necroscope.lab.scenario import Scenario, Truth
from necroscope.lab.stage import Stage

_LINES = 400_000


def sort_again_and_again(text: str, memory: str, seed: int) -> None:
    """As long as it lives."""
    chosen = random.Random(seed)
    Path(text).write_text("".join(f"{chosen.getrandbits(96):x}\n" for _ in range(_LINES)))
    while True:
        subprocess.run(
            [
                "sort",
                "-S",
                memory,
                "-T",
                Path(text).parent,
                "--parallel=2",
                "-o",
                f"{text}.sorted",
                text,
            ],
            check=True,
        )


class Sort(Scenario):
    name = "sort"
    needs = ("sort", "ip")

    def prepare(self, stage: Stage) -> None:
        stage.make_network(gap_s=0.02)

    def provoke(self, stage: Stage) -> None:
        text, memory = stage.scratch / stage.invent("tool"), stage.random.choice(("2M", "4M", "8M"))
        stage.hold(
            stage.start(
                sort_again_and_again,
                str(text),
                memory,
                stage.random.randrange(1 << 16),
                comm=stage.invent("tool"),
            )
        )

    def verify(self, stage: Stage, measured: Measurements) -> Truth:
        return busy_and_well(stage, measured, least_busy=0.6)
