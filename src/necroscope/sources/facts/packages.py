"""Installed packages with their versions: dpkg's status file, rpm's SQLite database (lib/header.c),
apk's list.

An rpm database of the old kind (Berkeley DB) is only hashed: that it differs from another node's is
what counts.
"""

import hashlib
import re
import sqlite3
import struct
from collections.abc import Iterator
from pathlib import Path
from typing import Final

from necroscope.sources.facts.fact import Fact, fact, read_bytes, read_pieces

PACKAGE_LIMIT: Final = 10_000
_DATABASE_BYTES: Final = 256 << 20
_RPM_NAME, _RPM_VERSION, _RPM_RELEASE = 1000, 1001, 1002
_RPM_STRING: Final = 6
_RPM_PLACES: Final = ("usr/lib/sysimage/rpm/rpmdb.sqlite", "var/lib/rpm/rpmdb.sqlite")


def collect(root: Path) -> Iterator[Fact]:
    """A fact for each package, and one for all of them."""
    packages = dict(sorted(_installed(root).items())[:PACKAGE_LIMIT])
    old_database = root / "var/lib/rpm/Packages"
    if packages:
        for name, version in packages.items():
            yield fact("package", name, version)
        text = "".join(f"{name} {version}\n" for name, version in packages.items())
        yield fact("packages", "count", len(packages))
        yield fact("packages", "sha256", hashlib.sha256(text.encode()).hexdigest())
    elif (digest := _sha256(old_database)) is not None:
        yield fact("packages", "sha256", digest)


def _sha256(path: Path) -> str | None:
    """Of a file that may have hundreds of megabytes."""
    digest = hashlib.sha256()
    try:
        for piece in read_pieces(path, _DATABASE_BYTES):
            digest.update(piece)
    except OSError:
        return None
    return digest.hexdigest()


def _installed(root: Path) -> dict[str, str]:
    status = read_bytes(root / "var/lib/dpkg/status", _DATABASE_BYTES)
    if status:
        return parse_dpkg(status)
    for place in _RPM_PLACES:
        if (root / place).is_file():
            return _read_rpm(root / place)
    return parse_apk(read_bytes(root / "lib/apk/db/installed", _DATABASE_BYTES) or b"")


def parse_dpkg(data: bytes) -> dict[str, str]:
    """The paragraphs of packages that are installed."""
    found = {}
    for paragraph in data.decode("utf-8", "backslashreplace").split("\n\n"):
        fields = dict(
            re.findall(r"^(Package|Status|Version|Architecture): (.+)$", paragraph, re.MULTILINE)
        )
        if fields.get("Status", "").endswith(" installed"):
            found[f"{fields.get('Package', '')}:{fields.get('Architecture', '')}"] = fields.get(
                "Version", ""
            )
    return found


def parse_apk(data: bytes) -> dict[str, str]:
    text = data.decode("utf-8", "backslashreplace")
    paragraphs = (
        dict(re.findall(r"^([PV]):(.+)$", paragraph, re.MULTILINE))
        for paragraph in text.split("\n\n")
    )
    return {fields["P"]: fields.get("V", "") for fields in paragraphs if "P" in fields}


def parse_rpm_header(blob: bytes) -> tuple[str, str] | None:
    """Name and version-release: a count of entries and of bytes, entries of tag, type, offset and
    count, then the bytes.
    """
    try:
        entries, _length = struct.unpack_from(">II", blob)
        start = 8 + 16 * entries
        texts = {}
        for at in range(8, start, 16):
            tag, kind, offset, _count = struct.unpack_from(">IIII", blob, at)
            if tag in (_RPM_NAME, _RPM_VERSION, _RPM_RELEASE) and kind == _RPM_STRING:
                texts[tag] = blob[start + offset : blob.index(b"\0", start + offset)].decode(
                    "utf-8", "backslashreplace"
                )
        return texts[_RPM_NAME], f"{texts[_RPM_VERSION]}-{texts[_RPM_RELEASE]}"
    except (struct.error, ValueError, KeyError):
        return None


def _read_rpm(path: Path) -> dict[str, str]:
    """Several packages of one name are several kernels: all versions are kept."""
    found: dict[str, str] = {}
    try:
        database = sqlite3.connect(f"file:{path}?mode=ro&immutable=1", uri=True)
        try:
            for (blob,) in database.execute("SELECT blob FROM Packages LIMIT ?", (PACKAGE_LIMIT,)):
                parsed = parse_rpm_header(bytes(blob))
                if parsed is not None:
                    name, version = parsed
                    found[name] = f"{found[name]} {version}" if name in found else version
        finally:
            database.close()
    except sqlite3.Error:
        return {}
    return found
