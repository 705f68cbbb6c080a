"""Sosreports and bundles of EKS's collector, as directories and as tars, also hostile ones."""

import io
import os
import tarfile
from pathlib import Path

import pytest

from necroscope.errors import UsageError
from necroscope.interchange.importer import import_files
from necroscope.interchange.support_bundle import open_bundle
from necroscope.store.query import Store

LOG = "[Wed Apr 15 10:30:00 2026] ena 0000:20:03.0 eth0: Transmit time out\n"
CGROUPS = "#subsys_name\thierarchy\tnum_cgroups\tenabled\nmemory\t5\t68680\t1\ncpu\t3\t9\t1\n"
SOS = {
    "sosreport-node7-2026/hostname": "node7\n",
    "sosreport-node7-2026/sos_commands/kernel/dmesg": "[  1.000000] boot\n",
    "sosreport-node7-2026/sos_commands/kernel/dmesg_-T": LOG,
    "sosreport-node7-2026/proc/cgroups": CGROUPS,
    "sosreport-node7-2026/sys/fs/cgroup/memory/system.slice/tasks": "1\n",
    "sosreport-node7-2026/etc/shadow": "root:secret\n",
}
EKS = {
    "./system/instance-id.txt": "i-0abc\n",
    "./kernel/dmesg.current": "[  1.000000] boot\n",
    "./kernel/dmesg.human.current": LOG,
    "./system/procstat.txt": "cpu  1 1 1 1 1 1 1 1 1 1\ncpu0 1 1 1 1 1 1 1 1 1 1\nintr 0\n",
}


def as_directory(top: Path, files: dict[str, str]) -> Path:
    for name, text in files.items():
        path = top / name
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_text(text)
    return top


def as_tar(path: Path, files: dict[str, str]) -> Path:
    with tarfile.open(path, "w:xz") as packed:
        folders = sorted({folder for name in files for folder in map(str, Path(name).parents)})
        for folder in folders:
            member = tarfile.TarInfo(folder)
            member.type = tarfile.DIRTYPE
            packed.addfile(member)
        for name, text in files.items():
            member = tarfile.TarInfo(name)
            member.size, member.mtime = len(text), 1_776_249_000
            packed.addfile(member, io.BytesIO(text.encode()))
    return path


@pytest.mark.parametrize("pack", [as_directory, as_tar])
@pytest.mark.parametrize(("files", "host"), [(SOS, "node7"), (EKS, "i-0abc")])
def test_a_bundle_becomes_a_recording_of_its_host(tmp_path, pack, files, host) -> None:
    given = pack(tmp_path / "bundle.tar.xz", files)
    report = import_files([given], tmp_path / "out")
    assert report.node == host
    log = Store.open(tmp_path / "out").rows("log", 0, 1 << 62)
    # The log with dates is taken, and the other one, which says the same, is not.
    assert [text.split(": ")[-1] for text in log.column("message").to_pylist()] == [
        "Transmit time out"
    ]


def test_directories_of_cgroups_in_a_bundle_are_those_alive(tmp_path) -> None:
    import_files([as_tar(tmp_path / "sos.tar.xz", SOS)], tmp_path / "out")
    rows = Store.open(tmp_path / "out").rows("cgroups", 0, 1 << 62).to_pylist()
    [memory] = [row for row in rows if row["controller"] == "memory"]
    assert (memory["tracked"], memory["visible"]) == (68680, 2)


def test_names_in_a_tar_lead_nowhere(tmp_path) -> None:
    files = {
        "sosreport-x-2026/sos_commands/kernel/dmesg": LOG,
        "sosreport-x-2026/proc/../../../../escaped": "x",
        "/proc/cgroups": CGROUPS,
        "../proc/cgroups": CGROUPS,
    }
    scratch = tmp_path / "scratch"
    scratch.mkdir()
    found = open_bundle(as_tar(tmp_path / "evil.tar.xz", files), scratch)
    assert found is not None
    assert set(found.files) == {"log"}
    assert os.listdir(scratch) == ["0"]
    assert not (tmp_path / "escaped").exists()


def test_a_link_in_a_bundle_is_not_followed(tmp_path) -> None:
    path = tmp_path / "evil.tar"
    with tarfile.open(path, "w") as packed:
        link = tarfile.TarInfo("sosreport-x-2026/sos_commands/kernel/dmesg")
        link.type, link.linkname = tarfile.SYMTYPE, "/etc/passwd"
        packed.addfile(link)
    with pytest.raises(UsageError, match="neither a kernel log"):
        import_files([path], tmp_path / "out")


def test_other_archives_and_broken_ones_are_refused(tmp_path) -> None:
    other = as_tar(tmp_path / "other.tar.xz", {"photos/cat.txt": "meow"})
    with pytest.raises(UsageError, match="not a file that can be imported"):
        import_files([other], tmp_path / "out")
    content = as_tar(tmp_path / "sos.tar.xz", SOS).read_bytes()
    (tmp_path / "cut.tar.xz").write_bytes(content[: len(content) // 2])
    with pytest.raises(UsageError):
        import_files([tmp_path / "cut.tar.xz"], tmp_path / "out")
