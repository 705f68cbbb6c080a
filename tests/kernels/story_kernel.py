"""Debian's 5.10 with the walk of the story's kernel: a live patch takes one change of the kernel
back, built here against Debian's headers and loaded in the guest.

A live patch, and not a kernel of our own: it is built in seconds, and everything else of the guest's
kernel is Debian's.
"""

import os
import re
import shutil
from pathlib import Path
from typing import Final

from tests.kernels.architecture import AMD64
from tests.kernels.debian import Suite, unpack
from tests.kernels.failure import CannotTestError
from tests.kernels.image import ROOT
from tests.kernels.kernels import STORY
from tests.kernels.programs import run

SOURCE: Final = ROOT / "tests/kernels/story/walk.c"
_BUILD_S: Final = 300


def live_patch(directory: Path, release: str) -> Path:
    """The module for that release of the kernel; built again when its source is younger."""
    place = directory / f"patch-{release}"
    module = place / "walk.ko"
    if not module.exists() or module.stat().st_mtime < SOURCE.stat().st_mtime:
        headers = _headers(directory, release)
        shutil.rmtree(place, ignore_errors=True)
        place.mkdir()
        shutil.copy(SOURCE, place)
        (place / "Makefile").write_text("obj-m := walk.o\n")
        # Debian's headers ask for the compiler of their own suite, which need not be here.
        words = ["-s", "-C", str(headers), f"M={place.resolve()}", "CC=gcc", "KCFLAGS=-w"]
        run(["make", *words, "modules"], longest_s=_BUILD_S)
    return module


def _headers(directory: Path, release: str) -> Path:
    """Of three packages: those of the release, those of all its flavours, and kbuild."""
    unpacked = (directory / f"headers-{release}").resolve()
    place = unpacked / "usr/src" / f"linux-headers-{release}"
    if not place.exists():
        suite = Suite(STORY.suite, directory, AMD64.debian)
        flavours = f"linux-headers-{release.removesuffix(f'-{AMD64.debian}')}-common"
        series = re.match(r"\d+\.\d+", release)
        if series is None:
            raise CannotTestError(f"{release} is not a release of the kernel")
        names = [flavours, f"linux-kbuild-{series[0]}", place.name]
        for package in suite.download(names, directory / f"packages-{AMD64.debian}"):
            unpack(package, unpacked)
        makefile = place / "Makefile"
        makefile.write_text(makefile.read_text().replace("/usr/src/", f"{place.parent}{os.sep}"))
    return place
