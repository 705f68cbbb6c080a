"""Which samples a question is about: by core, process, thread, name, cgroup, state, or a frame that
their stack must have.
"""

from collections.abc import Iterable
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any, Final, Self

from necroscope.store.choices import WORK, State

if TYPE_CHECKING:
    from necroscope.segment.reader import SegmentReader

# Why a sample is not in the answer.
BY_FILTER: Final = "do not pass the filter"
BY_STATE: Final = "are idle or in another state that was not asked for"
_COLUMNS: Final = {"cpus": "cpu", "pids": "pid", "tids": "tid", "comms": "comm", "cgroup": "cgroup"}


@dataclass(frozen=True, slots=True)
class Selection:
    """None is all. `cgroup` takes in those below it; `frames` is a regular expression, found in a
    function's or module's name.

    It comes from clients of the view's server, and names come from the machine: RE2 (in Arrow)
    takes a time that is linear in the name, where `(a+)+$` would keep Python's own for years.
    """

    cpus: frozenset[int] | None = None
    pids: frozenset[int] | None = None
    tids: frozenset[int] | None = None
    comms: frozenset[str] | None = None
    cgroup: str | None = None
    states: frozenset[State] = WORK
    frames: str | None = None

    @classmethod
    def of(
        cls,
        cpus: Iterable[int] | None = None,
        pids: Iterable[int] | None = None,
        tids: Iterable[int] | None = None,
        comms: Iterable[str] | None = None,
        cgroup: str | None = None,
        states: Iterable[State] = WORK,
        frames: str | None = None,
    ) -> Self:
        """From plain values; UsageError if `frames` is not a valid regular expression."""
        if frames is not None:
            from necroscope.store.matching import check_expression  # noqa: PLC0415 - Arrow takes long to load

            check_expression(frames)
        return cls(
            _set(cpus), _set(pids), _set(tids), _set(comms), cgroup, frozenset(states), frames
        )

    def columns(self) -> set[str]:
        """Columns of `samples` that deciding needs, apart from the stack."""
        return {_COLUMNS[name] for name in _COLUMNS if getattr(self, name) is not None}

    def needs_stacks(self, reader: "SegmentReader") -> bool:
        """A segment that counts idle samples has dropped them all; in another there may be some to
        leave out.
        """
        return self.frames is not None or self.states != WORK or not reader.idle_samples


def _set(values: Iterable[Any] | None) -> frozenset[Any] | None:
    return frozenset(values) if values is not None else None
