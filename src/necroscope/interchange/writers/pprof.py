"""pprof's gzipped protobuf (https://github.com/google/pprof/blob/main/proto/profile.proto), with
time and core as labels.

Each sample carries the numeric labels `timestamp` (ns UTC), `cpu`, `pid` and `tid`, and the texts
`comm` and `cgroup`; what is not known is absent. A number's unit is its key, so that `pprof
-tagfocus=cpu=3cpu` finds it. With `bucket_ns` samples that differ only in time within a bucket are
one, stamped with the bucket's start. A frame without a symbol has its file offset as address, in a
mapping that begins at 0 and so needs no relocation.
"""

import gzip
from collections.abc import Iterable
from typing import Any, BinaryIO, Final

import numpy as np
from numpy.typing import NDArray

from necroscope.interchange.writers.window import (
    UNKNOWN,
    SampleColumns,
    Strings,
    WindowFacts,
    columns_of,
)
from necroscope.stacks.samples import SampleTables

_MOST_GROUPS: Final = 10
_VARINT: Final = 0
_LENGTH_DELIMITED: Final = 2
_SMALL: Final = [bytes([number]) for number in range(128)]


def varint(number: int) -> bytes:
    """Negative numbers as their 64-bit two's complement, as int64 asks."""
    if 0 <= number < 128:
        return _SMALL[number]
    number &= 0xFFFF_FFFF_FFFF_FFFF
    out = bytearray()
    while number > 127:
        out.append(number & 127 | 128)
        number >>= 7
    out.append(number)
    return bytes(out)


def varints(numbers: NDArray[Any]) -> list[bytes]:
    """Of many numbers at once: for the times of a window the loop above takes longer than all the
    rest.
    """
    whole = numbers.astype(np.int64).view(np.uint64)[:, None]
    shifts = np.arange(0, 7 * _MOST_GROUPS, 7, dtype=np.uint64)
    groups = (whole >> shifts & np.uint64(127)).astype(np.uint8)
    lengths = 1 + (whole >> shifts[1:] != 0).sum(axis=1)
    groups |= np.where(np.arange(_MOST_GROUPS) < lengths[:, None] - 1, np.uint8(128), np.uint8(0))
    content = groups.tobytes()
    starts = range(0, len(content), _MOST_GROUPS)
    return [
        content[start : start + length]
        for start, length in zip(starts, lengths.tolist(), strict=True)
    ]


def number_field(field: int, number: int) -> bytes:
    """Nothing for 0, which is what a reader takes an absent field for."""
    return varint(field << 3 | _VARINT) + varint(number) if number else b""


def bytes_field(field: int, content: bytes) -> bytes:
    return varint(field << 3 | _LENGTH_DELIMITED) + varint(len(content)) + content


def packed_field(field: int, numbers: Iterable[int]) -> bytes:
    return bytes_field(field, b"".join(map(varint, numbers)))


# gzip's default level takes three times as long for two per cent less.
_COMPRESSION: Final = 4
# Field 3 of a label, a varint.
_NUMBER: Final = b"\x18"
_ADDRESS_MASK: Final = 0xFFFF_FFFF_FFFF_FFFF


def write_pprof(
    tables: SampleTables, facts: WindowFacts, out: BinaryIO, *, bucket_ns: int = 0
) -> None:
    columns = columns_of(tables)
    # The first of them must be the empty text.
    strings = Strings({"": 0})
    period_ns = columns.period_ns(facts)
    parts = [
        _value_type(1, strings("samples"), strings("count")),
        _value_type(1, strings("cpu"), strings("nanoseconds")),
        *_samples(columns, strings, period_ns, bucket_ns),
        *_mappings_and_locations(columns, strings),
        number_field(9, facts.from_ns),
        number_field(10, facts.to_ns - facts.from_ns),
        _value_type(11, strings("cpu"), strings("nanoseconds")),
        number_field(12, period_ns),
        packed_field(13, [strings(text) for text in (facts.title, *facts.left_out)]),
        number_field(14, strings("samples")),
    ]
    parts += [bytes_field(6, text.encode()) for text in strings]
    # Without the time of writing, so that the same window gives the same bytes.
    out.write(gzip.compress(b"".join(parts), _COMPRESSION, mtime=0))


