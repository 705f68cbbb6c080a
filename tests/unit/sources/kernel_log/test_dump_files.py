"""Which files count as the last words of a kernel: root's, new enough, put together from parts."""

import os
from pathlib import Path

import pytest

from necroscope.sources.kernel_log.dump_files import newest_dump

pytestmark = pytest.mark.skipif(os.geteuid() != 0, reason="only files of root count: needs root")
NOW_S = 1_760_000_000
NS = 1_000_000_000


def write(path: Path, text: str, age_s: int = 0) -> Path:
    path.parent.mkdir(parents=True, exist_ok=True)
    path.write_text(text)
    os.utime(path, (NOW_S - age_s, NOW_S - age_s))
    return path


def test_parts_of_one_dump_are_put_together_oldest_first(tmp_path: Path) -> None:
    pstore = tmp_path / "sys/fs/pstore"
    write(pstore / "dmesg-efi-1", "Panic#2 Part1\n<0>[ 9.000000] end\n")
    write(pstore / "dmesg-efi-2", "Panic#2 Part2\n<0>[ 8.000000] before\n")
    write(pstore / "dmesg-efi-3", "Oops#1 Part1\n<0>[ 1.000000] another\n", age_s=5)
    dump = newest_dump(tmp_path, 0)
    assert dump is not None
    assert dump.text.index(b"before") < dump.text.index(b"end")
    assert b"another" not in dump.text
    assert (dump.place, dump.ended_ns) == ("pstore", NOW_S * NS)


def test_what_is_older_than_the_recording_is_of_another_end(tmp_path: Path) -> None:
    write(tmp_path / "sys/fs/pstore/dmesg-efi-1", "Panic#1 Part1\n<0>[ 9.000000] end\n", age_s=900)
    assert newest_dump(tmp_path, (NOW_S - 60) * NS) is None


def test_systemds_archive_and_crash_dumps_are_found(tmp_path: Path) -> None:
    write(tmp_path / "var/lib/systemd/pstore/1760/001/dmesg.txt", "<0>[ 1.000000] a\n", age_s=9)
    write(tmp_path / "var/crash/202611180930/dmesg.202611180930", "[ 1.000000] b\n")
    dump = newest_dump(tmp_path, 0)
    assert dump is not None
    assert dump.place == "the crash dump"


def test_files_that_another_user_could_make_do_not_count(tmp_path: Path) -> None:
    crash = tmp_path / "var/crash"
    own = write(crash / "theirs/vmcore-dmesg.txt", "[ 1.000000] Kernel panic\n")
    os.chown(own, 65534, 65534)
    write(crash / "open/vmcore-dmesg.txt", "[ 1.000000] Kernel panic\n")
    (crash / "open").chmod(0o777)
    (crash / "link").mkdir()
    (crash / "link/vmcore-dmesg.txt").symlink_to(own)
    os.mkfifo(crash / "link/dmesg.1")
    assert newest_dump(tmp_path, 0) is None


def test_many_files_of_another_user_do_not_hide_roots(tmp_path: Path) -> None:
    """/var/crash is open to all on some systems, and the last by name count."""
    crash = tmp_path / "var/crash"
    write(crash / "202611180930/vmcore-dmesg.txt", "[ 1.000000] Kernel panic\n")
    for number in range(100):
        theirs = write(crash / f"zzz{number}/vmcore-dmesg.txt", "[ 1.000000] nothing\n")
        os.chown(theirs.parent, 65534, 65534)
    dump = newest_dump(tmp_path, 0)
    assert dump is not None
    assert b"Kernel panic" in dump.text
