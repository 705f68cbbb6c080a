"""A root of another architecture: unpacked here, and complete without the scripts of its packages."""

import subprocess
from pathlib import Path

from tests.kernels import debian_root

CONTROL = "Package: {name}\nVersion: 1\nArchitecture: arm64\nMaintainer: x\nDescription: x\n"


def _package(archives: Path, name: str, files: dict[str, str]) -> None:
    place = archives.parents[4] / name
    for path, content in {"DEBIAN/control": CONTROL.format(name=name), **files}.items():
        (place / path).parent.mkdir(parents=True, exist_ok=True)
        (place / path).write_text(content)
    subprocess.run(
        ["dpkg-deb", "--build", place, archives / f"{name}.deb"], check=True, capture_output=True
    )


def test_unpacked_packages_keep_the_links_of_the_root_and_get_their_users(tmp_path: Path) -> None:
    root = tmp_path / "root"
    archives = root / "var/cache/apt/archives"
    for directory in (archives, root / "usr/bin", root / "etc", root / "debootstrap"):
        directory.mkdir(parents=True)
    (root / "bin").symlink_to("usr/bin")
    (root / "proc").symlink_to("/proc")
    _package(archives, "shell", {"bin/sh": "shell"})
    _package(
        archives, "users", {"usr/share/base-passwd/passwd.master": "root:*:0:0::/root:/bin/sh\n"}
    )
    debian_root.unpack_all(root)
    assert (root / "bin").is_symlink()
    assert (root / "usr/bin/sh").read_text() == "shell"
    assert [line.split(":")[0] for line in (root / "etc/passwd").read_text().splitlines()] == [
        "root",
        "messagebus",
    ]
    assert (root / "proc").is_dir()
    assert not (root / "proc").is_symlink()
