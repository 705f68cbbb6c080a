"""Captures read whole, with the names that their numbers stand for: what tests of the readers
ask.
"""

from collections.abc import Iterator
from dataclasses import dataclass, field
from itertools import pairwise

from necroscope.interchange.capture import Capture, ImportPlan, SampleBatch
from necroscope.interchange.import_profile import ImportProfile
from necroscope.model.frame import Frame


def text_column(batch: SampleBatch, place: int) -> list[str | None]:
    """A column of texts: the buffers from `place` on are its validity, numbers, offsets and
    texts.
    """
    if batch.columns is None:
        return []
    valid, numbers, offsets, texts = batch.columns.buffers[place : place + 4]
    ends = memoryview(offsets).cast("i")
    values = [texts[begin:end].decode() for begin, end in pairwise(ends)]
    return [
        values[number] if not valid or valid[row // 8] >> row % 8 & 1 else None
        for row, number in enumerate(memoryview(numbers).cast("i"))
    ]


@dataclass(slots=True)
class Read:
    """All samples of a capture, in order. Idle ones are kept unless told."""

    capture: Capture
    profile: ImportProfile
    time_ns: list[int] = field(default_factory=list)
    cpu: list[int] = field(default_factory=list)
    pid: list[int] = field(default_factory=list)
    tid: list[int] = field(default_factory=list)
    weight: list[int] = field(default_factory=list)
    stack: list[int] = field(default_factory=list)
    comm: list[str | None] = field(default_factory=list)
    cgroup: list[str | None] = field(default_factory=list)
    batches: int = 0

    def __len__(self) -> int:
        return len(self.time_ns)

    @property
    def frames(self) -> list[Frame]:
        return self.profile.names.fetch().named()

    @property
    def stacks(self) -> list[list[Frame]]:
        """The frames of each sample, innermost first."""
        parents, numbers = (memoryview(column).cast("i") for column in self.profile.core.stacks())
        frames = self.frames

        def outwards(stack: int) -> Iterator[Frame]:
            while stack >= 0:
                yield frames[numbers[stack]]
                stack = parents[stack]

        return [list(outwards(stack)) for stack in self.stack]

    @property
    def functions(self) -> list[list[str | None]]:
        return [[frame.function for frame in stack] for stack in self.stacks]


def read_capture(capture: Capture, *, keeps_idle: bool = True, **plan: object) -> Read:
    profile = ImportProfile(keeps_idle=keeps_idle)
    read = Read(capture, profile)
    for batch in capture.batches(ImportPlan(profile, all_events="event" not in plan, **plan)):  # type: ignore[arg-type]
        read.batches += 1
        for column in ("time_ns", "cpu", "pid", "tid", "weight", "stack"):
            getattr(read, column).extend(getattr(batch, column).tolist())
        read.comm += text_column(batch, 8)
        read.cgroup += text_column(batch, 12)
    return read
