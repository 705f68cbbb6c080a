"""Which samples a question is about: by core, process, thread, name, cgroup, state, or a frame that
their stack must have.
"""

from collections.abc import Iterable
from dataclasses import dataclass
from typing import Any, Final, Self

import numpy as np
import pyarrow as pa

from necroscope.errors import UsageError
from necroscope.segment.reader import SegmentReader
from necroscope.stacks.samples import flags_of, narrow_numbers
from necroscope.stacks.tree import Flags
from necroscope.store.frame_state import WORK, State

# Why a sample is not in the answer.
BY_FILTER: Final = "do not pass the filter"
BY_STATE: Final = "are idle or in another state that was not asked for"
_EXPRESSIONS: Final = (
    "escape ( [ * + ? . with a backslash; look-around and back-references are not supported (the"
    " syntax is that of RE2)"
)
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
        try:
            if frames is not None:
                _matches(frames, pa.array([""]))
        except (pa.ArrowInvalid, UnicodeEncodeError) as error:
            raise UsageError(
                f"{frames!r} is not a valid regular expression: {error}", _EXPRESSIONS
            ) from None
        return cls(
            _set(cpus), _set(pids), _set(tids), _set(comms), cgroup, frozenset(states), frames
        )

    def columns(self) -> set[str]:
        """Columns of `samples` that deciding needs, apart from the stack."""
        return {_COLUMNS[name] for name in _COLUMNS if getattr(self, name) is not None}

    def needs_stacks(self, reader: SegmentReader) -> bool:
        """A segment that counts idle samples has dropped them all; in another there may be some to
        leave out.
        """
        return self.frames is not None or self.states != WORK or not reader.idle_samples

    def passing(self, samples: pa.Table) -> Flags:
        """Samples that pass all but states and frames, which need stacks."""
        wanted = np.ones(samples.num_rows, dtype=np.bool_)
        for column, chosen in (("cpu", self.cpus), ("pid", self.pids), ("tid", self.tids)):
            if chosen is not None:
                wanted &= np.isin(narrow_numbers(samples, column), list(chosen))
        if self.comms is not None:
            wanted &= flags_of(samples.column("comm"), self.comms.__contains__)
        if self.cgroup is not None:
            top = self.cgroup.rstrip("/")
            wanted &= flags_of(
                samples.column("cgroup"), lambda path: path == top or path.startswith(f"{top}/")
            )
        return wanted

    def matching(self, frames: pa.Table) -> Flags:
        """Frames that match, with one more, False, for a frame that is lost."""
        names = (frames.column(name).cast(pa.string()) for name in ("function", "module"))
        in_function, in_module = (_matches(self.frames or "", texts) for texts in names)
        return np.append(in_function | in_module, False)


def _matches(expression: str, texts: pa.Array | pa.ChunkedArray) -> Flags:
    """Which of these texts it is found in; never in one that is null."""
    import pyarrow.compute as pc  # noqa: PLC0415 - only for who asks for frames: it takes long to load

    return np.asarray(
        pc.match_substring_regex(texts, pattern=expression).fill_null(False), dtype=np.bool_
    )


def _set(values: Iterable[Any] | None) -> frozenset[Any] | None:
    return frozenset(values) if values is not None else None
