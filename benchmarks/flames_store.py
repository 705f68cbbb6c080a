"""Milliseconds in process of flame graphs, heat maps and differentials on generated recordings of 1
h and 24 h, side by side.

`python benchmarks/flames_store.py [DIR]`: recordings are generated in DIR unless they are there
already; without DIR in one that is removed after. Windows lie at the same place of the last busy
segment, so that only the recording's length differs.
"""

import statistics
import sys
import tempfile
import time
from collections.abc import Callable, Sequence
from pathlib import Path

from generated_recording import FULL_EVERY, NS, SEGMENT_S, START_NS, generate
from necroscope.stacks.differential import DifferentialTree, compare
from necroscope.store.choices import GroupBy
from necroscope.store.flame import read_flame
from necroscope.store.functions import top_functions
from necroscope.store.heatmap import read_heat_map
from necroscope.store.query import Store
from necroscope.store.selection import Selection

HOURS = (1, 24)
ROUNDS = 15


def differential(store: Store, *windows: tuple[int, int]) -> DifferentialTree:
    return compare(*(read_flame(store, *window) for window in windows))


def questions(store: Store, start_ns: int) -> dict[str, Callable[[], object]]:
    at, end = start_ns + 100 * NS, start_ns + 105 * NS
    one_core = Selection.of(cpus=[3])
    return {
        "flame graph of 5 s": lambda: read_flame(store, at, end),
        "flame graph of 5 s, one core": lambda: read_flame(store, at, end, one_core),
        "flame graph of 5 s by process": lambda: read_flame(
            store, at, end, group_by=[GroupBy.PROCESS]
        ),
        "flame graph of 5 s, innermost first": lambda: read_flame(store, at, end, is_turned=True),
        "flame graph of 5 s, frames by regex": lambda: read_flame(
            store, at, end, Selection.of(frames="function_1.*")
        ),
        "flame graph of 60 s": lambda: read_flame(store, at, at + 60 * NS),
        "heat map of 60 s": lambda: read_heat_map(store, at, at + 60 * NS),
        "heat map of 60 s, one core": lambda: read_heat_map(store, at, at + 60 * NS, one_core),
        "differential, 5 s against 5 s": lambda: differential(
            store, (at, end), (at - 50 * NS, at - 45 * NS)
        ),
        "differential, 5 s against 30 s": lambda: differential(
            store, (at, end), (at - 50 * NS, at - 20 * NS)
        ),
        "top functions of 5 s": lambda: top_functions(read_flame(store, at, end), 50),
    }


def medians_ms(asked: Sequence[Callable[[], object]]) -> list[float]:
    """Of the same question to several recordings, in turns, after one round that opens files and
    imports what is needed.
    """
    found: list[list[float]] = [[] for _ in asked]
    for question in asked:
        question()
    for _ in range(ROUNDS):
        for question, times in zip(asked, found, strict=True):
            began = time.perf_counter()
            question()
            times.append((time.perf_counter() - began) * 1000)
    return [statistics.median(times) for times in found]


def measure(directories: Sequence[Path]) -> dict[str, list[float]]:
    """By question, for each recording in a window of its last busy segment."""
    asked = []
    for directory in directories:
        store = Store.open(directory)
        last_busy = (len(store.catalog.segments) - 1) // FULL_EVERY * FULL_EVERY
        asked.append(questions(store, START_NS + last_busy * SEGMENT_S * NS))
    return {name: medians_ms([each[name] for each in asked]) for name in asked[0]}


def recording_of(directory: Path, hours: int) -> Path:
    path = directory / f"generated-{hours}h"
    if not path.exists():
        began = time.monotonic()
        generate(path, hours)
        print(
            f"generated {hours} h of 96 cores at 97 Hz in {time.monotonic() - began:.0f} s",
            file=sys.stderr,
        )
    return path


def main() -> None:
    with tempfile.TemporaryDirectory() as temporary:
        directory = Path(sys.argv[1] if len(sys.argv) > 1 else temporary)
        found = measure([recording_of(directory, hours) for hours in HOURS])
    print(
        "| question, 96 cores at 97 Hz, generated | "
        + " | ".join(f"{hours} h, ms" for hours in HOURS)
        + " | ratio |"
    )
    print("| --- | --- | --- | --- |")
    for name, (short, long) in found.items():
        print(f"| {name} | {short:.1f} | {long:.1f} | {long / short:.2f} |")


if __name__ == "__main__":
    main()
