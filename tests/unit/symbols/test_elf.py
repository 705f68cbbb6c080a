import os
import struct
import subprocess
import sys
from collections.abc import Callable
from pathlib import Path

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from tests.whole_symbol_table import (
    DYNSYM,
    SYMTAB,
    WholeTable,
    addresses_of,
    functions_between,
    whole_debugdata,
    whole_table,
)

from necroscope.symbols import function_index
from necroscope.symbols.elf import Elf, ProgramHeader, Section, Segments
from necroscope.symbols.function_index import (
    FileFunctions,
    FunctionIndex,
    index_debugdata,
    index_dynsym,
    index_symtab,
)
from necroscope.symbols.image import BytesImage, FileImage, Image, ImageError
from necroscope.symbols.messages import unpack_block

REAL = Path(sys.executable).resolve().read_bytes()
SEVERAL_NAMES = """
int first(void) { return 1; }
int __second(void) { return 2; }
extern __typeof(__second) second __attribute__((alias("__second")));
__asm__(".text\\n.globl bare_label\\nbare_label:\\n nop\\n nop\\n ret\\n");
__asm__(".text\\n.globl outer\\n.type outer,@function\\nouter: nop\\nlabel_inside: nop\\n ret\\n.size outer, .-outer\\n");
static int (*resolve(void))(void) { return first; }
int chosen(void) __attribute__((ifunc("resolve")));
int main(void) { return first() + __second() + chosen(); }
"""


def names_by_address(path: Path) -> dict[str, int]:
    lines = subprocess.run(
        ["nm", path], capture_output=True, text=True, check=True
    ).stdout.splitlines()
    return {
        fields[2]: int(fields[0], 16)
        for fields in (line.split() for line in lines)
        if len(fields) == 3
    }


def find(path: Path, addresses: list[int]) -> list[bytes | None]:
    image = BytesImage(path.read_bytes())
    elf = Elf(image)
    return find_in(whole_table(elf, image, SYMTAB), index_symtab(elf, image), image, addresses)


def find_in(
    whole: WholeTable | None, index: FunctionIndex | None, image: Image, addresses: list[int]
) -> list[bytes | None]:
    """What the index says, which is what the whole table says."""
    assert whole is not None
    assert index is not None
    found = [functions_between(index, address, address + 1, image)[-1][1] for address in addresses]
    assert found == [whole.find(address) for address in addresses]
    return found


def everything(content: bytes) -> None:
    """What the resolver does with a file; only ImageError may come out."""
    image = BytesImage(content)
    try:
        elf = Elf(image)
    except ImageError:
        return
    addresses = addresses_of(elf.segments, [0, 0x1000, 1 << 63])
    for index in (index_symtab, index_dynsym, index_debugdata):
        try:
            indexed = index(elf, image)
            for address in (*addresses, 0x401000) if indexed is not None else ():
                functions_between(indexed, address, address + 4096, image)
        except ImageError:
            continue


@pytest.mark.parametrize(
    "options", [["-pie"], ["-no-pie"], ["-static"]], ids=["pie", "no-pie", "static"]
)
def test_function_is_found_by_its_file_offset(
    options: list[str], compile_c: Callable[..., Path], offset_of: Callable[..., int]
) -> None:
    path = compile_c("program", *options)
    image = BytesImage(path.read_bytes())
    elf = Elf(image)
    offsets = [offset_of(path, "main"), offset_of(path, "rest"), offset_of(path, "hidden_helper")]
    addresses = addresses_of(elf.segments, offsets)
    assert find_in(whole_table(elf, image, SYMTAB), index_symtab(elf, image), image, addresses) == [
        b"main",
        b"rest",
        b"hidden_helper",
    ]


def test_offset_at_a_seam_is_of_the_segment_that_holds_code() -> None:
    """The page at the seam belongs to both; code is in the second. What is not loaded has no
    function.
    """
    segments = Segments(
        [ProgramHeader(1, 4, 0, 0, 0x1100), ProgramHeader(1, 5, 0x1000, 0x401000, 0x800)]
    )
    strings = b"\0data\0code\0"
    symbols = struct.pack("<IBBHQQ", 1, 2, 0, 1, 0x800, 0x900) + struct.pack(
        "<IBBHQQ", 6, 2, 0, 1, 0x401000, 0x1000
    )
    index = FunctionIndex(symbols, [], Section(0, len(strings), 0), strings)
    found = FileFunctions(segments, [index]).block(0, BytesImage(b""))
    assert unpack_block(found) == [(0, b""), (0x800, b"data"), (0x1000, b"code"), (0x1800, b"")]


def test_build_id_is_that_of_readelf(compile_c: Callable[..., Path]) -> None:
    path = compile_c("program", "-Wl,--build-id=0xdeadbeef01")
    assert Elf(BytesImage(path.read_bytes())).build_id == "deadbeef01"
    assert (
        Elf(BytesImage(compile_c("nameless", "-Wl,--build-id=none").read_bytes())).build_id is None
    )


def test_build_id_is_in_the_sections_of_a_file_without_segments(
    compile_c: Callable[..., Path], tmp_path: Path
) -> None:
    path = compile_c("program", "-Wl,--build-id=0xdeadbeef01")
    subprocess.run(["objcopy", "--only-keep-debug", path, tmp_path / "program.debug"], check=True)
    assert Elf(BytesImage((tmp_path / "program.debug").read_bytes())).build_id == "deadbeef01"


def test_alias_without_underscores_is_shown(compile_c: Callable[..., Path]) -> None:
    path = compile_c("several", source=SEVERAL_NAMES)
    assert find(path, [names_by_address(path)["__second"] + 1]) == [b"second"]


