"""Programs compiled for a test, and processes that live as long as it."""

import shutil
import subprocess
from collections.abc import Callable, Iterator
from pathlib import Path

import pytest

DATA = Path(__file__).parents[2] / "data/symbols"
SLEEPER = """
#include <unistd.h>
__attribute__((noinline)) int rest(int x) { write(1, ".", 1); pause(); return x + 1; }
static __attribute__((noinline)) int hidden_helper(int x) { return rest(x) * 3; }
int main(int argc, char **argv) { return hidden_helper(argc); }
"""


@pytest.fixture
def data() -> Path:
    return DATA


@pytest.fixture
def compile_c(tmp_path: Path) -> Callable[..., Path]:
    """Compiles C source: compile_c("name", "-no-pie") -> path; skips where there is no compiler."""
    if shutil.which("gcc") is None:
        pytest.skip("no gcc to compile a test program with")

    def compile_source(name: str, *options: str, source: str = SLEEPER) -> Path:
        path = tmp_path / name
        (tmp_path / f"{name}.c").write_text(source)
        subprocess.run(["gcc", "-O1", "-o", path, tmp_path / f"{name}.c", *options], check=True)
        return path

    return compile_source


@pytest.fixture
def spawn() -> Iterator[Callable[..., subprocess.Popen[bytes]]]:
    """Starts a program that writes one byte when it is up, waits for that byte, and ends it after
    the test.
    """
    started: list[subprocess.Popen[bytes]] = []

    def start(*arguments: object, **options: object) -> subprocess.Popen[bytes]:
        process = subprocess.Popen(
            [str(argument) for argument in arguments], stdout=subprocess.PIPE, **options
        )  # type: ignore[call-overload]
        started.append(process)
        assert process.stdout.read(1)
        return process

    yield start
    for process in started:
        process.kill()
        process.wait()
        process.stdout.close()  # type: ignore[union-attr]


def function_offset(path: Path, name: str) -> int:
    """File offset of the second byte of a function, by nm and readelf."""
    symbols = subprocess.run(["nm", path], capture_output=True, text=True, check=True).stdout
    address = next(
        int(line.split()[0], 16)
        for line in symbols.splitlines()
        if line.split()[-1] == name and len(line.split()) == 3
    )
    headers = subprocess.run(
        ["readelf", "-lW", path], capture_output=True, text=True, check=True
    ).stdout
    for line in headers.splitlines():
        fields = line.split()
        if fields[:1] == ["LOAD"]:
            offset, start, _, size = (int(field, 16) for field in fields[1:5])
            if start <= address < start + size:
                return address - start + offset + 1
    raise AssertionError(f"{name} is in no segment of {path}")


@pytest.fixture
def offset_of() -> Callable[[Path, str], int]:
    return function_offset
