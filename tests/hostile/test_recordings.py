"""Recordings whose author lies in them, with every checksum right: a clear error or a gap, never a
traceback, a hang or a gigabyte.
"""

import itertools
import json
import os
import resource
import struct
import subprocess
import sys
import zlib
from collections.abc import Callable
from pathlib import Path
from typing import Any
from urllib.request import HTTPCookieProcessor, build_opener

import numpy as np
import pyarrow as pa
import pyarrow.parquet as pq
import pytest
from tests.written_recording import WrittenSegment, new_recording

from necroscope.model.tables import TABLES
from necroscope.segment.arrow import schema_of
from necroscope.segment.block import _HEADER, KIND_NOTE, KIND_ROWS, MAGIC, encode_note
from necroscope.segment.checksum import read_checked, write_checked
from necroscope.segment.reader import SegmentReader
from necroscope.store.query import Store

MOST_CPU_S, MOST_RSS_BYTES = 5.0, 1 << 30
DEEP = "[" * 200_000 + "]" * 200_000


def frame(name: str, raw_bytes: int, payload: bytes, rows: int = 1, kind: int = KIND_ROWS) -> bytes:
    header = _HEADER.pack(len(payload), raw_bytes, rows, 1, kind, 1, 1, 2, name.encode())
    crc = zlib.crc32(payload, zlib.crc32(header))
    return struct.pack("<4sI", MAGIC, crc) + header + payload


def write_body(path: Path, body: str) -> None:
    """A file with a right checksum over any text."""
    raw = body.encode()
    path.write_bytes(b'{"crc32": "%08x",\n"content": ' % zlib.crc32(raw) + raw + b"}\n")


def change_manifest(**changes: Any) -> Callable[[Path, Path], None]:
    def change(sealed: Path, _live: Path) -> None:
        content = read_checked(sealed / "manifest.json")
        write_checked(sealed / "manifest.json", content | changes)

    return change


def change_table(**changes: Any) -> Callable[[Path, Path], None]:
    def change(sealed: Path, _live: Path) -> None:
        content = read_checked(sealed / "manifest.json")
        content["tables"]["cores"] |= changes
        write_checked(sealed / "manifest.json", content)

    return change


def append_journal(data: bytes) -> Callable[[Path, Path], None]:
    def change(_sealed: Path, live: Path) -> None:
        with (live / "journal").open("ab") as journal:
            journal.write(data)

    return change


def replace_by_pipe(*names: str) -> Callable[[Path, Path], None]:
    def change(sealed: Path, live: Path) -> None:
        for name in names:
            path = next(p for p in (sealed / name, live / name) if p.exists())
            path.unlink()
            os.mkfifo(path)

    return change


def repeated(value: object, count: int, kind: pa.DataType) -> pa.Array:
    """A column of one value, without the memory that it claims."""
    if value is None:
        return pa.nulls(count, kind)
    places = pa.array(np.zeros(count, np.int32))
    return pa.DictionaryArray.from_arrays(places, pa.array([value], kind))


def claim_rows(sealed: Path, live: Path) -> None:
    """A Parquet file of a few KB that holds 16 million equal rows."""
    path, count, groups = sealed / "cores.parquet", 4_000_000, 4
    schema = pq.read_schema(path)
    columns = [repeated(1, count, field.type) for field in schema]
    rows = pa.table(columns, names=schema.names)
    with pq.ParquetWriter(path, rows.schema, compression="zstd", store_schema=False) as writer:
        for _ in range(groups):
            writer.write_table(rows, row_group_size=count)
    data, footer = path.read_bytes(), pq.read_metadata(path)
    first = [footer.row_group(number).column(0) for number in range(groups)]
    starts = [column.dictionary_page_offset or column.data_page_offset for column in first]
    footer_bytes = 8 + struct.unpack("<I", data[-8:-4])[0]
    edges = [0, *starts, len(data) - footer_bytes, len(data)]
    ranges = [[a, b - a, zlib.crc32(data[a:b])] for a, b in itertools.pairwise(edges)]
    claims = {"rows": groups * count, "from_ns": 0, "to_ns": 1 << 62}
    change_table(ranges=ranges, bytes=len(data), **claims)(sealed, live)