def test_asm_label_is_a_function_only_where_no_function_is(compile_c: Callable[..., Path]) -> None:
    path = compile_c("several", source=SEVERAL_NAMES)
    places = names_by_address(path)
    assert find(path, [places["bare_label"] + 1, places["label_inside"]]) == [
        b"bare_label",
        b"outer",
    ]


def test_ifunc_is_a_function(compile_c: Callable[..., Path]) -> None:
    path = compile_c("several", source=SEVERAL_NAMES)
    assert find(path, [names_by_address(path)["resolve"]])[0] in (b"resolve", b"chosen")


def test_stripped_file_has_its_dynamic_symbols_only(compile_c: Callable[..., Path]) -> None:
    library = compile_c("library.so", "-shared", "-fPIC", "-s")
    image = BytesImage(library.read_bytes())
    elf = Elf(image)
    assert index_symtab(elf, image) is None
    table = index_dynsym(elf, image)
    assert table is not None
    names = {name for _, name in functions_between(table, 0, library.stat().st_size, image)} - {
        None
    }
    assert b"rest" in names
    assert b"hidden_helper" not in names
    assert len(names) < 6


def test_version_of_a_symbol_is_not_shown() -> None:
    libc = next(
        (
            path
            for path in ("/usr/lib/x86_64-linux-gnu/libc.so.6", "/lib64/libc.so.6")
            if os.path.exists(path)
        ),
        None,
    )
    if libc is None:
        pytest.skip("no libc.so.6 at a known place")
    descriptor = os.open(libc, os.O_RDONLY)
    try:
        image = FileImage(descriptor)
        elf = Elf(image)
        lines = subprocess.run(
            ["readelf", "-W", "--dyn-syms", libc], capture_output=True, text=True, check=True
        ).stdout.splitlines()
        row = next(line.split() for line in lines if " getppid@@" in line)
        whole, index = whole_table(elf, image, DYNSYM), index_dynsym(elf, image)
        assert find_in(whole, index, image, [int(row[1], 16) + 1]) == [b"getppid"]
    finally:
        os.close(descriptor)


def test_mini_debuginfo_is_unpacked(compile_c: Callable[..., Path], tmp_path: Path) -> None:
    full = compile_c("program")
    address = names_by_address(full)["hidden_helper"]
    mini, stripped = tmp_path / "mini", tmp_path / "stripped"
    subprocess.run(["objcopy", "--only-keep-debug", full, mini], check=True)
    subprocess.run(["xz", "--force", mini], check=True)
    subprocess.run(["strip", "-o", stripped, full], check=True)
    subprocess.run(["objcopy", "--add-section", f".gnu_debugdata={mini}.xz", stripped], check=True)
    image = BytesImage(stripped.read_bytes())
    elf = Elf(image)
    assert index_symtab(elf, image) is None
    assert find_in(
        whole_debugdata(elf, image), index_debugdata(elf, image), image, [address + 1]
    ) == [b"hidden_helper"]


def test_page_shared_by_two_segments_belongs_to_the_executable_one() -> None:
    segments = Segments(
        [ProgramHeader(1, 4, 0, 0x400000, 0x1800), ProgramHeader(1, 5, 0x1000, 0x502000, 0x1000)]
    )
    assert addresses_of(segments, [0x10, 0x1010, 0x2010]) == [0x400010, 0x502010, 0]


@pytest.mark.parametrize(
    ("at", "content"),
    [(0, b"\x7fELG"), (4, b"\x01"), (5, b"\x02"), (18, b"\x03\x00")],
    ids=["magic", "32 bit", "big endian", "i386"],
)
def test_other_files_are_not_ours(at: int, content: bytes) -> None:
    with pytest.raises(ImageError):
        Elf(BytesImage(REAL[:at] + content + REAL[at + len(content) :]))


@pytest.mark.parametrize("length", [0, 1, 15, 63, 64, 100, 1000, len(REAL) // 2, len(REAL) - 1])
def test_truncated_file_is_refused_or_read(length: int) -> None:
    everything(REAL[:length])


def test_absurd_counts_take_no_memory() -> None:
    for place, form in ((40, "<Q"), (56, "<H"), (60, "<H")):
        broken = bytearray(REAL)
        struct.pack_into(form, broken, place, (1 << 8 * struct.calcsize(form)) - 1)
        everything(bytes(broken))


def test_debugdata_that_unpacks_without_end_is_cut(
    compile_c: Callable[..., Path], tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(function_index, "_DEBUGDATA_LIMIT_BYTES", 1 << 20)
    bomb = tmp_path / "bomb"
    with bomb.open("wb") as file:
        file.truncate(8 << 20)
    subprocess.run(["xz", "-0", bomb], check=True)
    program = compile_c("program", "-s")
    subprocess.run(["objcopy", "--add-section", f".gnu_debugdata={bomb}.xz", program], check=True)
    image = BytesImage(program.read_bytes())
    with pytest.raises(ImageError):
        index_debugdata(Elf(image), image)


@settings(max_examples=100, deadline=None)
@given(
    st.lists(
        st.tuples(
            st.integers(0, 4095) | st.integers(len(REAL) - 4096, len(REAL) - 1), st.integers(0, 255)
        ),
        max_size=20,
    )
)
def test_no_flipped_byte_breaks_the_reader(changes: list[tuple[int, int]]) -> None:
    content = bytearray(REAL)
    for at, value in changes:
        content[at] = value
    everything(bytes(content))


@settings(max_examples=100, deadline=None)
@given(st.binary(max_size=400))
def test_no_bytes_break_the_reader(content: bytes) -> None:
    everything(REAL[:20] + content)
