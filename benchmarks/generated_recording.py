"""A generated recording of many cores and hours, to measure questions on; nothing in it was ever
sampled.

`python benchmarks/generated_recording.py DIR --hours 24` writes sealed segments by the segment's
own writer. A day of 96 cores at 97 Hz is 800 million samples, so one segment an hour is of a busy
node and the others are of one that idles: idle samples are counted but not stored, as in a real
recording, and one in twenty is left. Call trees are the same in all segments.
"""

import argparse
import os
import shutil
import time
from collections.abc import Callable, Iterator
from dataclasses import dataclass
from pathlib import Path
from random import Random
from typing import Any

import numpy as np
import pyarrow as pa

from necroscope.model.span import Extent
from necroscope.model.tables import SCHEMA_VERSION, TABLES
from necroscope.segment.arrow import schema_of
from necroscope.segment.checksum import write_checked
from necroscope.segment.manifest import Manifest, TableEntry
from necroscope.segment.recording import SPANS_FILE, Identity, make_recording, segment_name
from necroscope.segment.table_writer import TableWriter

START_NS = 1_760_000_400_000_000_000
NS = 1_000_000_000
SEGMENT_S = 300
FULL_EVERY = 12
BUSY_KEEPS, IDLE_KEEPS = 0.99, 0.05
PROGRAMS = 40
PROCESSES = 240
STACKS = 60_000
KERNEL_FUNCTIONS = 2_500
USER_FUNCTIONS = 120
# Writes further tables into a segment: its directory, its start in ns, its cores.
More = Callable[[Path, int, int], dict[str, TableEntry]]


@dataclass(frozen=True)
class CallTrees:
    """Interned stacks and frames of all programs, and for each program the stacks that samples end
    in.
    """

    frames: pa.RecordBatch
    stacks: pa.RecordBatch
    leaves: list[np.ndarray[Any, np.dtype[np.int32]]]


def generate(
    directory: Path,
    hours: float,
    cpus: int = 96,
    hz: int = 97,
    full_every: int = FULL_EVERY,
    more: More | None = None,
) -> Path:
    """A recording of whole segments, the first and then every `full_every`th of a busy node."""
    make_recording(
        directory,
        Identity(
            "generated", "generated", "benchmarks/generated_recording.py", {"generated": "yes"}
        ),
    )
    trees = call_trees(Random(1))
    interned = _Interned(directory / ".interned", trees)
    spans: dict[str, Extent] = {}
    for number in range(round(hours * 3600 / SEGMENT_S)):
        start_ns = START_NS + number * SEGMENT_S * NS
        path = directory / segment_name(start_ns)
        keep = BUSY_KEEPS if number % full_every == 0 else IDLE_KEEPS
        rows = samples(trees, start_ns, cpus, hz, keep, number)
        idle = cpus * hz * SEGMENT_S - rows.num_rows
        spans[path.name] = _write_segment(path, start_ns, rows, interned, cpus, idle, more)
    shutil.rmtree(interned.directory)
    write_checked(directory / SPANS_FILE, spans)
    return directory


def call_trees(random: Random) -> CallTrees:
    """Each program calls its own functions, which call the kernel's; depths are like those of real
    captures (10 to 25 frames).
    """
    kernel = [
        (f"kernel_function_{n}", "[kernel]", "kernel", None, None) for n in range(KERNEL_FUNCTIONS)
    ]
    frames: list[tuple[Any, ...]] = list(kernel)
    stacks: dict[tuple[int, int], int] = {}
    leaves = []
    for program in range(PROGRAMS):
        own = range(len(frames), len(frames) + USER_FUNCTIONS)
        module, build_id = f"/usr/bin/program-{program}", f"{program:040x}"
        frames += [
            (f"program_{program}::function_{n}", module, "user", None, build_id)
            for n in range(USER_FUNCTIONS)
        ]
        leaves.append(np.array(list(_grow(random, stacks, own)), dtype=np.int32))
    stack_rows = [(number, parent, frame) for (parent, frame), number in stacks.items()]
    return CallTrees(
        _batch("frames", [(n, *f) for n, f in enumerate(frames)]),
        _batch("stacks", stack_rows),
        leaves,
    )


def _grow(random: Random, stacks: dict[tuple[int, int], int], own: range) -> Iterator[int]:
    """Stacks of one program: often one call deeper than the one before, else from anywhere in the
    tree.
    """
    grown = [(-1, False)]
    while len(grown) <= STACKS // PROGRAMS:
        parent, in_kernel = grown[-1] if random.random() < 0.6 else random.choice(grown)
        in_kernel = in_kernel or (parent >= 0 and random.random() < 0.12)
        # Some functions are called far more often than others.
        frame = (
            int(KERNEL_FUNCTIONS * random.random() ** 2)
            if in_kernel
            else own[int(len(own) * random.random() ** 2)]
        )
        if (parent, frame) not in stacks:
            stacks[parent, frame] = len(stacks)
            grown.append((stacks[parent, frame], in_kernel))
            yield stacks[parent, frame]


