"""The head of a perf.data file: its events, their ids and the feature sections; in pipe mode they
are records of their own.
"""

import os
import struct
from collections.abc import Iterator
from dataclasses import dataclass, field
from typing import BinaryIO, Final, NamedTuple

from necroscope.errors import CorruptData, UsageError
from necroscope.interchange.perf_data.format import (
    EVENT_NAMES,
    EVENT_UPDATE,
    HEADER_ATTR,
    HEADER_BUILD_ID,
    HEADER_FEATURE,
    MAGIC,
    MAGIC_BIG_ENDIAN,
    MAGIC_OLD,
    UPDATE_NAME,
)
from necroscope.interchange.perf_data.stream import RecordStream
from necroscope.model.names import clean
from necroscope.perf_abi.records import HEADER
from necroscope.perf_abi.sample_layout import SampleLayout

_PIPE_HEADER_BYTES: Final = 16
_FILE_HEADER: Final = struct.Struct(
    "<8sQQQQQQQQ4Q"
)  # magic, size, attr_size; offset and size of attrs, data, types; flags
# perf_event_attr up to sample_regs_intr, as in perf_abi.event_attr
_ATTR: Final = struct.Struct("<IIQQQQQIIQQQQIiQ")
_ATTR_MOST_BYTES: Final = 4096
_MOST_ATTRS: Final = 65536
_MOST_BUILD_IDS: Final = 1 << 17
_MOST_IDS: Final = 1 << 22
_FEATURE_MOST_BYTES: Final = 16 << 20
_FEATURES: Final = 256


class FileEvent(NamedTuple):
    """One perf_event_attr, as far as reading its samples needs it."""

    type: int
    config: int
    flags: int
    layout: SampleLayout
    uses_clockid: bool


@dataclass(slots=True)
class FileHeader:
    data_start: int
    data_end: int
    events: list[FileEvent] = field(default_factory=list)
    event_of_id: dict[int, int] = field(default_factory=dict)
    names: dict[int, str] = field(default_factory=dict)
    features: dict[int, bytes] = field(default_factory=dict)
    build_id_records: list[bytes] = field(default_factory=list)
    notes: list[str] = field(default_factory=list)

    def event_name(self, event: int) -> str:
        kind = self.events[event]
        known = EVENT_NAMES.get(kind.type, ())
        named = (
            known[kind.config]
            if kind.config < len(known)
            else f"type {kind.type} config {kind.config:#x}"
        )
        return self.names.get(event) or named


def read_header(file: BinaryIO, name: str) -> FileHeader:
    """UsageError for a file that is not perf.data, CorruptData when its head is broken."""
    size_bytes = file.seek(0, os.SEEK_END)
    file.seek(0)
    head = file.read(_FILE_HEADER.size)
    _check_magic(head, name, size_bytes)
    (header_bytes,) = struct.unpack_from("<Q", head, 8)
    if header_bytes == _PIPE_HEADER_BYTES:
        header = FileHeader(_PIPE_HEADER_BYTES, size_bytes)
        _read_pipe_head(file, header)
    else:
        if len(head) < _FILE_HEADER.size:
            raise CorruptData(f"{name}: cut at byte {len(head)}, within the file header")
        header = _read_file_head(file, head, name, size_bytes)
    if not header.events:
        raise CorruptData(
            f"{name}: no event is described in {size_bytes} bytes",
            "`perf record` did not get as far as its first event",
        )
    return header


def _check_magic(head: bytes, name: str, size_bytes: int) -> None:
    if head[:8] == MAGIC_BIG_ENDIAN:
        raise UsageError(
            f"{name} was written by a big-endian machine",
            "run `perf script` on that machine and import its text instead",
        )
    if head[:8] == MAGIC_OLD:
        raise UsageError(
            f"{name} is of perf.data version 1, from before 2013",
            "import the text of `perf script` instead",
        )
    if head[:8] != MAGIC:
        raise UsageError(
            f"{name} is not a perf.data file: it begins with {head[:8]!r}",
            "give the file that `perf record` wrote",
        )
    if size_bytes < _PIPE_HEADER_BYTES:
        raise CorruptData(f"{name}: cut at byte {size_bytes}, within the file header")


