"""Samples that a text holds, with names for frames: gathered until they are a batch, then put in
order, dated and numbered.
"""

from array import array
from collections.abc import Iterator, Sequence
from itertools import groupby
from operator import attrgetter
from typing import Final, NamedTuple

from necroscope.interchange.capture import LATEST_NS, CaptureFacts, ImportPlan, SampleBatch
from necroscope.interchange.import_profile import ImportProfile
from necroscope.interchange.profile_event import ProfileEvent
from necroscope.model.frame import UNKNOWN_USER, Frame
from necroscope.model.idle import IDLE_FUNCTIONS
from necroscope.profile.sample_columns import columns_of

_LARGEST_CPU: Final = 32767
_LARGEST: Final = (1 << 31) - 1
_MOST_PLACES: Final = 500_000


class TextSample(NamedTuple):
    """-1 stands for what the text does not say; `stack` is a place in `GivenStacks`."""

    time_ns: int
    cpu: int
    pid: int
    tid: int
    comm: str
    event: int
    weight: int
    stack: int


class GivenStacks:
    """Stacks whose frames have their names already; each has a place here, and a number while its
    segment is written.
    """

    def __init__(self, profile: ImportProfile) -> None:
        self._profile = profile
        self._idle = IDLE_FUNCTIONS if not profile.keeps_idle else frozenset()
        self._numbering = -1
        self.clear()

    def clear(self) -> None:
        """Places that were given out mean nothing from now on."""
        self._stacks: list[tuple[int, ...]] = []
        self._waits: list[bool] = []
        self._numbers: dict[int, int] = {}

    @property
    def is_full(self) -> bool:
        return len(self._stacks) > _MOST_PLACES

    def frame(self, frame: Frame) -> int:
        return self._profile.names.give(frame)

    def add(self, frames: Sequence[int], innermost: str | None) -> int:
        """A place for frames, outermost first, and the name of the innermost."""
        self._stacks.append(tuple(frames) or (self.frame(UNKNOWN_USER),))
        self._waits.append(innermost in self._idle)
        return len(self._stacks) - 1

    def waits_for_work(self, place: int) -> bool:
        """Whether the innermost function is one in which a core has nothing to do."""
        return self._waits[place]

    def numbers(self, places: Sequence[int]) -> "array[int]":
        """In the profile's current segment."""
        if self._numbering != self._profile.numbering:
            self._numbering = self._profile.numbering
            self._numbers.clear()
        new = [place for place in dict.fromkeys(places) if place not in self._numbers]
        frames = array("I", [frame for place in new for frame in self._stacks[place]])
        lengths = array("I", [len(self._stacks[place]) for place in new])
        self._numbers.update(
            zip(new, self._profile.core.intern_stacks(frames, lengths), strict=True)
        )
        return array("i", map(self._numbers.__getitem__, places))


class TextSamples:
    """`left_out` counts samples by event."""

    def __init__(self, facts: CaptureFacts, plan: ImportPlan, stacks: GivenStacks) -> None:
        self.left_out: list[int] = []
        self._facts = facts
        self._plan = plan
        self._stacks = stacks
        self._event = ProfileEvent(facts, plan.event)
        self._waiting: list[TextSample] = []

    def __len__(self) -> int:
        return len(self._waiting)

    def add(self, sample: TextSample) -> None:
        self._waiting.append(sample)

    def notes(self) -> list[str]:
        return self._event.notes(self.left_out)

    def take(self) -> Iterator[SampleBatch]:
        """All that wait. The last sample of a core may come before earlier ones of others."""
        plan = self._plan
        dated = [
            sample._replace(time_ns=self._moved(sample.time_ns))
            for sample in self._of_one_event(self._waiting)
        ]
        self._waiting = []
        dated = [sample for sample in dated if plan.from_ns <= sample.time_ns < plan.to_ns]
        dated.sort(key=attrgetter("time_ns"))
        for segment, part in groupby(dated, key=lambda sample: plan.segment_at(sample.time_ns)[0]):
            plan.profile.enter(segment)
            yield self._batch(segment, list(part))

    def _moved(self, time_ns: int) -> int:
        return min(max(max(time_ns, 0) + self._plan.offset_ns, 0), LATEST_NS)

    def _of_one_event(self, samples: list[TextSample]) -> list[TextSample]:
        others = (
            []
            if self._plan.all_events
            else self._event.others(sorted({sample.event for sample in samples}))
        )
        self.left_out += [0] * (len(self._facts.event_names) - len(self.left_out))
        for event in others:
            self.left_out[event] += sum(sample.event == event for sample in samples)
        return [sample for sample in samples if sample.event not in others] if others else samples

    def _batch(self, segment: int, samples: list[TextSample]) -> SampleBatch:
        from_ns, to_ns = samples[0].time_ns, samples[-1].time_ns
        kept = [sample for sample in samples if not self._is_idle(sample)]
        idle = sum(sample.weight for sample in samples) - sum(sample.weight for sample in kept)
        if not kept:
            return SampleBatch(segment, from_ns, to_ns, None, idle)
        times, cpus, pids, tids, comms, _, weights, stacks = zip(*kept, strict=True)
        places = {comm: place for place, comm in enumerate(dict.fromkeys(comms))}
        numbers = (
            array("q", times),
            array("h", [cpu if -1 <= cpu <= _LARGEST_CPU else -1 for cpu in cpus]),
            array("i", pids),
            array("i", tids),
            array("i", map(places.__getitem__, comms)),
        )
        columns = columns_of(
            len(kept),
            [column.tobytes() for column in numbers],
            list(places),
            (bytes((len(kept) + 7) // 8), bytes(4 * len(kept))),
            [""],
            (
                self._stacks.numbers(stacks).tobytes(),
                array("i", [min(weight, _LARGEST) for weight in weights]).tobytes(),
            ),
        )
        return SampleBatch(segment, from_ns, to_ns, columns, idle, is_weighted=True)

    def _is_idle(self, sample: TextSample) -> bool:
        is_idle_task = sample.pid == 0 or (sample.pid < 0 and sample.comm.startswith("swapper"))
        return is_idle_task and self._stacks.waits_for_work(sample.stack)
