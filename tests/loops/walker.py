"""An agent that has the kernel walk all cgroups below the containers' parent, again and again."""

import os

from necroscope.lab import zombies


def walk(file: str, log: str) -> None:
    os.sched_setaffinity(0, {max(os.sched_getaffinity(0))})
    os.setpriority(os.PRIO_PROCESS, 0, -20)
    zombies.walk(file, "1", 2.0, 2.0, log)
