"""What a reader of other tools' profiles hands over: facts, notes, interned stacks and batches of samples in numpy columns."""

from array import array
from collections.abc import Callable, Iterator
from dataclasses import dataclass, field
from typing import Final, NamedTuple

import numpy as np
import numpy.typing as npt

from necroscope.interchange.number_index import UNKNOWN, NumberIndex
from necroscope.model.frame import Frame

NO_PARENT: Final = -1
# Beyond this a stack is cut at its innermost known frame; about 100 MB of interned stacks.
MOST_STACKS: Final = 2_000_000
# A name list longer than this is a hostile file: what comes after is shown as one name.
MOST_NAMES: Final = 1_000_000


class StackTree:
    """Frames and stacks of the whole capture, numbered from 0; a parent's number is smaller than its children's."""

    def __init__(self) -> None:
        self.frames: list[Frame] = []
        self.parents = array("i")
        self.stack_frames = array("i")
        self.cut = 0
        self._frame_numbers: dict[Frame, int] = {}
        self._known = NumberIndex()
        self._odd_numbers = odd_numbers(256)

    def __len__(self) -> int:
        return len(self.parents)

    def frame(self, frame: Frame) -> int:
        number = self._frame_numbers.get(frame)
        if number is None:
            number = self._frame_numbers[frame] = len(self.frames)
            self.frames.append(frame)
        return number

    def stacks(self, frames: npt.NDArray[np.int32], lengths: npt.NDArray[np.int64]) -> npt.NDArray[np.int32]:
        """Numbers of many stacks: `frames` has the frame numbers of one after the other, outermost first.

        A stack is known by a hash of its frames, so that the shared outer parts of all of them are found at once.
        """
        found = np.full(len(lengths), NO_PARENT, np.int32)
        if not len(frames):
            return found
        ends = np.cumsum(lengths)
        firsts = ends - lengths
        depths = np.arange(len(frames)) - np.repeat(firsts, lengths)
        sums = np.cumsum((frames.astype(np.uint64) + np.uint64(1)) * self._factors(int(depths.max()) + 1)[depths])
        before = np.where(firsts > 0, sums[firsts.clip(max=len(sums)) - 1], np.uint64(0))
        hashes = sums - np.repeat(before, lengths)
        numbers = self._known.find(hashes)
        unknown = np.flatnonzero(numbers == UNKNOWN)
        if len(unknown):
            self._number(unknown, numbers, hashes, depths, frames)
        has_any = lengths > 0
        found[has_any] = numbers[ends[has_any] - 1]
        return found

    def _number(
        self,
        unknown: npt.NDArray[np.int64],
        numbers: npt.NDArray[np.int32],
        hashes: npt.NDArray[np.uint64],
        depths: npt.NDArray[np.int64],
        frames: npt.NDArray[np.int32],
    ) -> None:
        """Number what is new in the order of its first place, so that a parent comes before its children."""
        keys, place, inverse = distinct(hashes[unknown])
        order = np.argsort(place)
        rank = np.empty(len(order), np.int64)
        rank[order] = np.arange(len(order))
        places = unknown[place[order]]
        first, room = len(self.parents), MOST_STACKS - len(self.parents)
        new = np.arange(first, first + len(places), dtype=np.int32)
        numbers[unknown] = new[rank[inverse]]
        above = np.where(depths[places] > 0, numbers[places - 1], np.int32(NO_PARENT))
        self.parents.frombytes(above[:room].tobytes())
        self.stack_frames.frombytes(frames[places[:room]].tobytes())
        self._known.add(keys[order[:room]], new[:room])
        if room < len(places):
            self.cut += len(places) - room
            for late in range(room, len(places)):
                new[late] = above[late] if above[late] < first + room else new[above[late] - first]
            numbers[unknown] = new[rank[inverse]]

    def _factors(self, count: int) -> npt.NDArray[np.uint64]:
        if count > len(self._odd_numbers):
            self._odd_numbers = odd_numbers(2 * count)
        return self._odd_numbers

    def frames_of(self, stack: int) -> list[Frame]:
        """Innermost first."""
        found = []
        while stack != NO_PARENT:
            found.append(self.frames[self.stack_frames[stack]])
            stack = self.parents[stack]
        return found