def end_the_reader(sealed: Path, live: Path) -> None:
    """A footer whose size statistics contradict its schema: Arrow 26 ends the process that asks for
    a column's statistics. scripts/fuzz found it.
    """
    path = sealed / "cores.parquet"
    data = path.read_bytes()
    # SchemaElement in Thrift's compact protocol: repetition_type 1 (optional) becomes 0 (required).
    optional, required = b"\x25\x02\x18\x04time", b"\x25\x00\x18\x04time"
    assert optional in data
    path.write_bytes(data.replace(optional, required))
    change_table(**entry_of(path))(sealed, live)


def repeat_a_text(sealed: Path, _live: Path) -> None:
    """A text of a megabyte in 2,000 rows: a few KB of Parquet."""
    path, count = sealed / "events.parquet", 2_000
    content = read_checked(sealed / "manifest.json")
    schema = schema_of(TABLES["events"])
    text, moment = "x" * (1 << 20), content["from_ns"]
    values = [
        text if field.type == pa.string() else moment if field.name == "time" else None
        for field in schema
    ]
    columns = [
        repeated(value, count, field.type) for value, field in zip(values, schema, strict=True)
    ]
    rows = pa.table(columns, names=schema.names)
    pq.write_table(rows, path, compression="zstd", store_schema=False)
    content["tables"]["events"] = content["tables"]["cores"] | {"rows": count} | entry_of(path)
    write_checked(sealed / "manifest.json", content)


def inflate_a_page(sealed: Path, live: Path) -> None:
    """A page of a kilobyte that says that it holds a gigabyte."""
    path = sealed / "cores.parquet"
    data = bytearray(path.read_bytes())
    # PageHeader in Thrift's compact protocol: type, then the size once inflated, both 32 bits.
    at = data.index(b"\x15\x00\x15")
    data[at + 3 : at + 3] = b"\x80\x80\x80\x80"
    path.write_bytes(data)
    change_table(**entry_of(path))(sealed, live)


def lengthen_a_list(sealed: Path, _live: Path) -> None:
    """A stack of 100 million frames, all the same: 100 KB of Parquet."""
    path, count = sealed / "stacks.parquet", 100_000_000
    content = read_checked(sealed / "manifest.json")
    schema = schema_of(TABLES["stacks"])
    frames = pa.ListArray.from_arrays([0, count], pa.nulls(count, pa.int32()).fill_null(1))
    columns = [
        frames if pa.types.is_list(field.type) else pa.array([1], pa.int64()).cast(field.type)
        for field in schema
    ]
    rows = pa.table(columns, schema=schema)
    pq.write_table(rows, path, compression="zstd")
    content["tables"]["stacks"] = content["tables"]["cores"] | {"rows": 1} | entry_of(path)
    write_checked(sealed / "manifest.json", content)


def entry_of(path: Path) -> dict[str, Any]:
    """What a manifest says of a file of one row group."""
    data = path.read_bytes()
    footer_bytes = 8 + struct.unpack("<I", data[-8:-4])[0]
    edges = [0, 4, len(data) - footer_bytes, len(data)]
    ranges = [[a, b - a, zlib.crc32(data[a:b])] for a, b in itertools.pairwise(edges)]
    return {"ranges": ranges, "bytes": len(data), "from_ns": 0, "to_ns": 1 << 62}


def claim_the_rest(_sealed: Path, live: Path) -> None:
    """Headers that each claim all that follows: 70,000 of them."""
    count, size = 70_000, 8 + _HEADER.size
    data = b"".join(
        struct.pack("<4sI", MAGIC, 0)
        + _HEADER.pack((count - number - 1) * size, 100, 1, 1, 0, 0, 1, 2, b"cores")
        for number in range(count)
    )
    (live / "journal").write_bytes(data)


