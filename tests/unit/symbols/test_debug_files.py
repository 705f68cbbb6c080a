import os
import subprocess
from collections.abc import Callable
from pathlib import Path

import pytest
from tests.whole_symbol_table import functions_between

from necroscope.symbols.debug_files import find_functions
from necroscope.symbols.elf import Elf
from necroscope.symbols.image import FileImage


def split(program: Path, debug: Path) -> int:
    """Moves the symbols of a program into a debug file; returns the address of a static
    function.
    """
    symbols = subprocess.run(
        ["nm", program], capture_output=True, text=True, check=True
    ).stdout.splitlines()
    address = next(int(line.split()[0], 16) for line in symbols if line.endswith(" hidden_helper"))
    debug.parent.mkdir(parents=True, exist_ok=True)
    subprocess.run(["objcopy", "--only-keep-debug", program, debug], check=True)
    subprocess.run(["strip", program], check=True)
    return address


def names_at(program: Path, root: Path, address: int) -> list[bytes | None] | None:
    program_descriptor, root_descriptor = os.open(program, os.O_RDONLY), os.open(root, os.O_PATH)
    try:
        image = FileImage(program_descriptor)
        table = find_functions(Elf(image), image, f"/bin/{program.name}", [root_descriptor])
        return (
            None
            if table is None
            else [name for _, name in functions_between(table, address, address + 1, image)]
        )
    finally:
        os.close(program_descriptor)
        os.close(root_descriptor)


def test_debug_file_is_found_by_build_id(compile_c: Callable[..., Path], tmp_path: Path) -> None:
    program = compile_c("program", "-Wl,--build-id=0xabcdef0123")
    address = split(program, tmp_path / "root/usr/lib/debug/.build-id/ab/cdef0123.debug")
    assert names_at(program, tmp_path / "root", address) == [b"hidden_helper"]


def test_debug_file_of_another_build_is_not_used(
    compile_c: Callable[..., Path], tmp_path: Path
) -> None:
    program = compile_c("program", "-Wl,--build-id=0xabcdef0123")
    other = compile_c("other", "-Wl,--build-id=0xabcdef9999")
    split(other, tmp_path / "root/usr/lib/debug/.build-id/ab/cdef0123.debug")
    assert names_at(program, tmp_path / "root", 0x1000) is None


@pytest.mark.parametrize("place", ["bin", "bin/.debug", "usr/lib/debug/bin"])
def test_debug_file_is_found_by_its_link(
    place: str, compile_c: Callable[..., Path], tmp_path: Path
) -> None:
    program = compile_c("program", "-Wl,--build-id=none")
    debug = tmp_path / f"root/{place}/program.debug"
    address = split(program, debug)
    subprocess.run(["objcopy", f"--add-gnu-debuglink={debug}", program], check=True)
    assert names_at(program, tmp_path / "root", address) == [b"hidden_helper"]
    debug.write_bytes(debug.read_bytes() + b"\0")
    assert names_at(program, tmp_path / "root", address) is None, "its CRC is another one"
