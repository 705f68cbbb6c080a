"""Compiles the native core for tests: with the flags of the package (hatch_build.py), or with
sanitizers and its fuzz target.
"""

import importlib.util
import shutil
import subprocess
from pathlib import Path
from types import ModuleType
from typing import Final

import pytest

ROOT: Final = Path(__file__).parents[1]
SANITIZERS: Final = ("-g", "-O1", "-fsanitize=address,undefined", "-fno-sanitize-recover=all")

needs_gcc = pytest.mark.skipif(
    shutil.which("gcc") is None, reason="needs gcc, to compile the native core"
)


def hatch_build() -> ModuleType:
    spec = importlib.util.spec_from_file_location("hatch_build", ROOT / "hatch_build.py")
    assert spec is not None
    assert spec.loader is not None
    module = importlib.util.module_from_spec(spec)
    spec.loader.exec_module(module)
    return module


def compile_fuzz_target(made: Path) -> None:
    """As a program that runs the files it is given. The core's allocations go through the target,
    so that they can fail there.
    """
    core, target = ROOT / hatch_build().SOURCES, ROOT / "tests" / "fuzz" / "native"
    renamed = (
        "-Dmalloc=fuzz_malloc",
        "-Drealloc=fuzz_realloc",
        "-Dcalloc=fuzz_calloc",
        f"-I{core}",
    )
    sources = sorted(map(str, [*core.glob("*.c"), *target.glob("*.c")]))
    subprocess.run(
        ["gcc", "-std=c11", *SANITIZERS, "-DFUZZ_MAIN", *renamed, *sources, "-o", str(made)],
        check=True,
    )