def inflate(_sealed: Path, live: Path) -> None:
    """200 frames of 64 KiB that are 63 MiB each."""
    payload = zlib.compress(bytes(63 << 20), 9)
    append_journal(frame("cores", 63 << 20, payload, rows=1_000_000) * 200)(_sealed, live)


LIES: dict[str, Callable[[Path, Path], None]] = {
    "a table without ranges": change_table(ranges=[], bytes=0),
    "a table of 32 TiB": change_table(bytes=1 << 45, ranges=[[0, 1 << 45, 0]]),
    "texts as numbers": change_manifest(from_ns="a", to_ns=None, lost_samples=1.5),
    "gaps that are none": change_manifest(gaps=[{"table": 1}, [], None]),
    "numbers beyond 64 bits": change_manifest(from_ns=1 << 200),
    "60 million cores": change_manifest(cpus=60_000_000),
    "deep JSON in a manifest": lambda sealed, _: write_body(sealed / "manifest.json", DEEP),
    "deep JSON in a note": append_journal(
        frame("segment", len(DEEP), zlib.compress(DEEP.encode()), kind=KIND_NOTE)
    ),
    "an infinite moment": append_journal(
        encode_note("segment", {"segment": "x", "node": "n", "boot_id": "b", "from_ns": float("inf"), "cpus": 1, "schema": 1})
    ),
    "a name that is no date": lambda sealed, _: sealed.with_name("2026-99-99T00-00-00.000Z").mkdir(),
    "headers that claim the rest": claim_the_rest,
    "a frame of 1 GiB": append_journal(frame("cores", 1 << 30, zlib.compress(bytes(1 << 20)))),
    "frames that inflate": inflate,
    "rows without bytes": append_journal(frame("cores", 0, zlib.compress(b""), rows=(1 << 32) - 1)),
    "16 million equal rows": claim_rows,
    "a footer that ends its reader": end_the_reader,
    "a text of a megabyte, 2,000 times": repeat_a_text,
    "a page of a gigabyte": inflate_a_page,
    "a stack of 100 million frames": lengthen_a_list,
    "pins that are none": lambda sealed, _: write_body(sealed.parent / "pins.json", '[{"from_ns": 1e400}]'),
    "spans that are none": lambda sealed, _: write_body(sealed.parent / "spans.json", '{"x": [1e400, 2]}'),
    "deep JSON as identity": lambda sealed, _: write_body(sealed.parent / "recording.json", DEEP),
    "pipes in place of files": replace_by_pipe("manifest.json", "journal"),
    "a pipe in place of a table": replace_by_pipe("cores.parquet"),
}  # fmt: skip


@pytest.fixture
def lying(tmp_path: Path) -> Callable[[str], Path]:
    def make(lie: str) -> Path:
        recording = new_recording(tmp_path / "r")
        sealed = WrittenSegment(recording, 0).ticks(0, 30).seal().path.with_suffix("")
        live = WrittenSegment(recording, 60).ticks(60, 90).leave().path
        LIES[lie](sealed, live)
        return recording

    return make


# What has no process of its own for it: the Python API, and what `necroscope mcp` answers with.
IN_ITS_OWN_PROCESS = """
import sys
from pathlib import Path
import necroscope
from necroscope.errors import NecroscopeError
from necroscope.model.tables import TABLES
from necroscope.outlets.mcp.questions import RecordingQuestions, bounded
def ask(question, *words):
    try:
        bounded({"answer": question(*words)})
    except NecroscopeError as error:
        print("error:", error.facts)
asked = RecordingQuestions({"r": Path(sys.argv[1])})
for question in (asked.recordings, asked.incidents, asked.flame):
    ask(question)
ask(asked.rows, "cores")
ask(asked.late, "python")
try:
    recording = necroscope.open(sys.argv[1])
except NecroscopeError as error:
    sys.exit(f"error: {error.facts}")
for name in TABLES:
    ask(lambda: recording.table(name).num_rows)
ask(lambda: recording.flame().samples)
ask(lambda: len(recording.incidents()))
print("answered")
"""


