"""rpm's database in SQLite: one header per package (rpm's lib/header.c, include/rpm/rpmtag.h).

A header is a count of entries and of bytes, entries of tag, type, offset and count, then the bytes.
The files of a package are base names, directories, and for each base name the number of its
directory.
"""

import struct
from collections.abc import Collection, Iterator
from pathlib import Path
from typing import Any, Final

PACKAGE_LIMIT: Final = 10_000
_PLACES: Final = ("usr/lib/sysimage/rpm/rpmdb.sqlite", "var/lib/rpm/rpmdb.sqlite")
_NAME, _VERSION, _RELEASE = 1000, 1001, 1002
_DIR_INDEXES, _BASE_NAMES, _DIR_NAMES = 1116, 1117, 1118
_INT32, _STRING, _STRINGS = 4, 6, 8
_MOST_FILES: Final = 1_000_000


def is_there(root: Path) -> bool:
    return any((root / place).is_file() for place in _PLACES)


def read_headers(root: Path) -> Iterator[bytes]:
    """None where the database is damaged, or there is none."""
    path = next((root / place for place in _PLACES if (root / place).is_file()), None)
    if path is None:
        return
    import sqlite3  # noqa: PLC0415 - few nodes have such a file, and each start would load it

    try:
        database = sqlite3.connect(f"file:{path}?mode=ro&immutable=1", uri=True)
        try:
            for (blob,) in database.execute("SELECT blob FROM Packages LIMIT ?", (PACKAGE_LIMIT,)):
                yield bytes(blob)
        finally:
            database.close()
    except sqlite3.Error:
        return


def parse_package(blob: bytes) -> tuple[str, str] | None:
    """Name and version-release; None if the header is damaged."""
    try:
        found = _entries(blob, {_NAME: _STRING, _VERSION: _STRING, _RELEASE: _STRING})
        return _text(found[_NAME]), f"{_text(found[_VERSION])}-{_text(found[_RELEASE])}"
    except (struct.error, ValueError, KeyError):
        return None


def parse_files(blob: bytes) -> list[bytes]:
    """Whole paths; none if the header is damaged."""
    wanted = {_BASE_NAMES: _STRINGS, _DIR_NAMES: _STRINGS, _DIR_INDEXES: _INT32}
    try:
        found = _entries(blob, wanted)
        folders = found[_DIR_NAMES]
        pairs = zip(found[_BASE_NAMES], found[_DIR_INDEXES], strict=True)
        return [folders[index] + name for name, index in pairs]
    except (struct.error, ValueError, KeyError, IndexError):
        return []


def packages_of(root: Path, names: Collection[bytes]) -> dict[bytes, str]:
    """The package of each of these paths that one has brought."""
    found: dict[bytes, str] = {}
    bases = {name.rpartition(b"/")[2] for name in names}
    for blob in read_headers(root):
        # Thousands of packages have none of them: their headers are searched and not taken apart.
        if not any(base in blob for base in bases):
            continue
        package = parse_package(blob)
        if package is not None:
            for name in set(names).intersection(parse_files(blob)):
                found.setdefault(name, package[0])
    return found


def _entries(blob: bytes, wanted: dict[int, int]) -> dict[int, Any]:
    entries, _length = struct.unpack_from(">II", blob)
    start = 8 + 16 * entries
    found: dict[int, Any] = {}
    for at in range(8, min(start, len(blob)), 16):
        tag, kind, offset, count = struct.unpack_from(">IIII", blob, at)
        if wanted.get(tag) != kind or count > _MOST_FILES:
            continue
        place = start + offset
        if kind == _INT32:
            found[tag] = struct.unpack_from(f">{count}i", blob, place)
        elif kind == _STRINGS:
            found[tag] = blob[place:].split(b"\0", count)[:count]
        else:
            found[tag] = blob[place : blob.index(b"\0", place)]
    return found


def _text(data: bytes) -> str:
    return data.decode("utf-8", "backslashreplace")
