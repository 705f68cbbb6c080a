"""What a Parquet file says of itself, against what Arrow says, and lies that Arrow would believe."""

import itertools
from pathlib import Path

import pyarrow as pa
import pyarrow.parquet as pq
import pytest

from necroscope.errors import CorruptData
from necroscope.segment.parquet_claims import decoded_bytes, footer_of, read_footer

TIMES = list(range(1_000, 1_100))


def written(path: Path, columns: dict[str, pa.Array], **options: object) -> bytes:
    pq.write_table(pa.table(columns), path, **options)  # type: ignore[arg-type]
    return path.read_bytes()


def with_footer(content: bytes, old: bytes, new: bytes) -> bytes:
    """The footer with these bytes in place of those, and its length put right."""
    footer = bytes(footer_of(content))[:-8]
    assert footer.count(old) >= 1
    changed = footer.replace(old, new)
    head = content[: -len(footer) - 8]
    return head + changed + len(changed).to_bytes(4, "little") + b"PAR1"


def claims(content: bytes, coded: tuple[str, ...] = ()) -> int:
    groups = read_footer(footer_of(content))
    columns = {chunk.column for group in groups for chunk in group.chunks}
    return sum(decoded_bytes(content, group, columns, coded) for group in groups)


@pytest.fixture
def path(tmp_path: Path) -> Path:
    return tmp_path / "t.parquet"


def test_groups_times_and_values_are_those_that_arrow_reads(path: Path) -> None:
    columns = {
        "time": pa.array(TIMES),
        "text": pa.array([str(number) for number in TIMES]),
        "frames": pa.array([[1, 2, 3]] * len(TIMES), pa.list_(pa.int32())),
    }
    content = written(path, columns, row_group_size=30)
    groups, footer = read_footer(footer_of(content)), pq.read_metadata(path)
    assert [group.rows for group in groups] == [30, 30, 30, 10]
    assert [group.span for group in groups] == [
        (start, min(start + 29, TIMES[-1])) for start in range(1_000, 1_100, 30)
    ]
    for number, group in enumerate(groups):
        arrow = footer.row_group(number)
        assert [chunk.column for chunk in group.chunks] == ["time", "text", "frames"]
        assert [chunk.values for chunk in group.chunks] == [
            arrow.column(place).num_values for place in range(3)
        ]
    ends = [(chunk.start, chunk.end) for group in groups for chunk in group.chunks]
    assert all(before[1] <= after[0] for before, after in itertools.pairwise(ends))


def test_memory_is_counted_for_the_columns_that_are_asked_for(path: Path) -> None:
    texts = pa.array(["x" * 1_000] * len(TIMES))
    content = written(path, {"time": pa.array(TIMES), "text": texts}, use_dictionary=False)
    (group,) = read_footer(footer_of(content))
    assert decoded_bytes(content, group, ["time"], ()) == 8 * len(TIMES)
    assert decoded_bytes(content, group, ["text"], ()) > 1_000 * len(TIMES)


def test_texts_from_a_dictionary_are_only_for_who_keeps_them_as_one(path: Path) -> None:
    content = written(path, {"time": pa.array(TIMES), "text": pa.array(["x" * 1_000] * 100)})
    assert claims(content, coded=("text",)) < 100_000
    with pytest.raises(CorruptData, match="texts in an encoding"):
        claims(content)


def test_texts_that_share_their_beginnings_are_refused(path: Path) -> None:
    content = written(
        path,
        {"text": pa.array(["x" * 1_000] * 100)},
        use_dictionary=False,
        column_encoding={"text": "DELTA_BYTE_ARRAY"},
    )
    with pytest.raises(CorruptData, match="no recorder writes"):
        claims(content)


@pytest.mark.parametrize(
    ("old", "new", "facts"),
    [
        # RowGroup: num_rows, in front of file_offset.
        (b"\x16\xc8\x01\x26", b"\x16\xc6\x01\x26", "100 values in 99 rows"),
        # SchemaElement `time`: INT64 becomes INT32.
        (b"\x15\x04\x25\x02\x18\x04time", b"\x15\x02\x25\x02\x18\x04time", "other columns"),
        # ColumnMetaData: the path is another than the schema's.
        (b"\x19\x18\x04time", b"\x19\x18\x04tine", "other columns"),
    ],
)
def test_a_footer_that_contradicts_itself_is_refused(
    path: Path, old: bytes, new: bytes, facts: str
) -> None:
    content = written(path, {"time": pa.array(TIMES)}, store_schema=False)
    with pytest.raises(CorruptData, match=facts):
        read_footer(footer_of(with_footer(content, old, new)))


def test_a_page_that_inflates_is_refused(path: Path) -> None:
    content = written(path, {"time": pa.array(TIMES)}, use_dictionary=False, compression="zstd")
    (group,) = read_footer(footer_of(content))
    start = group.chunks[0].start
    assert content[start : start + 3] == b"\x15\x00\x15"
    # Its size once inflated, a varint, is two bytes: 2 GiB less one takes five, so others go.
    longer = content[: start + 3] + b"\xfe\xff\xff\xff\x0f" + content[start + 5 :]
    with pytest.raises(CorruptData, match="says that it holds"):
        decoded_bytes(longer, group, ["time"], ())


@pytest.mark.parametrize(
    "data",
    [
        b"",
        b"PAR1",
        b"\x00\x01\x00\x00\x00PAR1",
        b"\x0c" * 5_000 + (5_000).to_bytes(4, "little") + b"PAR1",
        b"\x19\xfc\xff\xff\xff\xff\x0f" + (7).to_bytes(4, "little") + b"PAR1",
        b"\x16" + b"\xff" * 30 + (31).to_bytes(4, "little") + b"PAR1",
        b"\x18\xff\xff\x03" + (4).to_bytes(4, "little") + b"PAR1",
        # Thrift's C++ ends a structure there, another reader might not.
        b"\x10\x15\x02\x00" + (4).to_bytes(4, "little") + b"PAR1",
        b"\x15\x02\x05\x02\x02\x00" + (6).to_bytes(4, "little") + b"PAR1",
    ],
)
def test_bytes_that_are_not_a_footer_are_refused(data: bytes) -> None:
    with pytest.raises(CorruptData):
        read_footer(data)


def test_a_footer_that_is_longer_than_its_file_is_refused() -> None:
    with pytest.raises(CorruptData, match="longer than its file"):
        footer_of(b"\xff\xff\xff\x7fPAR1")
