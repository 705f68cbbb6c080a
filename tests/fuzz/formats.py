"""Feeds our own formats, and what others may hand the recorder and the collector, with any bytes:
`scripts/fuzz NAME` makes them, and tests/unit/test_fuzz_corpora.py replays those that are kept.

Checksums are put right first: what is tried is an author's lie, not an accident. Only errors that a
caller expects may come out.
"""

import gzip
import itertools
import os
import struct
import tempfile
import unicodedata
import zlib
from collections.abc import Callable, Iterator
from contextlib import contextmanager, suppress
from pathlib import Path

import pyarrow as pa

from necroscope.errors import NecroscopeError
from necroscope.fleet.opened_bundle import open_bundle
from necroscope.fleet.protocol import decode
from necroscope.model.tables import SCHEMA_VERSION, TABLES
from necroscope.segment.block import _HEADER, MAGIC
from necroscope.segment.manifest import Manifest, TableEntry
from necroscope.segment.reader import SegmentReader
from necroscope.sources.jobs.followed_member import parse_address, parse_stat
from necroscope.sources.jobs.last_words import last_words
from necroscope.sources.jobs.membership import VARIABLES, membership
from necroscope.sources.kernel_log import journal, kmsg
from necroscope.sources.kernel_log.line import LogLine, clean_line
from necroscope.sources.kernel_log.patterns import PatternSet
from necroscope.sources.kernel_log.sequences import Sequencer
from necroscope.sources.procfs.wait_holders import parse_locks
from necroscope.sources.systemd.wire import MalformedMessage, message_bytes, parse_message
from necroscope.store.query import Store
from necroscope.symbols.elf import Elf
from necroscope.symbols.function_index import (
    FileFunctions,
    index_debugdata,
    index_dynsym,
    index_symtab,
)
from necroscope.symbols.image import FileImage, ImageError
from necroscope.symbols.perf_map import PerfMap
from necroscope.symbols.task_description import parse_environ

SEGMENT = "2026-04-15T10-30-00.000Z"
NAMES = [*TABLES, "segment", "totals", "no such table"]


@contextmanager
def folder() -> Iterator[Path]:
    with tempfile.TemporaryDirectory(prefix="necroscope-fuzz-") as name:
        yield Path(name)


def checked(body: bytes) -> bytes:
    return b'{"crc32": "%08x",\n"content": ' % zlib.crc32(body) + body + b"}\n"


def blocks(content: bytes) -> bytes:
    """Blocks with right checksums: of each a byte of choices, one for the table, two for the length
    of its payload, and the payload; what is left stays as it is.
    """
    journal_bytes, at = b"", 0
    while at + 4 <= len(content):
        choices, table, length = struct.unpack_from("<BBH", content, at)
        payload = content[at + 4 : at + 4 + length]
        at += 4 + len(payload)
        is_deflated, kind, is_raw = choices & 1, choices >> 1 & 1, choices >> 2 & 1
        rows, raw_bytes = choices >> 3, len(payload)
        stored = zlib.compress(payload) if is_deflated else payload
        header = _HEADER.pack(
            len(stored), raw_bytes, rows, 1, kind, is_deflated, 1, 2,
            NAMES[table % len(NAMES)].encode()[:16],
        )  # fmt: skip
        crc = 0 if is_raw else zlib.crc32(stored, zlib.crc32(header))
        journal_bytes += struct.pack("<4sI", MAGIC, crc) + header + stored
    return journal_bytes + content[at:]


def read_all(directory: Path) -> None:
    store = Store.open(directory)
    store.info()
    for segment in directory.iterdir():
        if segment.is_dir():
            SegmentReader(segment).verify()


def live_segment(content: bytes) -> None:
    with folder() as directory:
        (directory / f"{SEGMENT}.live").mkdir()
        (directory / f"{SEGMENT}.live/journal").write_bytes(blocks(content))
        (directory / "recording.json").write_bytes(IDENTITY)
        read_all(directory)


def manifest(content: bytes) -> None:
    """Also as pins, spans and identity, which the same loader reads."""
    with folder() as directory:
        (directory / SEGMENT).mkdir()
        (directory / SEGMENT / "manifest.json").write_bytes(checked(content))
        (directory / "pins.json").write_bytes(checked(content))
        (directory / "spans.json").write_bytes(checked(content))
        (directory / "recording.json").write_bytes(IDENTITY)
        with suppress(NecroscopeError):
            read_all(directory)
        (directory / "recording.json").write_bytes(checked(content))
        read_all(directory)


