"""A recorder in the test's own process, so that a test can reach its sources and its sink."""

from collections.abc import Callable, Iterator
from contextlib import contextmanager
from pathlib import Path

from necroscope.model.clocks import TimeLine
from necroscope.model.units import NS_PER_S
from necroscope.recorder.memory import MemorySegment
from necroscope.recorder.node_sources import NodeSources, open_sources
from necroscope.recorder.recorder import Recorder, Status
from necroscope.settings import parse
from necroscope.sources.perf.log_clock import LogClock
from necroscope.sources.perf.sampler import Sampler


@contextmanager
def recorder_of(root: Path, memory: MemorySegment) -> Iterator[tuple[Recorder, NodeSources]]:
    """Ten ticks a second, of the node below `root`, into memory."""
    settings = parse({"tick": "100ms", "host-root": str(root)})
    clock = LogClock()
    time_line = TimeLine.starting_at(clock.read())
    sources = open_sources(settings, clock, time_line)
    yield Recorder(settings, sources, memory, time_line, flush_ns=0), sources


def sampler_of(sources: NodeSources) -> Sampler:
    (sampler,) = (source for source in sources.sources if isinstance(source, Sampler))
    return sampler


def run_until_done(recorder: Recorder, steps: list[Callable[[int], bool]]) -> int:
    """Each step is called at every tick until it says that what it waits for is there; returns the
    ticks.
    """
    ticks = 0

    def on_tick(_: Status, __: list[str]) -> None:
        nonlocal ticks
        ticks += 1
        if steps and steps[0](ticks):
            steps.pop(0)
        if not steps:
            recorder.stop()

    recorder.run(30 * NS_PER_S, on_tick)
    assert not steps, "what was waited for did not come"
    return ticks
