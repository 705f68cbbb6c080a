"""Many small commands.

What it does: a shell script runs small programs one after the other, some hundreds per second:
fork, exec, a few pages, exit.

Seen in the wild: configure scripts, health checks that call commands, deployment tools. It is the
ordinary life of a node, an order of magnitude below what takes a core away from others.

What must be seen: nothing wrong.
"""

import os
import subprocess

from necroscope.lab.busy import busy_and_well
from necroscope.lab.measured import Measurements
from necroscope.lab.scenario import Scenario, Truth, reached
from necroscope.lab.stage import Stage

_PROGRAMS = ("true", "date", "id", "uname", "hostname", "basename x", "expr 1 + 2", "ls /")


def run_commands(commands: list[str], pause_s: float) -> None:
    """A round of them, a short rest, as long as it lives."""
    script = f"while :; do {'; '.join(commands)}; sleep {pause_s}; done > {os.devnull}"
    subprocess.run(["sh", "-c", script], check=False)


class ShortProcesses(Scenario):
    name = "short-processes"
    twin = "fork-exec-churn"
    needs = ("ip",)

    def prepare(self, stage: Stage) -> None:
        stage.make_network(gap_s=0.02)

    def provoke(self, stage: Stage) -> None:
        commands = [stage.random.choice(_PROGRAMS) for _ in range(40)]
        stage.hold(
            stage.start(
                run_commands, commands, stage.random.uniform(0.02, 0.06), comm=stage.invent("tool")
            )
        )

    def verify(self, stage: Stage, measured: Measurements) -> Truth:
        truth = busy_and_well(stage, measured, least_busy=0.2)
        rate = measured.growth("/proc/stat", "processes") / stage.seconds
        truth.impact["forks_per_s"] = reached("processes per second", rate, at_least=60)
        return truth
