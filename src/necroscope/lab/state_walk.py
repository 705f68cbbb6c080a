"""Walks over state that a user has made, and their twins: one program makes objects in the kernel,
more of them while it lasts; another asks something that makes the kernel walk them all. The twin
asks as hard, and there are few.
"""

import os
import time
from abc import abstractmethod
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any, ClassVar, Final

from necroscope.lab.actor import Actor
from necroscope.lab.measured import Measurements
from necroscope.lab.scenario import (
    CannotProvoke,
    KnownCulprit,
    KnownOrigin,
    Scenario,
    Truth,
    reached,
)
from necroscope.lab.stage import Stage

_MADE, _GROW = "made", "grow"
_READY_S: Final = 60.0
_STEP_S: Final = 0.1
_READ_BYTES: Final = 1 << 20
# Of the twin's objects: enough for the call to have something to do.
_FEW: Final = 20


def growing(first: int, more_per_s: float, directory: str) -> Iterator[int]:
    """Numbers of objects to make: the first at once, then, from the incident on, more each second.
    How many were made is written to a file.
    """
    yield from range(first)
    Path(directory, _MADE).write_text(str(first))
    while not Path(directory, _GROW).exists():
        time.sleep(0.05)
    number, started_s = first, time.monotonic()
    while True:
        wanted = first + int(more_per_s * (time.monotonic() - started_s))
        yield from range(number, wanted)
        number = wanted
        Path(directory, _MADE).write_text(str(number))
        time.sleep(_STEP_S)


def read_again(path: str, slice_s: float, pause_s: float, log: str) -> None:
    """Read a file to its end as an agent does, again and again."""

    def read() -> None:
        descriptor = os.open(path, os.O_RDONLY)
        while os.read(descriptor, _READ_BYTES):
            pass
        os.close(descriptor)

    ask_again(read, slice_s, pause_s, log)


def ask_again(ask: Callable[[], object], slice_s: float, pause_s: float, log: str) -> None:
    """Ask at least for `slice_s`, and again after a pause; the seconds that each turn took go to
    the log.
    """
    while True:
        started_s = time.monotonic()
        ask()
        while time.monotonic() - started_s < slice_s:
            ask()
        with open(log, "a", encoding="utf-8") as file:
            file.write(f"{time.monotonic() - started_s}\n")
        time.sleep(pause_s)


class StateWalk(Scenario):
    """`population` are the kinds of `populations` that are right; `first` objects are there when
    the incident begins, and `more_per_s` come each second.
    """

    cause: ClassVar[str | None] = "kernel-state-walk"
    population: ClassVar[tuple[str, ...]]
    first: ClassVar[int]
    more_per_s: ClassVar[int]
    pause_s: ClassVar[float] = 0.06
    slice_s: ClassVar[float] = 0.0
    least_share: ClassVar[float] = 0.45
    seconds: ClassVar[int] = 24

    def prepare(self, stage: Stage) -> None:
        factor = stage.random.uniform(0.9, 1.1)
        self.maker = self.start_maker(
            stage, int(self.first * factor), int(self.more_per_s * factor)
        )
        self._made = stage.scratch / _MADE
        deadline = time.monotonic() + _READY_S
        while not self._made.exists():
            if self.maker.exit_code is not None or time.monotonic() > deadline:
                raise CannotProvoke(f"the objects were not made: {stage.output()}")
            time.sleep(0.1)

    def provoke(self, stage: Stage) -> None:
        (stage.scratch / _GROW).touch()
        self.log = stage.scratch / "turns"
        self.walker = self.start_walker(stage)
        stage.hold(self.maker, self.walker)

    def verify(self, stage: Stage, measured: Measurements) -> Truth:
        shares = measured.shares(stage.core)
        turns_s = [float(line) for line in self.log.read_text().split()]
        impact = {
            "objects": reached(
                "objects made", int(self._made.read_text()), at_least=0.8 * self.first
            ),
            "system_share": reached(
                "system share of the core", shares["system"], at_least=self.least_share
            ),
            "turns": reached("turns", len(turns_s), at_least=2),
            "longest_turn_s": round(max(turns_s), 4),
            "first_turn_s": round(turns_s[0], 4),
        }
        if self.cause is None:
            return Truth(impact)
        return Truth(
            impact,
            core=stage.core,
            mode="system",
            culprit=KnownCulprit(self.walker.comm, self.walker.pid),
            origin=KnownOrigin("process", self.maker.comm),
            population=self.population,
        )

    @abstractmethod
    def start_maker(self, stage: Stage, first: int, more_per_s: int) -> Actor:
        """A process that makes as many objects as `growing` tells it to."""

    @abstractmethod
    def start_walker(self, stage: Stage) -> Actor:
        """A process on the chosen core that makes the kernel walk them, again and again."""

    def start_reader(self, stage: Stage, path: str, netns: str | None = None) -> Actor:
        """A walker that reads a file."""
        return self.start_asker(stage, read_again, path, netns=netns)

    def start_asker(
        self, stage: Stage, body: Callable[..., object], *arguments: Any, netns: str | None = None
    ) -> Actor:
        """A walker that asks in its own way: `body` gets the arguments, slice, pause and log."""
        timing = self.slice_s, self.pause_s, str(self.log)
        return stage.start(
            body,
            *arguments,
            *timing,
            comm=stage.invent("agent"),
            cpu=stage.core,
            nice=-10,
            netns=netns,
        )


class FewObjects:
    """The twin: a walk over next to nothing, repeated for as long as the long one takes."""

    cause: ClassVar[str | None] = None
    first: ClassVar[int] = _FEW
    more_per_s: ClassVar[int] = 0
    slice_s: ClassVar[float] = 0.9
