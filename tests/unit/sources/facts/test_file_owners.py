"""Which package brought a unit's file, and since when the unit is enabled."""

import gzip
import os
import sqlite3
import struct
from pathlib import Path

from necroscope.sources.facts.file_owners import enabled_since, packages_of

DATA = Path(__file__).parents[3] / "data"


def test_a_file_belongs_to_the_package_whose_list_has_it_by_either_name(tmp_path: Path) -> None:
    info = tmp_path / "var/lib/dpkg/info"
    info.mkdir(parents=True)
    (info / "ecs-init:amd64.list").write_text("/.\n/lib/systemd/system/ecs.service\n")
    (info / "other.list").write_text("/lib/systemd/system/ecs.service.d\n")
    (info / "ecs-init.md5sums").write_text("/etc/own.service\n")
    files = ["/usr/lib/systemd/system/ecs.service", "/etc/own.service"]
    assert packages_of(tmp_path, files) == {files[0]: "ecs-init"}


def test_a_unit_is_enabled_since_the_day_of_its_link(tmp_path: Path) -> None:
    wants = tmp_path / "etc/systemd/system/multi-user.target.wants"
    wants.mkdir(parents=True)
    (wants / "ecs.service").symlink_to("/lib/systemd/system/ecs.service")
    os.utime(wants / "ecs.service", (1_770_000_000, 1_770_000_000), follow_symlinks=False)
    assert enabled_since(tmp_path, ["ecs.service", "x.service"]) == {"ecs.service": "2026-02-02"}


def rpm_header(name: str, files: list[tuple[int, str]], folders: list[str]) -> bytes:
    """As rpm stores it: base names with the number of their directory, and directories."""
    texts = {1000: [name], 1001: ["1.8"], 1002: ["2"], 1118: folders}
    texts[1117] = [base for _, base in files]
    store, entries = b"", b""
    for tag, values in texts.items():
        kind = 6 if tag < 1003 else 8
        entries += struct.pack(">IIII", tag, kind, len(store), len(values))
        store += b"".join(value.encode() + b"\0" for value in values)
    store += b"\0" * (-len(store) % 4)
    entries += struct.pack(">IIII", 1116, 4, len(store), len(files))
    store += b"".join(struct.pack(">i", folder) for folder, _ in files)
    return struct.pack(">II", len(texts) + 1, len(store)) + entries + store


def test_a_file_belongs_to_the_rpm_whose_header_has_it(tmp_path: Path) -> None:
    path = tmp_path / "var/lib/rpm/rpmdb.sqlite"
    path.parent.mkdir(parents=True)
    database = sqlite3.connect(path)
    database.execute("CREATE TABLE Packages (hnum INTEGER PRIMARY KEY, blob BLOB NOT NULL)")
    unit = "/usr/lib/systemd/system/"
    whole = rpm_header("ecs-init", [(1, "init"), (0, "ecs.service")], [unit, "/usr/libexec/"])
    other = rpm_header("other", [(0, "ecs.service")], ["/usr/share/doc/"])
    for blob in (other, whole[:-4], whole[:60], b"ecs.service", whole):
        database.execute("INSERT INTO Packages (blob) VALUES (?)", (blob,))
    database.commit()
    database.close()
    files = ["/lib/systemd/system/ecs.service", "/etc/own.service"]
    assert packages_of(tmp_path, files) == {files[0]: "ecs-init"}


def test_the_database_that_rpm_itself_has_made(tmp_path: Path) -> None:
    path = tmp_path / "var/lib/rpm/rpmdb.sqlite"
    path.parent.mkdir(parents=True)
    path.write_bytes(gzip.decompress((DATA / "rpm/rpmdb.sqlite.gz").read_bytes()))
    files = ["/lib/systemd/system/ecs.service", "/usr/libexec/ecs-init", "/usr/libexec/other"]
    assert packages_of(tmp_path, files) == dict.fromkeys(files[:2], "ecs-init")


def test_a_node_without_dpkg_has_no_owners(tmp_path: Path) -> None:
    assert packages_of(tmp_path, ["/etc/x"]) == {}
    assert enabled_since(tmp_path, ["x.service"]) == {}
