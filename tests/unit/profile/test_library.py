"""Whatever is wrong with the native library is said in one line with the way out, and never a
crash.
"""

import platform
import shutil
import struct
import subprocess
from pathlib import Path

import pytest
from tests.native_build import needs_gcc

from necroscope.errors import SourceUnavailable
from necroscope.native import ABI, LIBRARY
from necroscope.profile.library import load


def facts(path: Path) -> str:
    with pytest.raises(SourceUnavailable) as raised:
        load(path)
    assert "scripts/setup" in raised.value.hint
    assert "pip install" in raised.value.hint
    return raised.value.facts


def compiled(path: Path, code: str, *flags: str) -> Path:
    source = path.with_suffix(".c")
    source.write_text(code)
    subprocess.run(["gcc", "-shared", "-fPIC", str(source), *flags, "-o", str(path)], check=True)
    return path


def test_the_library_of_this_package_loads() -> None:
    assert load().profile_abi() == ABI


def test_no_library(tmp_path: Path) -> None:
    assert (
        facts(tmp_path / "libprofile.so")
        == "the native library libprofile.so is not there: this package was built without it"
    )


def test_a_file_that_is_not_a_library(tmp_path: Path) -> None:
    (tmp_path / "libprofile.so").write_bytes(b"")
    assert "libprofile.so cannot be loaded on this " in facts(tmp_path / "libprofile.so")


def test_a_library_of_another_architecture(tmp_path: Path) -> None:
    """e_machine of the ELF header is the other one's; that is where the loader looks."""
    content, machines = LIBRARY.read_bytes(), {"x86_64": 62, "aarch64": 183}
    (other,) = machines.keys() - {platform.machine()}
    (tmp_path / "libprofile.so").write_bytes(
        content[:18] + struct.pack("<H", machines[other]) + content[20:]
    )
    assert (
        facts(tmp_path / "libprofile.so")
        == f"the native library libprofile.so is for {other}, and this machine is"
        f" {platform.machine()}"
    )


@needs_gcc
def test_a_library_of_another_interface_version(tmp_path: Path) -> None:
    old = compiled(tmp_path / "libprofile.so", "unsigned profile_abi(void) { return 99; }")
    assert facts(old) == f"libprofile.so is of interface version 99, and this package needs {ABI}"


@needs_gcc
def test_a_library_that_is_somebody_elses(tmp_path: Path) -> None:
    other = compiled(tmp_path / "libprofile.so", "int something;")
    assert facts(other) == "libprofile.so is not necroscope's library: it has no profile_abi"


@needs_gcc
def test_a_library_that_lacks_a_function(tmp_path: Path) -> None:
    part = compiled(tmp_path / "libprofile.so", f"unsigned profile_abi(void) {{ return {ABI}; }}")
    assert facts(part) == "libprofile.so is not necroscope's library: it has no profile_new"


@needs_gcc
def test_a_library_for_a_newer_c_library(tmp_path: Path) -> None:
    """It needs a version of a symbol that this machine's libc.so.6 does not have, as one built on a
    newer system would.
    """
    libc = tmp_path / "newer"
    libc.mkdir()
    (libc / "versions").write_text("GLIBC_2.99 { global: from_the_future; };")
    names = ("-Wl,-soname,libc.so.6", f"-Wl,--version-script={libc / 'versions'}", "-nostdlib")
    compiled(libc / "libc.so.6", "void from_the_future(void) {}", *names)
    code = (
        "void from_the_future(void); unsigned profile_abi(void) { from_the_future(); return"
        f" {ABI}; }}"
    )
    newer = compiled(tmp_path / "libprofile.so", code, "-nostdlib", str(libc / "libc.so.6"))
    shutil.rmtree(libc)
    assert "libprofile.so cannot be loaded on this " in (found := facts(newer))
    assert "GLIBC_2.99" in found
