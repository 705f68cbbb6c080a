"""What the live view asks of the recorder's memory: the rows and samples of the last minutes."""

from typing import NamedTuple, Protocol

from necroscope.model.reading import Rows
from necroscope.model.span import Extent


class TopSample(NamedTuple):
    """One stack sample, cut down to who was on the core and the innermost function on each side of
    the kernel's door.
    """

    time_ns: int
    cpu: int
    pid: int
    tid: int
    comm: str
    cgroup: str | None
    kernel_function: str | None
    user_function: str | None


class TopSource(Protocol):
    """Minutes of a recording in memory. The view asks from a thread of its own; answers are in the
    order of time.

    A window holds what has `from_ns < time <= to_ns`, so that the tick that ended at `to_ns` is in
    it and the one before is not.
    """

    def span(self) -> Extent | None:
        """Oldest and newest moment held, or None before the first row."""

    def rows(self, table: str, from_ns: int, to_ns: int) -> Rows:
        """Rows of a table of `model.tables`, whose `time` lies in the window."""

    def samples_between(self, from_ns: int, to_ns: int) -> list[TopSample]:
        """Samples of busy cores in the window."""

    def notices(self) -> list[str]:
        """Sources that do not work now, each with its reason."""

    def status(self) -> str:
        """The recorder about itself, in one line: rates, its own CPU."""
