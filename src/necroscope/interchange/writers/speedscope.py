"""speedscope's own JSON
(https://github.com/jlfwong/speedscope/blob/main/src/lib/file-format-spec.ts), sampled profiles.

One profile per core or thread, in nanoseconds since the window's start. speedscope lays samples end
to end, so the time between them is filled with empty stacks, and its time axis is the real one. A
sample lasts one sampling period for each unit of its weight; until the next sample, if that comes
earlier or less than half as much later.
"""

import json
from typing import BinaryIO, Final, Literal

import numpy as np
from numpy.typing import NDArray

from necroscope import __version__
from necroscope.interchange.writers.window import UNKNOWN, SampleColumns, WindowFacts, columns_of
from necroscope.stacks.samples import SampleTables

_SCHEMA: Final = "https://www.speedscope.app/file-format-schema.json"
_EMPTY_STACK: Final = "[]"


def write_speedscope(
    tables: SampleTables,
    facts: WindowFacts,
    out: BinaryIO,
    *,
    by: Literal["core", "thread"] = "core",
) -> None:
    columns = columns_of(tables)
    keys = columns.cpu if by == "core" else columns.tid
    stacks = {stack: json.dumps(path) for stack, path in columns.paths()}
    numbers, counts = np.unique(keys, return_counts=True)
    period_ns = columns.period_ns(facts)
    profiles = [
        _timed_profile(
            _name(columns, by, number),
            columns,
            np.flatnonzero(keys == number),
            stacks,
            facts,
            period_ns,
        )
        for number in numbers.tolist()
    ]
    head = {
        "$schema": _SCHEMA,
        "exporter": f"necroscope@{__version__}",
        "name": facts.title,
        "activeProfileIndex": int(np.argmax(counts)) if len(counts) else 0,
        "shared": {
            "frames": [{"name": frame.name, "file": frame.module} for frame in columns.frames]
        },
    }
    out.write(f'{json.dumps(head)[:-1]},"profiles":['.encode())
    out.write(",\n".join(profiles or [_profile("no samples", 0, "", "")]).encode())
    out.write(b"]}\n")


def _name(columns: SampleColumns, by: str, number: int) -> str:
    if by == "core":
        return "core unknown" if number == UNKNOWN else f"core {number}"
    # The last comm: a thread is called like its parent until it runs exec.
    return f"{columns.comms[columns.comm[np.flatnonzero(columns.tid == number)[-1]]]} ({number})"


def _timed_profile(
    name: str,
    columns: SampleColumns,
    rows: NDArray[np.int64],
    stacks: dict[int, str],
    facts: WindowFacts,
    period_ns: int,
) -> str:
    starts = columns.time_ns[rows] - facts.from_ns
    lasting = columns.weight[rows] * period_ns
    following = np.append(starts[1:], facts.to_ns - facts.from_ns).clip(min=starts)
    # Samples come a little early and late: without this a function that ran for long would be a box
    # for each of them.
    ends = np.where(following - starts < lasting * 3 // 2, following, starts + lasting)
    idle = starts - np.append(0, ends[:-1])
    samples, weights = [], []
    for stack, duration_ns, before_ns in zip(
        columns.stack[rows].tolist(), (ends - starts).tolist(), idle.tolist(), strict=True
    ):
        if before_ns > 0:
            samples.append(_EMPTY_STACK)
            weights.append(str(before_ns))
        samples.append(stacks[stack])
        weights.append(str(duration_ns))
    return _profile(
        name, max(facts.to_ns - facts.from_ns, int(ends[-1])), ",".join(samples), ",".join(weights)
    )


def _profile(name: str, end: int, samples: str, weights: str) -> str:
    """As text: to build a list of lists that differ little, only to serialise it, takes most of the
    time and memory.
    """
    head = f'{{"type":"sampled","name":{json.dumps(name)},"unit":"nanoseconds","startValue":0'
    return f'{head},"endValue":{end},"samples":[{samples}],"weights":[{weights}]}}'
