"""What is booted: one root image for each architecture from Debian's packages, and for each kernel
its image and an initramfs. Made once, then kept.

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

from tests.kernels import debian_root, initramfs
from tests.kernels.architecture import Architecture
from tests.kernels.debian import Suite, unpack
from tests.kernels.failure import CannotTestError
from tests.kernels.kernels import Kernel
from tests.kernels.programs import run

ROOT: Final = Path(__file__).parents[2]
_FOR_TESTS: Final = ("pytest>=8", "pytest-timeout>=2.3", "hypothesis>=6.100")


@dataclass(frozen=True, slots=True)
class Bootable:
    """The files of one kernel; `release` is what uname says in it."""

    release: str
    image: Path
    initramfs: Path
    architecture: Architecture


@dataclass(frozen=True, slots=True)
class Programs:
    """What a root has besides the usual: packages of its own suite with all they depend on, and
    single packages of other suites.
    """

    packages: tuple[str, ...] = ()
    of_other_suites: tuple[tuple[str, str], ...] = ()


NO_PROGRAMS: Final = Programs()
STORY_PROGRAMS: Final = Programs(("docker.io", "busybox-static"), (("bullseye", "cadvisor"),))


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
        return Bootable(
            image.name.removeprefix("vmlinuz-"), image, place / "initramfs", kernel.architecture
        )

    def root_image(self, architecture: Architecture, programs: Programs = NO_PROGRAMS) -> Path:
        name = f"root-{architecture.debian}-{_stamp(programs)}.ext4"
        image = self._directory / name
        if not image.exists():
            root = self._directory / "root"
            shutil.rmtree(root, ignore_errors=True)
            debian_root.install(root, architecture, programs.packages)
            for suite, package in programs.of_other_suites:
                (file,) = self._download(suite, architecture, package)
                unpack(file, root)
            _install_wheels(root, architecture)
            _compile_python(root, architecture)
            _write_image(root, image)
            shutil.rmtree(root)
        return image

    def wheel(self, architecture: Architecture) -> Path:
        """necroscope of the working tree, as `pip install` would get it; re-created when a file is
        younger.
        """
        directory = self._directory / f"wheel-{architecture.debian}"
        made = next(directory.glob("necroscope-*.whl"), None)
        if made is None or _changed_since(made):
            shutil.rmtree(directory, ignore_errors=True)
            words = ("wheel", "--no-deps", "--wheel-dir", str(directory), str(ROOT))
            _pip(*words, target=architecture.machine)
        return next(directory.glob("necroscope-*.whl"))

    def _unpack_kernel(self, kernel: Kernel, place: Path) -> None:
        suite = Suite(kernel.suite, self._directory, kernel.architecture.debian)
        package = suite.image_package(kernel.package)
        files = suite.download(
            [package, *suite.companions(package)], self._packages(kernel.architecture)
        )
        shutil.rmtree(place, ignore_errors=True)
        unpacked = place / "unpacked"
        for file in files:
            unpack(file, unpacked)
        modules = next(path.parent for path in unpacked.rglob("modules.builtin"))
        image = next((path for path in unpacked.rglob("vmlinu*") if path.is_file()), None)
        if image is None:
            raise CannotTestError(f"{package} holds no kernel")
        initramfs.write(place / "initramfs.new", modules, self._shell(kernel.architecture))
        (place / "boot").mkdir()
        image.rename(place / "boot" / f"vmlinuz-{modules.name}")
        shutil.rmtree(unpacked)
        (place / "initramfs.new").rename(place / "initramfs")

    def _download(self, suite: str, architecture: Architecture, package: str) -> list[Path]:
        own = Suite(suite, self._directory, architecture.debian)
        return own.download([package], self._packages(architecture))

    def _packages(self, architecture: Architecture) -> Path:
        return self._directory / f"packages-{architecture.debian}"

    def _shell(self, architecture: Architecture) -> Path:
        directory = self._directory / f"busybox-{architecture.debian}"
        if not directory.exists():
            (package,) = self._download(debian_root.SUITE, architecture, "busybox-static")
            unpack(package, directory)
        return next(
            path
            for path in directory.rglob("busybox")
            if path.is_file() and os.access(path, os.X_OK)
        )


def _stamp(programs: Programs) -> str:
    found = (debian_root.CONTENT, _requirements(), *((programs,) if programs.packages else ()))
    return hashlib.sha256(repr(found).encode()).hexdigest()[:12]


def _install_wheels(root: Path, architecture: Architecture) -> None:
    platforms = [word for name in architecture.wheel_platforms for word in ("--platform", name)]
    python = debian_root.PYTHON
    target = root / f"usr/local/lib/python{python}/dist-packages"
    chosen = ["--only-binary", ":all:", "--python-version", python, *platforms, "--no-compile"]
    _pip("install", "--target", str(target), *chosen, *_requirements())


def _compile_python(root: Path, architecture: Architecture) -> None:
    """So that no boot has to. By the guest's own Python where it runs here, else by ours if it
    writes the same bytecode.
    """
    words = ["-m", "compileall", "-q"]
    if architecture.is_own:
        run(["chroot", str(root), "python3", *words, "/usr/local/lib"])
    elif f"{sys.version_info.major}.{sys.version_info.minor}" == debian_root.PYTHON:
        libraries = [
            str(root / "usr/lib/python3"),
            str(root / f"usr/lib/python{debian_root.PYTHON}"),
        ]
        run(
            [
                sys.executable,
                *words,
                "-s",
                str(root),
                "-p",
                "/",
                *libraries,
                str(root / "usr/local/lib"),
            ]
        )


def _changed_since(made: Path) -> bool:
    """Whether a file that goes into the wheel is younger than it; what the build itself writes does
    not count.
    """
    when_s = made.stat().st_mtime
    places = [
        ROOT / "pyproject.toml",
        *(ROOT / "src").rglob("*.py"),
        *(ROOT / "src").rglob("*.[ch]"),
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


def _pip(*words: str, target: str = "") -> None:
    """`target` is the architecture that hatch_build.py builds for; the machine's own unless told."""
    quiet = ["--quiet", "--disable-pip-version-check"]
    pip = [sys.executable, "-m", "pip", words[0], *quiet, *words[1:]]
    run(["env", f"NECROSCOPE_TARGET={target}", *pip])
