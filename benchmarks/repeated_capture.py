"""Makes a long perf.data of a short one, its records again and again and ever later:
`repeated_capture.py IN OUT TIMES`.
"""

import struct
import sys
from pathlib import Path
from typing import BinaryIO

import numpy as np
import numpy.typing as npt

from necroscope.interchange.perf_data.format import FEATURE_SAMPLE_TIME
from necroscope.interchange.perf_data.header import FileHeader, read_header
from necroscope.interchange.perf_data.reader import sample_span_ns
from necroscope.perf_abi.event_attr import (
    SAMPLE_CPU,
    SAMPLE_ID,
    SAMPLE_IDENTIFIER,
    SAMPLE_IP,
    SAMPLE_TID,
)
from necroscope.perf_abi.records import SAMPLE

# Records of perf's own have no time behind them.
FIRST_OF_PERF = 64
SAMPLE_STREAM_ID = 1 << 9
DATA_SIZE_AT = 48


def repeat_capture(source: Path, target: Path, times: int) -> None:
    with source.open("rb") as file, target.open("wb") as out:
        header = read_header(file, str(source))
        file.seek(0)
        head = bytearray(file.read(header.data_start))
        data_bytes = header.data_end - header.data_start
        struct.pack_into("<Q", head, DATA_SIZE_AT, times * data_bytes)
        out.write(head)
        first_ns, last_ns = sample_span_ns(source) or (0, 0)
        file.seek(header.data_start)
        records = np.frombuffer(file.read(data_bytes), np.uint64)
        places = time_places(records, header)
        places = places[records[places] != 0]  # what perf made up has the time 0
        for number in range(times):
            later = records.copy()
            later[places] += np.uint64(number * (last_ns - first_ns))
            out.write(later.tobytes())
        write_features(
            file, out, header, (times - 1) * data_bytes, (times - 1) * (last_ns - first_ns)
        )


def time_places(records: npt.NDArray[np.uint64], header: FileHeader) -> npt.NDArray[np.int64]:
    """Where the times of the kernel's records lie."""
    sample_type = header.events[0].layout.sample_type
    # Behind the header come identifier, instruction pointer and task; at the end of other records
    # task, time and what follows.
    within = 1 + sum(
        bool(sample_type & field) for field in (SAMPLE_IDENTIFIER, SAMPLE_IP, SAMPLE_TID)
    )
    before_end = 1 + sum(
        bool(sample_type & field)
        for field in (SAMPLE_ID, SAMPLE_STREAM_ID, SAMPLE_CPU, SAMPLE_IDENTIFIER)
    )
    found, at = [], 0
    heads = records.tolist()
    while at < len(heads):
        kind, words = heads[at] & 0xFFFFFFFF, heads[at] >> 51
        if kind < FIRST_OF_PERF:
            found.append(at + within if kind == SAMPLE else at + words - before_end)
        at += words
    return np.array(found)


def write_features(
    file: BinaryIO, out: BinaryIO, header: FileHeader, by_bytes: int, by_ns: int
) -> None:
    """What lies behind the data: a table of places, then the sections."""
    file.seek(header.data_end)
    rest = bytearray(file.read())
    for place, feature in enumerate(sorted(header.features)):
        at, _ = struct.unpack_from("<QQ", rest, 16 * place)
        struct.pack_into("<Q", rest, 16 * place, at + by_bytes)
        if feature == FEATURE_SAMPLE_TIME:
            (last_ns,) = struct.unpack_from("<Q", rest, at - header.data_end + 8)
            struct.pack_into("<Q", rest, at - header.data_end + 8, last_ns + by_ns)
    out.write(rest)


if __name__ == "__main__":
    repeat_capture(Path(sys.argv[1]), Path(sys.argv[2]), int(sys.argv[3]))
