"""The C of the native core: clean under the analyzer, and right under the sanitizers for every
input that fuzzing kept.
"""

import subprocess
from pathlib import Path

import pytest
from tests.native_build import ROOT, compile_fuzz_target, hatch_build, needs_gcc

CORPUS = ROOT / "tests" / "data" / "fuzz" / "profile"
SOURCES = ROOT / "src" / "necroscope" / "profile" / "core"
# Tried, not assumed: gcc may be there without the libraries of its sanitizers.
TRIAL = "echo 'int main(void) { return 0; }' | gcc -fsanitize=address,undefined -xc - -o /dev/null"
HAS_SANITIZERS = subprocess.run(["sh", "-c", TRIAL], capture_output=True).returncode == 0


def test_files_and_lines_of_c_stay_short() -> None:
    """As those of Python; .clang-format has the rest."""
    for path in (*SOURCES.glob("*.[ch]"), *(ROOT / "tests/fuzz/native").glob("*.[ch]")):
        lines = path.read_text().splitlines()
        assert max(map(len, lines)) <= 100, path
        assert len(lines) <= 400 or path.parent != SOURCES, path


@needs_gcc
def test_the_analyzer_has_nothing_to_say(tmp_path: Path) -> None:
    build = hatch_build()
    build.build_library(ROOT, tmp_path / "libprofile.so", build._target(), flags=("-fanalyzer",))


@pytest.mark.skipif(not HAS_SANITIZERS, reason="needs gcc with libasan and libubsan")
def test_every_input_that_fuzzing_kept_holds_under_the_sanitizers(tmp_path: Path) -> None:
    """`scripts/fuzz native` finds new ones; tests/fuzz/native/ says what must hold."""
    compile_fuzz_target(tmp_path / "fuzz")
    ran = subprocess.run([tmp_path / "fuzz", CORPUS], capture_output=True, text=True)
    assert ran.returncode == 0, ran.stderr[-3000:]
    assert ran.stdout == f"{len(list(CORPUS.iterdir()))} inputs\n"


@needs_gcc
def test_the_library_needs_no_newer_c_library_than_its_wheel_says(tmp_path: Path) -> None:
    build = hatch_build()
    build.build_library(ROOT, tmp_path / "libprofile.so", build._target())
    assert build._needed_libc(tmp_path / "libprofile.so") == build.OLDEST_LIBC
