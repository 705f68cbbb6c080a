"""A short look at this node for commands that record nothing: all sources, into memory."""

from typing import Final

from necroscope.analysis.checkup.finding import NodeSnapshot
from necroscope.cli.recording_place import node_recording
from necroscope.model.clocks import TimeLine
from necroscope.model.units import NS_PER_S
from necroscope.recorder.memory import MemorySegment
from necroscope.recorder.node_sources import open_sources
from necroscope.recorder.recorder import Recorder
from necroscope.settings import Settings
from necroscope.sources.containers.containers import Containers
from necroscope.sources.perf.log_clock import LogClock

# The kernel's log reaches back to the boot, months ago.
_KEEP_NS: Final = 400 * 86400 * NS_PER_S
# What daemons remember of their containers: enough for a loop that takes a minute per turn.
_HISTORY_NS: Final = 300 * NS_PER_S


def look(settings: Settings, look_ns: int) -> NodeSnapshot:
    memory = MemorySegment(_KEEP_NS)
    clock = LogClock()
    time_line = TimeLine.starting_at(clock.read())
    sources = open_sources(settings, clock, time_line, history_ns=_HISTORY_NS)
    recorder = Recorder(settings, sources, memory, time_line, flush_ns=0)
    recorder.run(look_ns)
    memory.describe("", recorder.notices())
    now_ns = time_line.from_monotonic(clock.read().monotonic_ns)
    recording = node_recording()
    is_silent = any(
        isinstance(source, Containers) and not source.has_answered for source in sources.sources
    )
    silent = ("containers",) if is_silent else ()
    return NodeSnapshot(memory, now_ns, None if recording is None else str(recording), silent)