def _value_type(field: int, kind: int, unit: int) -> bytes:
    return bytes_field(field, number_field(1, kind) + number_field(2, unit))


def _samples(
    columns: SampleColumns, strings: Strings, period_ns: int, bucket_ns: int
) -> list[bytes]:
    time_ns = columns.time_ns // bucket_ns * bucket_ns if bucket_ns else columns.time_ns
    keys = np.stack(
        [
            columns.stack,
            time_ns,
            columns.cpu,
            columns.pid,
            columns.tid,
            columns.comm,
            columns.cgroup,
        ],
        axis=1,
    )
    weights = columns.weight
    if bucket_ns:
        keys, place = np.unique(keys, axis=0, return_inverse=True)
        weights = np.bincount(place.ravel(), columns.weight, len(keys)).astype(np.int64)
        time_ns = keys[:, 1]
    # Ids count from 1: 0 is not a location.
    paths = {
        stack: packed_field(1, [frame + 1 for frame in reversed(path)])
        for stack, path in columns.paths()
    }
    values = {
        weight: packed_field(2, (weight, weight * period_ns))
        for weight in np.unique(weights).tolist()
    }
    # Not in nanoseconds: pprof takes those for a duration and shows the moment as a number of
    # hours.
    key, unit = number_field(1, strings("timestamp")), number_field(4, strings("timestamp"))
    tasks: dict[tuple[int, ...], bytes] = {}
    parts = []
    for (stack, _, *task), time, weight in zip(
        keys.tolist(), varints(time_ns), weights.tolist(), strict=True
    ):
        labels = tasks.get(tuple(task))
        if labels is None:
            labels = tasks[tuple(task)] = _task_labels(columns, strings, *task)
        stamp = bytes_field(3, key + _NUMBER + time + unit)
        parts.append(bytes_field(2, paths[stack] + values[weight] + stamp + labels))
    return parts


def _task_labels(
    columns: SampleColumns, strings: Strings, cpu: int, pid: int, tid: int, comm: int, cgroup: int
) -> bytes:
    numbers = {"cpu": cpu, "pid": pid, "tid": tid}
    texts = {"comm": (comm, columns.comms), "cgroup": (cgroup, columns.cgroups)}
    labels = [
        # With its unit, because core 0 is a number and an absent `num` without one would be read as
        # no label at all.
        number_field(1, strings(key)) + number_field(3, number) + number_field(4, strings(key))
        for key, number in numbers.items()
        if number != UNKNOWN
    ]
    labels += [
        number_field(1, strings(key)) + number_field(2, strings(names[code]))
        for key, (code, names) in texts.items()
        if code != UNKNOWN
    ]
    return b"".join(bytes_field(3, label) for label in labels)


def _mappings_and_locations(columns: SampleColumns, strings: Strings) -> list[bytes]:
    """A location and a function for each frame, under the same id."""
    mappings: dict[tuple[str, str], int] = {}
    ends: dict[int, int] = {}
    nameless: set[int] = set()
    parts = []
    for number, frame in enumerate(columns.frames, start=1):
        mapping = mappings.setdefault((frame.module, frame.build_id or ""), len(mappings) + 1)
        address = 0 if frame.offset is None else frame.offset & _ADDRESS_MASK
        ends[mapping] = max(ends.get(mapping, 0), min(address + 1, _ADDRESS_MASK))
        if frame.offset is not None:
            nameless.add(mapping)
        line = bytes_field(4, number_field(1, number))
        location = (
            number_field(1, number) + number_field(2, mapping) + number_field(3, address) + line
        )
        name = strings(frame.name)
        function = (
            number_field(1, number)
            + number_field(2, name)
            + number_field(3, name)
            + number_field(4, strings(frame.module))
        )
        parts += [bytes_field(4, location), bytes_field(5, function)]
    # pprof calls the whole profile after the first mapping: that of a file says more than
    # `[kernel]`.
    for (module, build_id), mapping in sorted(
        mappings.items(), key=lambda entry: not entry[0][0].startswith("/")
    ):
        names = number_field(5, strings(module)) + number_field(6, strings(build_id))
        # has_functions keeps pprof from looking for symbols that are there already.
        has_functions = number_field(7, mapping not in nameless)
        parts.append(
            bytes_field(
                3, number_field(1, mapping) + number_field(3, ends[mapping]) + names + has_functions
            )
        )
    return parts
