"""Recordings drawn as text, so that a test reads like the picture it means; written by the real
journal and sealed.

A column is a sample, cells are two or more spaces apart. Lines that begin with a word and a colon
say what a sample is, all other lines are its stack, outermost frame first; `.` is an empty cell:

    time:  0.0   0.1        0.2
    comm:  sh    worker 12  sh
           main  main       main
           read  run        read
           .     .          vfs_read@kernel

Defaults: time 0.1 s apart (in s after START_NS), cpu 0, pid 7, tid as pid, comm "sh", cgroup "/",
weight 1. A frame is of /bin/program unless it is `name@kernel`, `name@jit` or `name@/a/file`;
`?+77@/a/file` has no name but an offset.
"""

import re
from collections.abc import Sequence
from decimal import Decimal
from pathlib import Path

from necroscope.model.reading import Gap, Row, Rows, Value
from necroscope.segment.journal import JournalWriter, SegmentHeader
from necroscope.segment.recording import LIVE, Identity, make_recording, new_segment_path
from necroscope.segment.seal_writer import seal
from necroscope.stacks.flame_tree import FlameTree

START_NS = 1_760_000_000_000_000_000
NS = 1_000_000_000
EMPTY = "."
_CELL = re.compile(r"\s{2,}")
_FACT = re.compile(r"(\w+):\s+(.*)")
_DEFAULTS = {"cpu": "0", "pid": "7", "comm": "sh", "cgroup": "/", "weight": "1"}


def at(seconds: float | str) -> int:
    """A moment of a drawn recording in ns UTC."""
    return START_NS + int(Decimal(str(seconds)) * NS)


def draw(
    directory: Path,
    *segments: str,
    gaps: Sequence[Gap] = (),
    until: float | None = None,
    live: int = 0,
    cpus: int = 2,
    idle_samples: int = 0,
) -> Path:
    """A recording of these segments, the last `live` of them not sealed; it goes on until `until`,
    though without samples.
    """
    make_recording(directory, Identity("node-a", "boot-1", "drawn", {}))
    for number, text in enumerate(segments):
        rows = drawn_rows(text)
        is_last = number == len(segments) - 1
        if is_last:
            rows["gaps"] = [gap.row() for gap in gaps]
            rows["cores"] = (
                [(at(until), 0, NS, 0, 0, 0, 0, 0, 0, 0, 0, 0)] if until is not None else []
            )
        start_ns = START_NS if number == 0 else min(time_ns for time_ns, *_ in rows["samples"])
        path = new_segment_path(directory, start_ns)
        writer = JournalWriter(
            path, SegmentHeader(path.name.removesuffix(LIVE), "node-a", "boot-1", start_ns, cpus)
        )
        for table, found in rows.items():
            writer.append(table, found)
        writer.idle_samples = idle_samples
        writer.close()
        if number < len(segments) - live:
            seal(path)
    return directory


def drawn_rows(text: str) -> dict[str, Rows]:
    """Rows of `samples`, `stacks` and `frames` of one segment."""
    facts, stack_lines = _lines(text)
    count = max((len(cells) for cells in [*facts.values(), *stack_lines]), default=0)
    interned = _Interned()
    samples: Rows = []
    for column in range(count):
        path = [
            cells[column] for cells in stack_lines if column < len(cells) and cells[column] != EMPTY
        ]
        samples.append(_sample(facts, column, interned.stack(path)))
    return {"frames": interned.frames, "stacks": interned.stacks, "samples": samples}


def folded(tree: FlameTree) -> dict[str, int]:
    """A flame graph as text: the weight that ends in each path."""
    names = [frame.function or f"{frame.module}+{frame.offset}" for frame in tree.frames]
    paths: list[str] = []
    for parent, frame in zip(tree.parent.tolist(), tree.frame.tolist(), strict=True):
        paths.append(f"{paths[parent]};{names[frame]}" if parent >= 0 else names[frame])
    return {
        path: weight
        for path, weight in zip(paths, tree.self_weight.tolist(), strict=True)
        if weight
    }


class _Interned:
    """Frames and stacks numbered in the order in which they are first seen."""

    def __init__(self) -> None:
        self._frame_ids: dict[str, int] = {}
        self._stack_ids: dict[tuple[int, int], int] = {}

    @property
    def frames(self) -> Rows:
        return [(number, *_frame(cell)) for cell, number in self._frame_ids.items()]

    @property
    def stacks(self) -> Rows:
        return [(number, *parent_and_frame) for parent_and_frame, number in self._stack_ids.items()]

    def stack(self, path: Sequence[str]) -> int:
        stack = -1
        for cell in path:
            frame = self._frame_ids.setdefault(cell, len(self._frame_ids))
            stack = self._stack_ids.setdefault((stack, frame), len(self._stack_ids))
        return stack


def _lines(text: str) -> tuple[dict[str, list[str]], list[list[str]]]:
    facts: dict[str, list[str]] = {}
    stack_lines = []
    for line in filter(str.strip, text.splitlines()):
        fact = _FACT.fullmatch(line.strip())
        if fact:
            facts[fact[1]] = _CELL.split(fact[2])
        else:
            stack_lines.append(_CELL.split(line.strip()))
    return facts, stack_lines


def _sample(facts: dict[str, list[str]], column: int, stack: int) -> Row:
    def fact(name: str) -> str:
        cells = facts.get(name, [])
        return cells[column] if column < len(cells) and cells[column] != EMPTY else _DEFAULTS[name]

    time_ns = at(facts["time"][column]) if "time" in facts else START_NS + column * NS // 10
    tid = facts["tid"][column] if "tid" in facts else fact("pid")
    return (
        time_ns,
        int(fact("cpu")),
        int(fact("pid")),
        int(tid),
        fact("comm"),
        fact("cgroup"),
        stack,
        int(fact("weight")),
    )


def _frame(cell: str) -> tuple[Value, ...]:
    name, _, place = cell.partition("@")
    if place == "kernel":
        return (name, "[kernel]", "kernel", None, None)
    if place == "jit":
        return (name, "[jit]", "jit", None, None)
    if name.startswith("?+"):
        return (None, place or "/bin/program", "user", int(name[2:]), None)
    return (name, place or "/bin/program", "user", None, None)
