"""Makes a long perf.data of a short one, its records again and again and ever later: `repeated_capture.py IN OUT TIMES`."""

import struct
import sys
from pathlib import Path
from typing import BinaryIO

import numpy as np

from necroscope.interchange.perf_data.format import FEATURE_SAMPLE_TIME
from necroscope.interchange.perf_data.header import FileHeader, read_header
from necroscope.interchange.perf_data.reader import sample_span_ns
from necroscope.interchange.perf_data.stream import Block, RecordStream
from necroscope.perf_abi.event_attr import SAMPLE_TIME
from necroscope.perf_abi.records import SAMPLE

# Records of perf's own have no time behind them.
FIRST_OF_PERF = 64
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
        for number in range(times):
            for block in RecordStream(file, header.data_start, header.data_end).blocks():
                out.write(later(block, header, number * (last_ns - first_ns)))
        write_features(file, out, header, (times - 1) * data_bytes, (times - 1) * (last_ns - first_ns))


def later(block: Block, header: FileHeader, by_ns: int) -> bytes:
    """The records of a block with their times moved; what perf made up has the time 0."""
    layout = header.events[0].layout
    words = block.words.copy()
    kinds = (words[block.starts] & np.uint64(0xFFFFFFFF)).astype(np.int64)
    ends = block.starts + (words[block.starts] >> np.uint64(51)).astype(np.int64)
    within = block.starts + (layout.position(SAMPLE_TIME) or 0)
    places = np.where(kinds == SAMPLE, within, ends - (layout.words_before_end(SAMPLE_TIME) or 1))[kinds < FIRST_OF_PERF]
    words[places[words[places] != 0]] += np.uint64(by_ns)
    return words[: ends[-1]].tobytes()


def write_features(file: BinaryIO, out: BinaryIO, header: FileHeader, by_bytes: int, by_ns: int) -> None:
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
