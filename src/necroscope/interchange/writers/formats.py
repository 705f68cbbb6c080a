"""The formats a profile can be written in: name, file suffix, and the writer for what it takes."""

from collections.abc import Callable
from dataclasses import dataclass
from typing import BinaryIO, Final

from necroscope.interchange.writers.firefox import write_firefox
from necroscope.interchange.writers.folded import WeightedTree, write_folded
from necroscope.interchange.writers.otlp import write_otlp
from necroscope.interchange.writers.pprof import write_pprof
from necroscope.interchange.writers.speedscope import write_speedscope
from necroscope.interchange.writers.window import SampleTables, WindowFacts


@dataclass(frozen=True, slots=True)
class SampleFormat:
    """Written from each sample, with its time and core."""

    suffix: str
    write: Callable[[SampleTables, WindowFacts, BinaryIO], None]
    opens_with: str


@dataclass(frozen=True, slots=True)
class TreeFormat:
    """Written from an aggregated call tree."""

    suffix: str
    write: Callable[[WeightedTree, BinaryIO], None]
    opens_with: str


FORMATS: Final[dict[str, SampleFormat | TreeFormat]] = {
    "folded": TreeFormat(".folded", write_folded, "flamegraph.pl, inferno, speedscope"),
    "speedscope": SampleFormat(".speedscope.json", write_speedscope, "speedscope"),
    "pprof": SampleFormat(".pb.gz", write_pprof, "pprof, Grafana Pyroscope, speedscope"),
    "firefox": SampleFormat(".firefox.json", write_firefox, "profiler.firefox.com"),
    "otlp": SampleFormat(".otlp", write_otlp, "OpenTelemetry collectors and what receives from them"),
}