def table(content: bytes) -> None:
    """A table's file, as a manifest that knows it says; of `cores` and `stacks`, so that numbers,
    texts and lists are asked for.
    """
    length = int.from_bytes(content[-8:-4], "little") + 8
    if not 8 < length < len(content) - 8:
        return
    edges = [0, 4, len(content) - length, len(content)]
    ranges = [[a, b - a, zlib.crc32(content[a:b])] for a, b in itertools.pairwise(edges)]
    entry = {"rows": 1, "bytes": len(content), "from_ns": 0, "to_ns": 1 << 62, "ranges": ranges}
    with folder() as directory:
        segment = directory / SEGMENT
        segment.mkdir()
        names = ("cores", "events", "stacks")
        for name in names:
            (segment / f"{name}.parquet").write_bytes(content)
        Manifest(
            SCHEMA_VERSION, SEGMENT, "n", "b", 0, 1 << 62, 2,
            {name: TableEntry(**entry) for name in names},
        ).write(segment)  # fmt: skip
        SegmentReader(segment).verify()


def bundle(content: bytes) -> None:
    packed = pa.compress(content, codec="zstd", asbytes=True)
    with folder() as directory:
        for number, body in enumerate((content, packed)):
            with suppress(NecroscopeError):
                open_bundle(body, directory / str(number))


def batch(content: bytes) -> None:
    decode(gzip.compress(content, 1), now_ns=1_776_249_000 * 10**9)


def kernel_log(content: bytes) -> None:
    """Records one after the other, by the kernel and by others in turn."""
    sequencer = Sequencer(PatternSet())
    for number, raw in enumerate(content.split(b"\0")):
        record = kmsg.parse(raw)
        text = clean_line(record.text if record is not None else raw)
        line = LogLine(number * 10**6, number, 3, number % 2, number % 2 == 0, text)
        sequencer.feed(line, line.time_ns)
    for event in sequencer.finish():
        assert len(event.message) <= 4096
        assert event.cpu is None or 0 <= event.cpu < 1 << 15


def log_entry(content: bytes) -> None:
    journal.parse(content, lambda ns: ns)


def dbus(content: bytes) -> None:
    with suppress(MalformedMessage):
        size = message_bytes(content)
        if size is not None and size <= len(content):
            parse_message(content[:size]).body()


def elf(content: bytes) -> None:
    descriptor = os.memfd_create("fuzz")
    try:
        os.write(descriptor, content)
        image = FileImage(descriptor)
        with suppress(ImageError):
            found = Elf(image)
            made = (index(found, image) for index in (index_symtab, index_dynsym, index_debugdata))
            functions = FileFunctions(found.segments, [one for one in made if one is not None])
            for block in (0, 1, 1 << 20):
                functions.block(block, image)
    finally:
        os.close(descriptor)


def perf_map(content: bytes) -> None:
    known = PerfMap()
    known.append(content)
    known.lookup(list(itertools.chain(range(0, 1 << 16, 997), (1 << 63, (1 << 64) - 1))))


def is_harmless(text: str) -> bool:
    """Without controls, also those of the direction of writing; a character that this Unicode does
    not know is no harm.
    """
    return not {"Cc", "Cf", "Cs", "Zl", "Zp"} & {unicodedata.category(letter) for letter in text}


def job(content: bytes) -> None:
    """What a process says of itself: its variables, the name of its log, and the end of that."""
    environ, _, log = content.partition(b"\0\0")
    name, _, tail = log.partition(b"\n")
    found = membership(parse_environ(environ, VARIABLES), name.decode("utf-8", "replace"))
    assert found is None or (is_harmless(found.job) and len(found.job) < 400)
    words = last_words(tail)
    assert words is None or (is_harmless(words.text) and len(words.text) < 2000)
    parse_address(tail.decode("ascii", "replace"))
    parse_locks(tail, 1)
    with suppress(ValueError, IndexError):
        parse_stat(tail)


IDENTITY = checked(b'{"schema":1,"node":"n","boot_id":"b","made_by":"x","labels":{}}')
FORMATS: dict[str, Callable[[bytes], None]] = {
    "segment": live_segment,
    "manifest": manifest,
    "table": table,
    "bundle": bundle,
    "protocol": batch,
    "kmsg": kernel_log,
    "log_entry": log_entry,
    "dbus": dbus,
    "elf": elf,
    "perf_map": perf_map,
    "job": job,
}


def feed(name: str, content: bytes) -> None:
    with suppress(NecroscopeError):
        FORMATS[name](content)
