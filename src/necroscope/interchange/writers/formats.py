"""The formats a profile can be written in: name, file suffix, and the writer for what it takes,
loaded when it is asked for.
"""

from collections.abc import Callable
from dataclasses import dataclass
from importlib import import_module
from typing import Any, BinaryIO, Final

from necroscope.interchange.writers.window import WindowFacts
from necroscope.stacks.flame_tree import FlameTree
from necroscope.stacks.samples import SampleTables


@dataclass(frozen=True, slots=True)
class SampleFormat:
    """Written from each sample, with its time and core, by the function `write_NAME` of the module
    NAME.
    """

    name: str
    suffix: str
    opens_with: str

    def write(self, tables: SampleTables, facts: WindowFacts, out: BinaryIO) -> None:
        _writer(self.name)(tables, facts, out)


@dataclass(frozen=True, slots=True)
class TreeFormat:
    """Written from an aggregated call tree, by the function `write_NAME` of the module NAME."""

    name: str
    suffix: str
    opens_with: str

    def write(self, tree: FlameTree, out: BinaryIO) -> None:
        _writer(self.name)(tree, out)


def _writer(name: str) -> Callable[..., Any]:
    writer: Callable[..., Any] = getattr(
        import_module(f"necroscope.interchange.writers.{name}"), f"write_{name}"
    )
    return writer


_ALL: Final[tuple[SampleFormat | TreeFormat, ...]] = (
    TreeFormat("folded", ".folded", "flamegraph.pl, inferno, speedscope"),
    SampleFormat("speedscope", ".speedscope.json", "speedscope"),
    SampleFormat("pprof", ".pb.gz", "pprof, Grafana Pyroscope, speedscope"),
    SampleFormat("firefox", ".firefox.json", "profiler.firefox.com"),
    SampleFormat("otlp", ".otlp", "OpenTelemetry collectors and what receives from them"),
)
FORMATS: Final = {each.name: each for each in _ALL}
