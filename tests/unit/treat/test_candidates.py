"""Which files and segments may hold pages of dead cgroups."""

from pathlib import Path

from necroscope.treat.candidates import (
    LocalMount,
    SharedSegment,
    files,
    parse_mounts,
    parse_segments,
)

MOUNTS = """\
21 1 254:0 / / rw - ext4 /dev/vda rw
22 21 254:0 /var/lib /mnt/part rw - ext4 /dev/vda rw
23 21 0:19 / /dev/shm rw - tmpfs tmpfs rw
24 21 0:40 / /mnt/nfs rw - nfs4 server:/ rw
25 21 0:41 / /mnt/a\\040b rw - xfs /dev/vdb rw
garbage
"""
SHM = """\
       key      shmid perms                  size  cpid  lpid nattch   uid   gid  cuid  cgid      atime      dtime      ctime                   rss                  swap
         0          3   600                  8192   100   101      2     0     0     0     0          0          0 1795000000                  4096                     0
 garbage
"""


def test_each_local_file_system_is_looked_at_once_and_memory_first() -> None:
    assert parse_mounts(MOUNTS) == [
        LocalMount("/dev/shm", "tmpfs", "0:19"),
        LocalMount("/", "ext4", "254:0"),
        LocalMount("/mnt/a b", "xfs", "0:41"),
    ]


def test_shared_memory_segments_are_read_with_their_attachments() -> None:
    assert parse_segments(SHM) == [SharedSegment(3, 8192, 2, 4096)]
    assert parse_segments("") == []


def test_only_regular_files_with_content_are_looked_at_and_no_link_is_followed(
    tmp_path: Path,
) -> None:
    (tmp_path / "a").mkdir()
    (tmp_path / "a/file").write_text("x")
    (tmp_path / "a/empty").write_text("")
    (tmp_path / "link").symlink_to("/etc/passwd")
    (tmp_path / "up").symlink_to("..")
    found = [candidate.path for candidate in files([], [tmp_path])]
    assert found == [bytes(tmp_path / "a/file")]
