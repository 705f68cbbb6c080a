"""The archive that a kernel unpacks first, and the modules in it: each after what it needs."""

import lzma
from collections.abc import Iterator
from pathlib import Path

import pytest
from tests.kernels.initramfs import Modules, write


@pytest.fixture
def modules(tmp_path: Path) -> Path:
    """ext4 needs jbd2 and mbcache; virtio_blk comes compressed and is spelt with a dash, as newer
    packages do.
    """
    home = tmp_path / "lib/modules/6.0-test"
    (home / "kernel/fs").mkdir(parents=True)
    (home / "modules.builtin").write_text("kernel/crypto/crc32c_generic.ko\n")
    for name, needs in {"ext4": "jbd2,mbcache", "jbd2": "", "mbcache": ""}.items():
        (home / f"kernel/fs/{name}.ko").write_bytes(_module(name, needs))
    (home / "kernel/fs/virtio-blk.ko.xz").write_bytes(lzma.compress(_module("virtio_blk", "")))
    return home


def _module(name: str, needs: str) -> bytes:
    return f"\x7fELF\0license=GPL\0depends={needs}\0name={name}\0".encode()


def entries(archive: bytes) -> Iterator[tuple[str, int, bytes]]:
    """Name, mode and content, as Documentation/driver-api/early-userspace/buffer-format.rst has
    them.
    """
    place = 0
    while True:
        fields = [
            int(archive[place + 6 + 8 * number : place + 14 + 8 * number], 16)
            for number in range(13)
        ]
        assert archive[place : place + 6] == b"070701"
        name = archive[place + 110 : place + 110 + fields[11] - 1].decode()
        start = place + 110 + fields[11] + -(place + 110 + fields[11]) % 4
        if name == "TRAILER!!!":
            return
        yield name, fields[1], archive[start : start + fields[6]]
        place = start + fields[6] + -(start + fields[6]) % 4


def test_a_module_comes_after_what_it_needs(modules: Path) -> None:
    assert Modules(modules).closure(["virtio_blk", "ext4"]) == [
        "virtio_blk",
        "jbd2",
        "mbcache",
        "ext4",
    ]


def test_what_is_built_in_is_left_out(modules: Path) -> None:
    assert Modules(modules).closure(["crc32c_generic", "jbd2"]) == ["jbd2"]


def test_the_archive_holds_the_shell_the_init_and_the_modules_in_order(
    modules: Path, tmp_path: Path
) -> None:
    (tmp_path / "busybox").write_bytes(b"a shell")
    write(tmp_path / "initramfs", modules, tmp_path / "busybox")
    found = {
        name: (mode, content)
        for name, mode, content in entries((tmp_path / "initramfs").read_bytes())
    }
    assert found["bin/busybox"] == (0o100755, b"a shell")
    assert found["init"][1].startswith(b"#!/bin/busybox sh")
    assert found["lib/modules/6.0-test/kernel/fs"] == (0o040755, b"")
    order = found["order"][1].decode().split()
    assert [Path(line).name for line in order] == [
        "virtio-blk.ko",
        "jbd2.ko",
        "mbcache.ko",
        "ext4.ko",
    ]
    assert found[order[0].lstrip("/")][1] == _module("virtio_blk", "")