def _read_file_head(file: BinaryIO, head: bytes, name: str, size_bytes: int) -> FileHeader:
    _, _, attr_bytes, attrs_at, attrs_bytes, data_at, data_bytes, _, _, *flags = (
        _FILE_HEADER.unpack(head)
    )
    if not _ATTR.size + 16 <= attr_bytes <= _ATTR_MOST_BYTES or attrs_at + attrs_bytes > size_bytes:
        raise CorruptData(
            f"{name}: byte 16: {attrs_bytes} bytes of event attributes of {attr_bytes} bytes each"
            f" at {attrs_at}"
        )
    if not _FILE_HEADER.size <= data_at <= size_bytes:
        raise CorruptData(f"{name}: byte 40: the data begins at byte {data_at} of {size_bytes}")
    header = FileHeader(data_at, min(data_at + data_bytes, size_bytes))
    if data_bytes == 0:
        header.data_end = size_bytes
        header.notes.append(
            "`perf record` was killed before it wrote its header: host, event names and build ids"
            " are not known"
        )
    elif data_at + data_bytes > size_bytes:
        header.notes.append(
            f"cut at byte {size_bytes}: the header promises {data_at + data_bytes} bytes and what"
            " follows them"
        )
    for at in range(attrs_at, attrs_at + min(attrs_bytes, _MOST_ATTRS * attr_bytes), attr_bytes):
        record = _read_at(file, at, attr_bytes)
        if len(record) == attr_bytes:
            ids_at, ids_bytes = struct.unpack_from("<QQ", record, attr_bytes - 16)
            _add_event(header, record, _read_ids(file, ids_at, ids_bytes, size_bytes))
    _read_features(
        file,
        header,
        sum(word << 64 * i for i, word in enumerate(flags)),
        data_at + data_bytes,
        size_bytes,
    )
    return header


def _read_at(file: BinaryIO, at: int, size_bytes: int) -> bytes:
    file.seek(at)
    return file.read(size_bytes)


def _read_ids(file: BinaryIO, at: int, ids_bytes: int, size_bytes: int) -> tuple[int, ...]:
    if at + ids_bytes > size_bytes or ids_bytes > _MOST_IDS * 8:
        return ()
    return struct.unpack(f"<{ids_bytes // 8}Q", _read_at(file, at, ids_bytes // 8 * 8))


def _add_event(header: FileHeader, record: bytes, ids: tuple[int, ...]) -> None:
    fields = _ATTR.unpack_from(record)
    (
        kind,
        _,
        config,
        _,
        sample_type,
        read_format,
        flags,
        _,
        _,
        _,
        _,
        branch_type,
        user_registers,
        _,
        _,
        interrupt_registers,
    ) = fields
    layout = SampleLayout(
        sample_type, read_format, branch_type, user_registers, interrupt_registers
    )
    header.event_of_id.update(dict.fromkeys(ids, len(header.events)))
    header.events.append(FileEvent(kind, config, flags, layout, bool(flags >> 25 & 1)))


def _read_features(
    file: BinaryIO, header: FileHeader, flags: int, table_at: int, size_bytes: int
) -> None:
    """One (offset, size) for each bit that is set, right behind the data."""
    wanted = [bit for bit in range(_FEATURES) if flags >> bit & 1]
    table = _read_at(file, table_at, 16 * len(wanted)) if table_at < size_bytes else b""
    for index, bit in enumerate(wanted[: len(table) // 16]):
        at, length = struct.unpack_from("<QQ", table, 16 * index)
        if at + length <= size_bytes and length <= _FEATURE_MOST_BYTES:
            header.features[bit] = _read_at(file, at, length)
    if len(table) < 16 * len(wanted):
        header.notes.append(
            f"cut at byte {size_bytes}: some of host, event names and build ids are not known"
        )


def _read_pipe_head(file: BinaryIO, header: FileHeader) -> None:
    """All of the file has to be looked through: build ids come last in a pipe."""
    stream = RecordStream(file, header.data_start, header.data_end)
    for record in stream.head_records((HEADER_ATTR, HEADER_BUILD_ID, EVENT_UPDATE, HEADER_FEATURE)):
        kind = HEADER.unpack_from(record)[0]
        if (
            kind == HEADER_ATTR
            and len(record) >= 8 + _ATTR.size
            and len(header.events) < _MOST_ATTRS
        ):
            (attr_bytes,) = struct.unpack_from("<I", record, 12)
            ids = record[8 + max(attr_bytes, 64) :]
            _add_event(
                header, record[8:], struct.unpack(f"<{len(ids) // 8}Q", ids[: len(ids) // 8 * 8])
            )
        elif kind == HEADER_BUILD_ID and len(header.build_id_records) < _MOST_BUILD_IDS:
            header.build_id_records.append(record)
        elif kind == EVENT_UPDATE and len(record) > 24:
            update, event_id = struct.unpack_from("<QQ", record, 8)
            if update == UPDATE_NAME and event_id in header.event_of_id:
                header.names[header.event_of_id[event_id]] = clean(record[24:].partition(b"\0")[0])
        elif kind == HEADER_FEATURE and len(record) >= 16:
            header.features[struct.unpack_from("<Q", record, 8)[0]] = record[16:]


def build_id_records(section: bytes) -> Iterator[bytes]:
    """Records of the BUILD_ID feature section."""
    at = 0
    while at + 8 <= len(section):
        size = HEADER.unpack_from(section, at)[2]
        if size < 8 or at + size > len(section):
            return
        yield section[at : at + size]
        at += size