def run(*words: str) -> tuple[subprocess.CompletedProcess[str], float, int]:
    """A command, and the CPU time and memory that it took."""
    return run_python("-m", "necroscope", *words)


def run_python(*words: str) -> tuple[subprocess.CompletedProcess[str], float, int]:
    before = resource.getrusage(resource.RUSAGE_CHILDREN)
    measure = (
        "import resource, subprocess, sys\n"
        "code = subprocess.run([sys.executable, *sys.argv[1:]]).returncode\n"
        "peak = resource.getrusage(resource.RUSAGE_CHILDREN).ru_maxrss\n"
        "print('\\npeak', peak, file=sys.stderr)\n"
        "sys.exit(code)\n"
    )
    ended = subprocess.run(
        [sys.executable, "-c", measure, *words],
        capture_output=True, text=True, timeout=100, check=False,
    )  # fmt: skip
    after = resource.getrusage(resource.RUSAGE_CHILDREN)
    cpu_s = after.ru_utime + after.ru_stime - before.ru_utime - before.ru_stime
    said, _, peak = ended.stderr.rpartition("\npeak ")
    ended.stderr = said
    return ended, cpu_s, int(peak) * 1024


@pytest.mark.parametrize("lie", LIES)
@pytest.mark.parametrize(
    "command", [("info", "--json"), ("diagnose", "--json")], ids=["info", "diagnose"]
)
def test_a_lie_is_an_error_or_a_gap(
    lying: Callable[[str], Path], lie: str, command: tuple[str, ...]
) -> None:
    ended, cpu_s, rss_bytes = run(*command, str(lying(lie)))
    assert "Traceback" not in ended.stderr, ended.stderr
    assert ended.stderr.startswith("error: ") or json.loads(ended.stdout)
    # Importing takes about two seconds of this.
    assert cpu_s < MOST_CPU_S + 3
    assert rss_bytes < MOST_RSS_BYTES


@pytest.mark.parametrize("lie", LIES)
def test_a_lie_does_not_end_a_program_that_reads_in_its_own_process(
    lying: Callable[[str], Path], lie: str
) -> None:
    ended, cpu_s, rss_bytes = run_python("-c", IN_ITS_OWN_PROCESS, str(lying(lie)))
    assert "Traceback" not in ended.stderr, ended.stderr
    assert ended.stderr.startswith("error: ") or ended.stdout.endswith("answered\n"), ended
    assert cpu_s < MOST_CPU_S + 3
    assert rss_bytes < MOST_RSS_BYTES


def test_a_footer_that_contradicts_itself_is_a_gap_of_its_table(
    lying: Callable[[str], Path],
) -> None:
    segment = Store.open(lying("a footer that ends its reader")).catalog.segments[0]
    assert [gap.table for gap in SegmentReader(segment.path).verify()] == ["cores"]


def test_the_page_answers_although_a_footer_would_end_its_reader(
    lying: Callable[[str], Path],
) -> None:
    recording = lying("a footer that ends its reader")
    words = [sys.executable, "-m", "necroscope", "view", str(recording), "--no-browser"]
    with subprocess.Popen(
        words, stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True
    ) as server:
        assert server.stdout is not None
        address = server.stdout.readline().split()[-1]
        visitor = build_opener(HTTPCookieProcessor())
        visitor.open(address, timeout=30).read()
        answer = visitor.open(address.partition("?")[0] + "api/report", timeout=30)
        assert json.load(answer)
        server.terminate()
        server.communicate(timeout=30)