def odd_numbers(count: int) -> npt.NDArray[np.uint64]:
    """As many odd 64-bit numbers without pattern, always the same: factors for hashes by place (splitmix64)."""
    mixed = np.arange(1, count + 1, dtype=np.uint64) * np.uint64(0x9E3779B97F4A7C15)
    mixed = (mixed ^ mixed >> np.uint64(30)) * np.uint64(0xBF58476D1CE4E5B9)
    mixed = (mixed ^ mixed >> np.uint64(27)) * np.uint64(0x94D049BB133111EB)
    return (mixed ^ mixed >> np.uint64(31)) | np.uint64(1)


def distinct(
    values: npt.NDArray[np.uint64],
) -> tuple[npt.NDArray[np.uint64], npt.NDArray[np.int64], npt.NDArray[np.int64]]:
    """The different values, the first place of each and which of them each value is: as np.unique, but with the quicker sort."""
    order = values.argsort()
    ordered = values[order]
    is_new = np.ones(len(values), bool)
    is_new[1:] = ordered[1:] != ordered[:-1]
    inverse = np.empty(len(values), np.int64)
    inverse[order] = np.cumsum(is_new) - 1
    begins = np.flatnonzero(is_new)
    return ordered[begins], np.minimum.reduceat(order, begins) if len(begins) else begins, inverse


class Names:
    """Texts by number."""

    def __init__(self) -> None:
        self.texts: list[str] = []
        self._numbers: dict[str, int] = {}

    def number(self, text: str) -> int:
        number = self._numbers.get(text)
        if number is None:
            if len(self.texts) >= MOST_NAMES:
                return 0
            number = self._numbers[text] = len(self.texts)
            self.texts.append(text)
        return number


@dataclass(slots=True)
class CaptureFacts:
    """What a capture says about itself. Times are UTC only where `time_is_wall_clock`; else `why_not_wall_clock` says why.

    `first_ns` is that of the first sample in the file, where that is known.
    `since_boot_offset_ns` is what to add to the kernel's clock since boot to have UTC, where the capture knows both.
    """

    kind: str
    host: str | None = None
    kernel_release: str | None = None
    arch: str | None = None
    cpus: int | None = None
    command_line: str | None = None
    event_names: list[str] = field(default_factory=list)
    time_is_wall_clock: bool = False
    why_not_wall_clock: str = ""
    has_time: bool = True
    has_cpu: bool = True
    first_ns: int | None = None
    since_boot_offset_ns: int | None = None


@dataclass(frozen=True, slots=True)
class SampleBatch:
    """Samples in time order. -1 stands for an unknown cpu or cgroup, and for the stack of a sample without frames."""

    time_ns: npt.NDArray[np.int64]
    cpu: npt.NDArray[np.int32]
    pid: npt.NDArray[np.int32]
    tid: npt.NDArray[np.int32]
    comm: npt.NDArray[np.int32]
    cgroup: npt.NDArray[np.int32]
    event: npt.NDArray[np.int32]
    period: npt.NDArray[np.int64]
    stack: npt.NDArray[np.int32]

    def __len__(self) -> int:
        return len(self.time_ns)


class Lost(NamedTuple):
    """Samples the kernel could not write; `cpu` is -1 where the record does not say."""

    time_ns: int
    cpu: int
    samples: int


@dataclass(slots=True)
class Capture:
    """One profile. `batches` reads it from the start each time it is called; a batch and what is interned is held in memory.

    `comms` and `cgroups` hold the names that the batches' numbers stand for; they, `stacks`, `lost` and `notes` grow while
    batches are read, and may be replaced before by those of other captures, to number all of them alike. Notes say what could
    not be read or named; what was read before a fault is kept. `bytes_read` is how far the reading has come in the file.
    """

    facts: CaptureFacts
    batches: Callable[[], Iterator[SampleBatch]]
    stacks: StackTree = field(default_factory=StackTree)
    comms: Names = field(default_factory=Names)
    cgroups: Names = field(default_factory=Names)
    notes: list[str] = field(default_factory=list)
    lost: list[Lost] = field(default_factory=list)
    bytes_read: int = 0
