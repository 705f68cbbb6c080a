"""Millions of names that do not exist, cached by the kernel until the directory is removed
they were looked up in.

What it does: a prober asks for files that are not there, a new name each time, in its cache
directory. The kernel remembers each answer as a negative dentry. A housekeeping job removes the
directory every few seconds and the prober makes it again: removing an empty directory is one cheap
system call, but the kernel has to find and free every dentry below it first, seconds of work on one
core.

Seen in the wild: LWN 894098 "Dentry negativity" (soft lockups from walking negative dentries),
druid #7508, Sysdig "Container isolation gone wrong" (one container's lookups slow every other's).

What must be seen: bursts at the job's period of one core in system mode in `shrink_dcache_parent`,
`d_walk`, `shrink_dentry_list`; the count of negative dentries up by hundreds of thousands before
each and down with it. The culprit removes, the origin is who asks.
"""

import os
import time
from pathlib import Path

from necroscope.lab.measured import Measurements
from necroscope.lab.scenario import KnownCulprit, KnownOrigin, Scenario, Truth, reached
from necroscope.lab.stage import Stage

_STATE = "/proc/sys/fs/dentry-state"
_NEGATIVE_COLUMN = 4
_MOST_DENTRIES = 8_000_000
_DIRECTORIES = 2


def probe(directory: str, word: str, count: int, ahead: int) -> None:
    """Look up names that do not exist, as fast as it goes until `ahead` directories are full of
    them, then at leisure.
    """
    os.mkdir(f"{directory}/partial")
    for number in range(_MOST_DENTRIES):
        os.access(f"{directory}/partial/{word}.{number}", os.F_OK)
        if number % count == count - 1:
            os.rename(f"{directory}/partial", f"{directory}/full-{number}")
            os.mkdir(f"{directory}/partial")
        if number >= ahead * count and number % 2_000 == 0:
            time.sleep(0.1)


def clean(directory: str, period_s: float, log: str) -> None:
    """Remove what has been filled; the time that each removal took goes to the log."""
    while True:
        for full in sorted(Path(directory).glob("full-*")):
            started = time.monotonic()
            full.rmdir()
            with open(log, "a", encoding="utf-8") as file:
                file.write(f"{time.monotonic() - started}\n")
            break
        time.sleep(period_s)


class DentryWalk(Scenario):
    name = "dentry-walk"
    cause = "dentry-walk"
    twin = "path-lookup-contention"
    seconds = 25

    def prepare(self, stage: Stage) -> None:
        self.cache = stage.scratch / stage.invent("app")
        self.cache.mkdir()
        stage.watch(_STATE)
        word, self.count = stage.invent("app"), stage.random.randrange(2_200_000, 2_600_000)
        cgroup = stage.make_cgroup(f"{stage.invent('app')}-pod")
        self.path = cgroup.path
        self.prober = stage.start(
            probe,
            str(self.cache),
            word,
            self.count,
            _DIRECTORIES,
            cpu=stage.other_cores,
            cgroup=cgroup,
            nice=-10,
        )
        deadline = time.monotonic() + 90
        while len(list(self.cache.glob("full-*"))) < _DIRECTORIES and time.monotonic() < deadline:
            time.sleep(0.2)

    def provoke(self, stage: Stage) -> None:
        self.log = stage.scratch / "removals"
        period_s = stage.random.uniform(0.7, 0.9) * stage.seconds / _DIRECTORIES
        self.cleaner = stage.start(
            clean,
            str(self.cache),
            period_s,
            str(self.log),
            comm=stage.invent("tool"),
            cpu=stage.core,
            nice=-10,
        )
        stage.hold(self.cleaner)

    def verify(self, stage: Stage, measured: Measurements) -> Truth:
        removals_s = (
            [float(line) for line in self.log.read_text().split()] if self.log.exists() else []
        )
        negative = [int(text.split()[_NEGATIVE_COLUMN]) for _, text in measured.texts(_STATE)]
        impact = {
            "longest_removal_s": reached(
                "seconds of the longest removal", max(removals_s, default=0.0), at_least=0.8
            ),
            "removals": reached("removals", len(removals_s), at_least=2),
            "system_share_peak": reached(
                "highest system share over half a second",
                measured.peak_share(stage.core, ("system",), 0.5),
                at_least=0.7,
            ),
            "negative_dentries": reached(
                "negative dentries at most", max(negative, default=0), at_least=0.8 * self.count
            ),
            "negative_dentries_swing": reached(
                "negative dentries that went at once",
                max(negative, default=0) - min(negative, default=0),
                at_least=300_000,
            ),
        }
        return Truth(
            impact,
            core=stage.core,
            mode="system",
            culprit=KnownCulprit(self.cleaner.comm, self.cleaner.pid, also=(self.prober.comm,)),
            origin=KnownOrigin("process", self.prober.comm, also=(self.path, self.cleaner.comm)),
        )