def samples(
    trees: CallTrees, start_ns: int, cpus: int, hz: int, keep: float, seed: int
) -> pa.RecordBatch:
    """One segment's rows of `samples` in order of time; each core runs another thread every tenth
    of a second.
    """
    random = np.random.default_rng(seed)
    ticks = hz * SEGMENT_S
    period_ns = NS / hz
    phase = random.random(cpus)[:, None] * period_ns
    offset = (np.arange(ticks) * period_ns + phase + random.random((cpus, ticks)) * 20_000).astype(
        np.int64
    )
    slot = np.minimum(offset // (NS // 10), SEGMENT_S * 10 - 1)
    runs = (PROCESSES * random.random((cpus, SEGMENT_S * 10)) ** 2).astype(np.int32)
    process = np.take_along_axis(runs, slot, axis=1).ravel()
    cpu = np.repeat(np.arange(cpus, dtype=np.int16), ticks)
    chosen = np.argsort(offset, axis=None, kind="stable")
    chosen = chosen[random.random(len(chosen)) < keep]
    process, cpu, times = process[chosen], cpu[chosen], start_ns + offset.ravel()[chosen]
    return _sample_batch(random, trees, times, cpu, process)


def _sample_batch(
    random: Any, trees: CallTrees, times: Any, cpu: Any, process: Any
) -> pa.RecordBatch:
    size = np.array([len(leaves) for leaves in trees.leaves])
    first = np.concatenate([[0], np.cumsum(size)[:-1]])
    program = process % PROGRAMS
    pick = first[program] + (size[program] * random.random(len(process)) ** 3).astype(np.int64)
    # Process 0 is the idle task: what it is sampled in are interrupts.
    pid = np.where(process == 0, 0, 1000 + process * 16)
    # Each name once, as the recorder's own dictionaries have it: else Parquet stores the names row
    # by row.
    names = pa.array(["swapper", *(f"program-{n}" for n in range(PROGRAMS))])
    groups = pa.array([f"/kubepods/burstable/pod{n % 60}/container{n}" for n in range(PROCESSES)])
    columns = [
        pa.array(times),
        pa.array(cpu),
        pa.array(pid.astype(np.int32)),
        pa.array((pid + (pick & 7)).astype(np.int32)),
        pa.DictionaryArray.from_arrays(
            pa.array(np.where(process == 0, 0, 1 + program).astype(np.int32)), names
        ),
        pa.DictionaryArray.from_arrays(pa.array(process), groups),
        pa.array(np.concatenate(trees.leaves)[pick]),
        pa.array(np.ones(len(times), dtype=np.int32)),
    ]
    return pa.RecordBatch.from_arrays(columns, schema=schema_of(TABLES["samples"]))


class _Interned:
    """Stacks and frames have no time in them: written once, then the same file is linked into each
    segment.
    """

    def __init__(self, directory: Path, trees: CallTrees) -> None:
        directory.mkdir()
        self.directory = directory
        self.entries = {
            "frames": write_table(directory, "frames", trees.frames, (0, 0)),
            "stacks": write_table(directory, "stacks", trees.stacks, (0, 0)),
        }

    def link_into(self, segment: Path) -> dict[str, TableEntry]:
        for name in self.entries:
            os.link(self.directory / f"{name}.parquet", segment / f"{name}.parquet")
        return dict(self.entries)


def _write_segment(
    path: Path,
    start_ns: int,
    rows: pa.RecordBatch,
    interned: _Interned,
    cpus: int,
    idle: int,
    more: More | None,
) -> Extent:
    path.mkdir(mode=0o700)
    end_ns = start_ns + SEGMENT_S * NS
    tables = interned.link_into(path)
    if more is not None:
        tables |= more(path, start_ns, cpus)
    tables["samples"] = write_table(
        path, "samples", rows, (rows.column("time")[0].as_py(), rows.column("time")[-1].as_py())
    )
    Manifest(
        SCHEMA_VERSION,
        path.name,
        "generated",
        "generated",
        start_ns,
        end_ns,
        cpus,
        tables,
        idle_samples=idle,
    ).write(path)
    return start_ns, end_ns


def write_table(directory: Path, name: str, batch: pa.RecordBatch, span: Extent) -> TableEntry:
    writer = TableWriter(TABLES[name], directory / f"{name}.parquet")
    writer.add(batch, *span)
    return writer.close()


def _batch(name: str, rows: list[tuple[Any, ...]]) -> pa.RecordBatch:
    schema = schema_of(TABLES[name])
    columns = zip(*rows, strict=True)
    return pa.RecordBatch.from_arrays(
        [pa.array(c, f.type) for c, f in zip(columns, schema, strict=True)], schema=schema
    )


def main() -> None:
    parser = argparse.ArgumentParser(description="write a generated recording")
    parser.add_argument("directory", type=Path)
    parser.add_argument("--hours", type=float, default=1.0)
    parser.add_argument("--cpus", type=int, default=96)
    parser.add_argument("--hz", type=int, default=97)
    arguments = parser.parse_args()
    began_s = time.monotonic()
    generate(arguments.directory, arguments.hours, arguments.cpus, arguments.hz)
    print(f"generated {arguments.hours} h in {time.monotonic() - began_s:.1f} s")


if __name__ == "__main__":
    main()
