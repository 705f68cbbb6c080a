"""Package databases."""

import hashlib
import sqlite3
import struct
from pathlib import Path

import pytest
from tests.synthetic_root import write_files

from necroscope.sources.facts import fact, packages
from necroscope.sources.facts.packages import parse_apk, parse_dpkg
from necroscope.sources.facts.rpm_database import parse_package

DPKG = """\
Package: bash
Status: install ok installed
Architecture: amd64
Version: 5.2.15-2+b8
Description: GNU Bourne Again SHell
 Version: not a field

Package: gone
Status: deinstall ok config-files
Architecture: amd64
Version: 1.0

Package: libc6
Status: hold ok installed
Architecture: i386
Version: 2.36-9
"""


def header(name: str, version: str, release: str) -> bytes:
    """A header as rpm stores it: tags 1000 to 1002 of type string, and one of another type."""
    store, entries = b"", b""
    for tag, text in ((1000, name), (1001, version), (1002, release)):
        entries += struct.pack(">IIII", tag, 6, len(store), 1)
        store += text.encode() + b"\0"
    entries += struct.pack(">IIII", 1009, 4, len(store), 1)
    store += struct.pack(">I", 12345)
    return struct.pack(">II", 4, len(store)) + entries + store


def test_dpkgs_installed_packages_and_not_those_removed() -> None:
    assert parse_dpkg(DPKG.encode()) == {"bash:amd64": "5.2.15-2+b8", "libc6:i386": "2.36-9"}


def test_apks_list() -> None:
    assert parse_apk(b"C:x\nP:musl\nV:1.2.4-r2\n\nP:busybox\nV:1.36\n\n") == {
        "musl": "1.2.4-r2",
        "busybox": "1.36",
    }


def test_rpms_header() -> None:
    assert parse_package(header("kernel", "5.14.0", "70.el9")) == ("kernel", "5.14.0-70.el9")


@pytest.mark.parametrize("blob", [b"", b"\xff" * 8, b"\0" * 8, header("a", "b", "c")[:40]])
def test_a_damaged_header_is_none(blob: bytes) -> None:
    assert parse_package(blob) is None


def test_the_whole_list_has_a_count_and_a_hash_that_follow_it(tmp_path: Path) -> None:
    write_files(tmp_path, {"var/lib/dpkg/status": DPKG})
    first = {(kind, name): value for kind, name, value in packages.collect(tmp_path)}
    assert (first["package", "bash:amd64"], first["packages", "count"]) == ("5.2.15-2+b8", "2")
    write_files(tmp_path, {"var/lib/dpkg/status": DPKG.replace("2.36-9", "2.36-10")})
    second = {(kind, name): value for kind, name, value in packages.collect(tmp_path)}
    assert second["packages", "sha256"] != first["packages", "sha256"]


def test_an_rpm_database_is_read(tmp_path: Path) -> None:
    path = tmp_path / "var/lib/rpm/rpmdb.sqlite"
    path.parent.mkdir(parents=True)
    database = sqlite3.connect(path)
    database.execute("CREATE TABLE Packages (hnum INTEGER PRIMARY KEY, blob BLOB NOT NULL)")
    for blob in (
        header("kernel", "5.14.0", "70"),
        header("kernel", "5.14.0", "71"),
        header("bash", "5.1", "2"),
        b"junk",
    ):
        database.execute("INSERT INTO Packages (blob) VALUES (?)", (blob,))
    database.commit()
    database.close()
    found = {name: value for kind, name, value in packages.collect(tmp_path) if kind == "package"}
    assert found == {"kernel": "5.14.0-70 5.14.0-71", "bash": "5.1-2"}


def test_a_database_that_is_none_gives_no_packages(tmp_path: Path) -> None:
    write_files(tmp_path, {"var/lib/rpm/rpmdb.sqlite": "no database"})
    assert list(packages.collect(tmp_path)) == []


def test_an_rpm_database_of_the_old_kind_is_hashed_piece_by_piece(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    content = b"Berkeley" * 1000
    (tmp_path / "var/lib/rpm").mkdir(parents=True)
    (tmp_path / "var/lib/rpm/Packages").write_bytes(content)
    monkeypatch.setattr(fact, "_PIECE_BYTES", 4096)
    monkeypatch.setattr(packages, "read_bytes", lambda path, limit_bytes: None)
    assert [tuple(found) for found in packages.collect(tmp_path)] == [
        ("packages", "sha256", hashlib.sha256(content).hexdigest())
    ]


def test_a_database_that_may_not_be_read_has_no_hash(tmp_path: Path) -> None:
    (tmp_path / "var/lib/rpm/Packages").mkdir(parents=True)
    assert list(packages.collect(tmp_path)) == []
