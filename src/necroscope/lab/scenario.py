"""What a scenario is: a class with a name, the truth about what it does, and three steps. The
file's docstring is its story.
"""

import inspect
import sys
from abc import ABC, abstractmethod
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any, ClassVar, Final

from necroscope.errors import ExperimentFailed

if TYPE_CHECKING:
    from necroscope.lab.measured import Measurements
    from necroscope.lab.stage import Stage

MODES: Final = ("user", "nice", "system", "idle", "iowait", "irq", "softirq", "steal")


class LabError(ExperimentFailed):
    """The lab cannot do its work here, or something of it was left behind."""


class CannotProvoke(LabError):  # noqa: N818 - the name says the fact
    """This machine lacks what a scenario needs; raised in `prepare` or `provoke`."""


class ImpactMissing(LabError):  # noqa: N818 - the name says the fact
    """It was provoked, but the lab's own measurement does not show the impact: the run has no
    label.
    """


@dataclass(frozen=True, slots=True)
class KnownCulprit:
    """The task on the core. `also` are other names that are as right (a thread of it, the kernel
    thread that works for it).
    """

    comm: str
    pid: int | None = None
    cgroup: str | None = None
    also: tuple[str, ...] = ()


def softirq_culprit(core: int, *others: str) -> KnownCulprit:
    """Who holds a core with softirqs: the kernel's own threads of it, or, as right, who made them
    necessary.
    """
    return KnownCulprit(f"ksoftirqd/{core}", also=(f"swapper/{core}", *others))


@dataclass(frozen=True, slots=True)
class KnownOrigin:
    """The object to act on. `kind`: unit, container, cgroup, process, setting, device, kernel,
    host.
    """

    kind: str
    name: str
    also: tuple[str, ...] = ()


@dataclass(frozen=True, slots=True)
class Truth:
    """What happened, as measured. `core` and `mode` are None where no core was hot; `impact` is
    what the lab measured.
    """

    impact: dict[str, Any]
    core: int | None = None
    mode: str | None = None
    culprit: KnownCulprit | None = None
    origin: KnownOrigin | None = None
    # Kinds of `populations` that were walked: any of them is right.
    population: tuple[str, ...] = ()
    # Kernel functions that held the core inside softirqs or interrupts: any of them is right.
    handlers: tuple[str, ...] = ()


class Scenario(ABC):
    """One is made for each run, so that a step may keep what the next one needs in `self`."""

    name: ClassVar[str]
    # A cause slug, or None: nothing is wrong, and a diagnosis must not name anything.
    cause: ClassVar[str | None] = None
    # The scenario it is easily confused with.
    twin: ClassVar[str | None] = None
    # Cause slugs that are not false namings although `cause` is another or None.
    tolerates: ClassVar[tuple[str, ...]] = ()
    seconds: ClassVar[int] = 20
    # Programs in PATH, and files that the kernel must have (a path with a slash).
    needs: ClassVar[tuple[str, ...]] = ()

    def prepare(self, stage: "Stage") -> None:  # noqa: B027 - most have nothing to prepare
        """Before the recorder starts: what is there already when the incident comes. Nothing by
        default.
        """

    @abstractmethod
    def provoke(self, stage: "Stage") -> None:
        """Make it happen, and return when it has lasted `stage.seconds`."""

    @abstractmethod
    def verify(self, stage: "Stage", measured: "Measurements") -> Truth:
        """The truth, from what the lab measured itself; ImpactMissing if it was not reached."""

    @classmethod
    def story(cls) -> str:
        return inspect.cleandoc(sys.modules[cls.__module__].__doc__ or "")


def reached(
    what: str, value: float, *, at_least: float | None = None, at_most: float | None = None
) -> float:
    """The value, rounded for the label; ImpactMissing if it is not within the bounds."""
    if at_least is not None and value < at_least:
        raise ImpactMissing(
            f"{what} is {value:.4g}, which is under the {at_least:.4g} that make the incident"
        )
    if at_most is not None and value > at_most:
        raise ImpactMissing(
            f"{what} is {value:.4g}, which is over the {at_most:.4g} that keep it out of the"
            " ordinary"
        )
    return round(value, 4)
