import errno
import os
import subprocess
import sys
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import pytest

from necroscope.symbols import target_files
from necroscope.symbols.process_maps import parse
from necroscope.symbols.target_files import open_in_root, open_mapped

HERE = os.getpid()


def without_openat2(*_: object) -> int:
    raise OSError(errno.ENOSYS, "no openat2")


@pytest.fixture(params=["openat2", "by steps"])
def inside(
    request: pytest.FixtureRequest, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> Iterator[Callable[[str], bytes | None]]:
    """Reads a path inside tmp_path/root, with openat2 and without it."""
    if request.param == "by steps":
        monkeypatch.setattr(target_files, "syscall", without_openat2)
    (tmp_path / "root/dir").mkdir(parents=True)
    (tmp_path / "root/dir/file").write_bytes(b"inside")
    (tmp_path / "secret").write_bytes(b"outside")
    root = os.open(tmp_path / "root", os.O_PATH)

    def read(path: str) -> bytes | None:
        before = len(os.listdir("/proc/self/fd"))
        descriptor = open_in_root(root, path.encode())
        try:
            return None if descriptor is None else os.read(descriptor, 100)
        finally:
            if descriptor is not None:
                os.close(descriptor)
            assert len(os.listdir("/proc/self/fd")) == before

    yield read
    os.close(root)


def test_file_is_read(inside: Callable[[str], bytes | None]) -> None:
    assert inside("/dir/file") == b"inside"
    assert inside("//dir/./../dir/file") == b"inside"


@pytest.mark.parametrize(
    "target", ["{tmp}/secret", "../secret", "../../../../../{tmp}/secret", "/../secret"]
)
def test_symlink_that_leads_out_stays_inside(
    target: str, inside: Callable[[str], bytes | None], tmp_path: Path
) -> None:
    (tmp_path / "root/link").symlink_to(target.format(tmp=tmp_path))
    assert inside("/link") is None
    assert inside("/../secret") is None


def test_absolute_symlink_means_the_file_inside(
    inside: Callable[[str], bytes | None], tmp_path: Path
) -> None:
    (tmp_path / "root/etc").mkdir()
    (tmp_path / "root/etc/hostname").write_bytes(b"of the container")
    (tmp_path / "root/dir/link").symlink_to("/etc/hostname")
    (tmp_path / "root/dir/again").symlink_to("link")
    (tmp_path / "root/up").symlink_to("dir/../../../etc")
    assert inside("/dir/link") == b"of the container"
    assert inside("/dir/again") == b"of the container"
    assert inside("/up/hostname") == b"of the container"


def test_symlink_loop_is_nothing(inside: Callable[[str], bytes | None], tmp_path: Path) -> None:
    (tmp_path / "root/loop").symlink_to("loop")
    assert inside("/loop") is None


def test_what_is_no_regular_file_is_nothing(
    inside: Callable[[str], bytes | None], tmp_path: Path
) -> None:
    os.mkfifo(tmp_path / "root/fifo")
    assert inside("/fifo") is None
    assert inside("/dir") is None
    assert inside("/dir/file/more") is None


@pytest.mark.root
def test_device_is_nothing(inside: Callable[[str], bytes | None], tmp_path: Path) -> None:
    if os.geteuid() != 0:
        pytest.skip("mknod needs root")
    os.mknod(tmp_path / "root/zero", 0o600 | 0o020000, os.makedev(1, 5))
    assert inside("/zero") is None


def test_odd_paths_are_nothing(inside: Callable[[str], bytes | None]) -> None:
    for path in (
        "",
        "[vdso]",
        "//anon",
        "relative",
        "/a\0b",
        "/" + "x" * 5000,
        "/memfd:jit (deleted)",
    ):
        assert inside(path) is None


@pytest.mark.kernel
def test_magic_links_are_not_followed() -> None:
    root = os.open("/", os.O_PATH)
    try:
        assert open_in_root(root, b"/proc/self/exe") is None
    finally:
        os.close(root)


def device_and_inode(path: Path) -> tuple[tuple[int, int], int]:
    status = path.stat()
    return (os.major(status.st_dev), os.minor(status.st_dev)), status.st_ino


def is_open(descriptor: int | None) -> bool:
    if descriptor is None:
        return False
    os.close(descriptor)
    return True


@pytest.mark.kernel
def test_file_of_a_dead_process_needs_the_same_inode(tmp_path: Path) -> None:
    path = tmp_path / "library.so"
    path.write_bytes(b"content")
    device, inode = device_and_inode(path)
    dead = subprocess.Popen([sys.executable, "-c", ""])
    dead.wait()
    root = Path("/")
    assert is_open(open_mapped(root, dead.pid, str(path), device, inode))
    assert not is_open(open_mapped(root, dead.pid, str(path), device, inode + 1))
    assert not is_open(open_mapped(root, dead.pid, str(path), (device[0], device[1] + 1), inode))
    assert not is_open(open_mapped(root, dead.pid, str(path), (0, 0), 0))


@pytest.mark.kernel
def test_file_of_a_living_process_may_show_another_device(tmp_path: Path) -> None:
    """As overlayfs with layers on several file systems shows it."""
    path = tmp_path / "library.so"
    path.write_bytes(b"content")
    device, inode = device_and_inode(path)
    assert is_open(open_mapped(Path("/"), HERE, str(path), (device[0], device[1] + 1), 5))
    assert is_open(open_mapped(Path("/"), HERE, str(path), (0, 0), 0))
    assert not is_open(open_mapped(Path("/"), HERE, str(path), device, inode + 1)), (
        "replaced, and mapped nowhere"
    )


@pytest.mark.kernel
def test_replaced_program_is_read_through_its_mapping(
    compile_c: Callable[..., Path], spawn: Callable[..., Any]
) -> None:
    program = compile_c("program")
    process = spawn(program)
    device, inode = device_and_inode(program)
    content = program.read_bytes()
    program.rename(program.with_suffix(".old"))
    program.write_bytes(b"a newer version")
    program.with_suffix(".old").unlink()
    mapping = next(
        m for m in parse(Path(f"/proc/{process.pid}/maps").read_bytes()) if m.inode == inode
    )
    assert mapping.path.endswith("(deleted)")
    for path in (str(program), mapping.path):
        descriptor = open_mapped(Path("/"), process.pid, path, device, inode)
        assert descriptor is not None
        assert os.pread(descriptor, len(content) + 1, 0) == content
        os.close(descriptor)
