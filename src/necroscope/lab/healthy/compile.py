"""A build on all cores.

What it does: C files, different ones each time, are compiled one after the other by as many
processes as there are cores. Each compiler is a chain of short processes that map files, fault in
memory, and use their core to the full.

Seen in the wild: every build machine, and every node that compiles kernels for its GPUs when a job
starts.

What must be seen: nothing wrong, although processes come and go, pages are faulted in by the
thousand and no core is idle.
"""

import itertools
import random
import subprocess
from pathlib import Path

from necroscope.lab.busy import busy_and_well
from necroscope.lab.measured import Measurements
from necroscope.lab.scenario import Scenario, Truth
from necroscope.lab.stage import Stage


def build(directory: str, seed: int) -> None:
    """File after file, as long as it lives."""
    chosen = random.Random(seed)
    for number in itertools.count():
        source = Path(directory, f"part{seed}_{number}.c")
        source.write_text(_program(chosen))
        subprocess.run(["gcc", "-O2", "-c", source, "-o", source.with_suffix(".o")], check=True)
        source.unlink()
        source.with_suffix(".o").unlink()


def _program(chosen: random.Random) -> str:
    """Functions that call one another, with loops for the optimizer."""
    functions = []
    for i in range(chosen.randrange(150, 400)):
        operation, bound = chosen.choice("+-*^|"), chosen.randrange(8, 64)
        called = f"f{chosen.randrange(i)}(t, x)" if i else "x"
        loop = (
            f"for (int i = 0; i < {bound}; i++) t[i] = t[i] {operation} (x >> (i & 7)) +"
            f" {chosen.randrange(1000)};"
        )
        functions.append(
            f"int f{i}(int *t, int x) {{ {loop} if (x > {bound}) return x; return {called} + t[x &"
            " 7]; }"
        )
    return (
        "#include <stdio.h>\n#include <stdlib.h>\n#include <string.h>\n"
        + "\n".join(functions)
        + "\n"
    )


class Compile(Scenario):
    name = "compile"
    twin = "fork-exec-churn"
    needs = ("gcc", "ip")

    def prepare(self, stage: Stage) -> None:
        stage.make_network(gap_s=0.02)

    def provoke(self, stage: Stage) -> None:
        cores = [stage.core, *stage.other_cores]
        seeds = [stage.random.randrange(1 << 16) for _ in cores]
        stage.hold(*(stage.start(build, str(stage.scratch), seed, comm="make") for seed in seeds))

    def verify(self, stage: Stage, measured: Measurements) -> Truth:
        return busy_and_well(stage, measured, least_busy=0.6 * (1 + len(stage.other_cores)))
