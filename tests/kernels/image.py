"""What is booted: one root image from Debian's packages, and for each kernel its image and an
initramfs. Made once, then kept.

The root holds systemd, Python and the wheels that necroscope needs, fetched here: a guest has no
network. necroscope's own wheel is installed inside, at every boot.
"""

import hashlib
import os
import shutil
import sys
import tomllib
from dataclasses import dataclass
from pathlib import Path
from typing import Final

from tests.kernels import initramfs
from tests.kernels.debian import Suite, mirrors, unpack
from tests.kernels.failure import CannotTestError
from tests.kernels.kernels import Kernel
from tests.kernels.programs import run

ROOT: Final = Path(__file__).parents[2]
_SUITE: Final = "bookworm"
_PACKAGES: Final = (
    "systemd",
    "systemd-sysv",
    "dbus",
    "python3",
    "python3-pip",
    "iproute2",
    "kmod",
    "procps",
)
_PYTHON: Final = "3.11"
_FOR_TESTS: Final = ("pytest>=8", "pytest-timeout>=2.3", "hypothesis>=6.100")
_PLATFORMS: Final = ("manylinux_2_28_x86_64", "manylinux_2_17_x86_64", "manylinux2014_x86_64")
# A guest does what it is told and nothing else.
_MASKED: Final = (
    "apt-daily.timer",
    "apt-daily-upgrade.timer",
    "dpkg-db-backup.timer",
    "e2scrub_all.timer",
    "fstrim.timer",
)
_UNIT: Final = """\
[Unit]
Description=What this guest was booted for
After=dbus.service

[Service]
Type=oneshot
TimeoutStartSec=infinity
ExecStart=/bin/sh -c 'python3 /job/inside.py >/dev/ttyS0 2>&1; exec systemctl poweroff --force --force'

[Install]
WantedBy=multi-user.target
"""


@dataclass(frozen=True, slots=True)
class Bootable:
    """The files of one kernel; `release` is what uname says in it."""

    release: str
    image: Path
    initramfs: Path


class Workshop:
    """Makes what is booted, below one directory."""

    def __init__(self, directory: Path) -> None:
        self._directory = directory
        directory.mkdir(parents=True, exist_ok=True)

    def bootable(self, kernel: Kernel) -> Bootable:
        """The newest kernel of that name. Delete the directory to get a newer one."""
        place = self._directory / f"kernel-{kernel.name}"
        if not (place / "initramfs").exists():
            self._unpack_kernel(kernel, place)
        image = next((place / "boot").iterdir())
        return Bootable(image.name.removeprefix("vmlinuz-"), image, place / "initramfs")

    def root_image(self) -> Path:
        image = self._directory / f"root-{self._stamp()}.ext4"
        if not image.exists():
            root = self._directory / "root"
            shutil.rmtree(root, ignore_errors=True)
            self._install_debian(root)
            self._install_wheels(root)
            _write_image(root, image)
            shutil.rmtree(root)
        return image

    def wheel(self) -> Path:
        """necroscope of the working tree, as `pip install` would get it; made anew when a file is
        younger.
        """
        directory = self._directory / "wheel"
        made = next(directory.glob("necroscope-*.whl"), None)
        if made is None or _changed_since(made):
            shutil.rmtree(directory, ignore_errors=True)
            _pip("wheel", "--no-deps", "--wheel-dir", str(directory), str(ROOT))
        return next(directory.glob("necroscope-*.whl"))

    def _unpack_kernel(self, kernel: Kernel, place: Path) -> None:
        suite = Suite(kernel.suite, self._directory)
        package = suite.image_package(kernel.package)
        files = suite.download([package, *suite.companions(package)], self._directory / "packages")
        shutil.rmtree(place, ignore_errors=True)
        unpacked = place / "unpacked"
        for file in files:
            unpack(file, unpacked)
        modules = next(path.parent for path in unpacked.rglob("modules.builtin"))
        image = next((path for path in unpacked.rglob("vmlinu*") if path.is_file()), None)
        if image is None:
            raise CannotTestError(f"{package} holds no kernel")
        initramfs.write(place / "initramfs.new", modules, self._shell())
        (place / "boot").mkdir()
        image.rename(place / "boot" / f"vmlinuz-{modules.name}")
        shutil.rmtree(unpacked)
        (place / "initramfs.new").rename(place / "initramfs")

    def _shell(self) -> Path:
        directory = self._directory / "busybox"
        if not directory.exists():
            (package,) = Suite(_SUITE, self._directory).download(
                ["busybox-static"], self._directory / "packages"
            )
            unpack(package, directory)
        return next(
            path
            for path in directory.rglob("busybox")
            if path.is_file() and os.access(path, os.X_OK)
        )

    def _stamp(self) -> str:
        told = (_PACKAGES, _UNIT, _MASKED, _requirements())
        return hashlib.sha256(repr(told).encode()).hexdigest()[:12]

    def _install_debian(self, root: Path) -> None:
        include = f"--include={','.join(_PACKAGES)}"
        run(["debootstrap", "--variant=minbase", include, _SUITE, str(root), mirrors()["Debian"]])
        units = root / "etc/systemd/system"
        (units / "job.service").write_text(_UNIT)
        (units / "multi-user.target.wants").mkdir(parents=True, exist_ok=True)
        (units / "multi-user.target.wants/job.service").symlink_to("../job.service")
        (units / "default.target").unlink(missing_ok=True)
        (units / "default.target").symlink_to("/lib/systemd/system/multi-user.target")
        for name in _MASKED:
            (units / name).unlink(missing_ok=True)
            (units / name).symlink_to("/dev/null")
        (root / "etc/hostname").write_text("guest\n")
        shutil.rmtree(root / "var/cache/apt/archives", ignore_errors=True)

    def _install_wheels(self, root: Path) -> None:
        platforms = [word for platform in _PLATFORMS for word in ("--platform", platform)]
        target = root / f"usr/local/lib/python{_PYTHON}/dist-packages"
        chosen = ["--only-binary", ":all:", "--python-version", _PYTHON, *platforms, "--no-compile"]
        _pip("install", "--target", str(target), *chosen, *_requirements())
        run(["chroot", str(root), "python3", "-m", "compileall", "-q", "/usr/local/lib"])


def _changed_since(made: Path) -> bool:
    """Whether a file that goes into the wheel is younger than it; what the build itself writes does
    not count.
    """
    when_s = made.stat().st_mtime
    places = [
        ROOT / "pyproject.toml",
        *(ROOT / "src").rglob("*.py"),
        *(ROOT / "web/src").rglob("*"),
    ]
    return any(path.stat().st_mtime > when_s for path in places)


def _requirements() -> list[str]:
    project = tomllib.loads((ROOT / "pyproject.toml").read_text("utf-8"))["project"]
    return [*project["dependencies"], *_FOR_TESTS]


def _write_image(root: Path, image: Path) -> None:
    """mke2fs fills it without mounting it; room for recordings is left."""
    new = image.with_suffix(".new")
    new.unlink(missing_ok=True)
    used_bytes = sum(path.lstat().st_blocks * 512 for path in root.rglob("*"))
    run(
        [
            "mke2fs",
            "-q",
            "-t",
            "ext4",
            "-b",
            "4096",
            "-d",
            str(root),
            str(new),
            f"{used_bytes * 5 // 4096 // 4 + 200_000}",
        ]
    )
    new.rename(image)


def _pip(*words: str) -> None:
    run(
        [
            sys.executable,
            "-m",
            "pip",
            words[0],
            "--quiet",
            "--disable-pip-version-check",
            *words[1:],
        ]
    )
