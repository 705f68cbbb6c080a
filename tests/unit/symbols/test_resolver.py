import os
import shutil
import signal
import struct
import subprocess
from bisect import bisect_right
from collections.abc import Callable
from itertools import pairwise
from operator import itemgetter
from pathlib import Path
from typing import Any

import pytest
from tests.whole_symbol_table import DYNSYM, SYMTAB, addresses_of, whole_table

from necroscope.symbols.elf import Elf, ProgramHeader, Section, SectionHeader, Segments
from necroscope.symbols.function_index import FunctionIndex
from necroscope.symbols.image import BytesImage
from necroscope.symbols.messages import (
    BLOCK_BITS,
    NO_FUNCTION,
    FunctionBlock,
    ModuleAnswer,
    UserRequest,
    unpack_block,
)
from necroscope.symbols.resolver import MOST_MAPPINGS, Module, Resolver
from necroscope.symbols.vdso import Vdso

SPARE_ID = "-Wl,--build-id=0xaabbccdd00"


def size_of(program: Path, function: str) -> int:
    lines = subprocess.run(
        ["nm", "-S", program], capture_output=True, text=True, check=True
    ).stdout.splitlines()
    return next(
        int(fields[1], 16)
        for fields in map(str.split, lines)
        if len(fields) == 4 and fields[3] == function
    )


def section_bytes(program: Path, name: str) -> int:
    lines = subprocess.run(
        ["readelf", "-SW", program], capture_output=True, text=True, check=True
    ).stdout.splitlines()
    fields = next(line.partition("]")[2].split() for line in lines if f"] {name} " in line)
    return int(fields[4], 16)


def request(pid: int, path: Path | str, *offsets: int) -> UserRequest:
    """As of a file whose device and inode are not known: the blocks of these offsets, each as often
    as it is named.
    """
    return UserRequest(pid, str(path), 0, 0, 0, tuple(offset >> BLOCK_BITS for offset in offsets))


def name_in(functions: FunctionBlock, offset: int) -> bytes:
    """Of the function around an offset; empty if there is none."""
    known = unpack_block(functions)
    return known[bisect_right(known, offset & ((1 << BLOCK_BITS) - 1), key=itemgetter(0)) - 1][1]


def named(resolver: Resolver, pid: int, path: Path | str, *offsets: int) -> list[str]:
    answer = resolver.user_functions(request(pid, path, *offsets))
    return [
        name_in(functions, offset).decode()
        for functions, offset in zip(answer.functions, offsets, strict=True)
    ]


@pytest.mark.kernel
def test_functions_of_a_running_program_are_named(
    compile_c: Callable[..., Path], spawn: Any, offset_of: Any
) -> None:
    program = compile_c("program", SPARE_ID)
    process = spawn(program)
    rest = offset_of(program, "rest")
    answer = Resolver(Path("/")).user_functions(request(process.pid, program, rest, 1 << 40, 0))
    assert answer.build_id == "aabbccdd00"
    first, far, zero = answer.functions
    functions = unpack_block(first)
    extents = {
        name: (start, end)
        for (start, name), (end, _) in pairwise([*functions, (1 << BLOCK_BITS, b"")])
    }
    within = (rest - 1) & ((1 << BLOCK_BITS) - 1)
    assert extents[b"rest"] == (within, within + size_of(program, "rest"))
    assert far == NO_FUNCTION
    assert name_in(zero, 0) == b""


@pytest.mark.kernel
@pytest.mark.parametrize(
    "options", [["-pie"], ["-no-pie"], ["-static"], ["-pie", "-s", "-rdynamic"]], ids=" ".join
)
def test_answer_is_that_of_the_table_for_every_offset(
    compile_c: Callable[..., Path], options: list[str]
) -> None:
    program = compile_c("program", *options)
    offsets = range(min(program.stat().st_size, 64 << 10))
    blocks = range(len(offsets) + (1 << BLOCK_BITS) - 1 >> BLOCK_BITS)
    answer = Resolver(Path("/")).user_functions(
        UserRequest(os.getpid(), str(program), 0, 0, 0, tuple(blocks))
    )
    image = BytesImage(program.read_bytes())
    elf = Elf(image)
    table = whole_table(elf, image, SYMTAB) or whole_table(elf, image, DYNSYM)
    assert table is not None
    expected = [table.find(address) or b"" for address in addresses_of(elf.segments, offsets)]
    assert b"main" in expected
    assert spread(answer)[: len(offsets)] == expected


def spread(answer: ModuleAnswer) -> list[bytes]:
    """The name of each byte of blocks in a row."""
    return [
        name
        for functions in answer.functions
        for (start, name), (end, _) in pairwise([*unpack_block(functions), (1 << BLOCK_BITS, b"")])
        for _ in range(start, end)
    ]


def functions(*symbols: tuple[int, int]) -> FunctionIndex:
    """Functions by start and size, all named `f`."""
    content = b"".join(struct.pack("<IBBHQQ", 0, 2, 0, 1, *symbol) for symbol in symbols)
    return FunctionIndex(content, [SectionHeader(0, 0, 0, 0, 0, 0, 0)], Section(0, 2, 0), b"f\0")


def test_blocks_in_a_row_are_answered_as_each_of_them(compile_c: Callable[..., Path]) -> None:
    program = compile_c("program", "-static")
    blocks = (0, 1, 2, 3, 7, 8, 20, 1 << 20)
    resolver = Resolver(Path("/"))
    together = resolver.user_functions(
        UserRequest(os.getpid(), str(program), 0, 0, 0, blocks)
    ).functions
    alone = [
        resolver.user_functions(
            UserRequest(os.getpid(), str(program), 0, 0, 0, (block,))
        ).functions[0]
        for block in blocks
    ]
    assert together == alone
    assert sum(len(unpack_block(functions)) for functions in together) > 50


def test_of_two_tables_the_first_that_has_a_name_gives_it() -> None:
    resolver, identity, key = Resolver(Path("/")), (1, 2, 3, 4), ("key",)
    resolver._modules[identity] = Module(
        None, Segments([ProgramHeader(1, 5, 0x1000, 0x401000, 0x100)]), key
    )
    resolver._tables[key] = [
        functions((0x401010, 0x10)),
        functions((0x401000, 0x18), (0x401080, 0x1000)),
    ]
    image = BytesImage(b"")
    image.identity = identity  # type: ignore[attr-defined]
    answer = resolver._resolve(image, request(1, "/x", 0x1000))  # type: ignore[arg-type]
    assert answer is not None
    (found,) = answer.functions
    assert [
        name_in(found, offset) for offset in (0x1008, 0x1014, 0x101C, 0x1020, 0x1040, 0x1090)
    ] == [
        b"f",
        b"f",
        b"f",
        b"",
        b"",
        b"f",
    ]
    # The last function reaches far beyond its segment.
    assert unpack_block(found)[-1] == (0x1100, b"")


@pytest.mark.kernel
def test_stopped_program_is_named_too(
    compile_c: Callable[..., Path], spawn: Any, offset_of: Any
) -> None:
    program = compile_c("program")
    process = spawn(program)
    os.kill(process.pid, signal.SIGSTOP)
    assert named(Resolver(Path("/")), process.pid, program, offset_of(program, "main")) == ["main"]


@pytest.mark.kernel
def test_table_is_read_once_per_build_id(
    compile_c: Callable[..., Path], spawn: Any, offset_of: Any, tmp_path: Path
) -> None:
    program = compile_c("program", SPARE_ID)
    copy = Path(shutil.copy(program, tmp_path / "copy"))
    offset = offset_of(program, "rest")
    resolver = Resolver(Path("/"))
    for path in (program, copy, program):
        assert named(resolver, os.getpid(), path, offset) == ["rest"]
    assert resolver.tables_read == 1


@pytest.mark.kernel
def test_stripped_copy_of_one_build_does_not_spoil_the_other(
    compile_c: Callable[..., Path], offset_of: Any, tmp_path: Path
) -> None:
    program = compile_c("program", SPARE_ID)
    stripped = Path(shutil.copy(program, tmp_path / "stripped"))
    subprocess.run(["strip", stripped], check=True)
    offset = offset_of(program, "hidden_helper")
    resolver = Resolver(Path("/"))
    assert named(resolver, os.getpid(), stripped, offset) == [""]
    assert named(resolver, os.getpid(), program, offset) == ["hidden_helper"]


@pytest.mark.kernel
def test_changed_file_is_read_again(compile_c: Callable[..., Path], offset_of: Any) -> None:
    program = compile_c("program", "-Wl,--build-id=none")
    resolver = Resolver(Path("/"))
    assert named(resolver, os.getpid(), program, offset_of(program, "rest")) == ["rest"]
    other = compile_c(
        "program",
        "-Wl,--build-id=none",
        source="int before(void) { return 1; } int main(void) { return before(); }",
    )
    assert named(resolver, os.getpid(), other, offset_of(other, "before")) == ["before"]


@pytest.mark.kernel
def test_tables_beyond_the_limit_are_forgotten_oldest_first(
    compile_c: Callable[..., Path], offset_of: Any
) -> None:
    one, two = compile_c("one", "-Wl,--build-id=0x0101"), compile_c("two", "-Wl,--build-id=0x0202")
    resolver = Resolver(Path("/"), tables_limit_bytes=1)
    for path in (one, one, two, one):
        assert named(resolver, os.getpid(), path, offset_of(path, "main")) == ["main"]
    assert resolver.tables_read == 3


@pytest.mark.kernel
def test_what_is_no_program_is_unknown(tmp_path: Path) -> None:
    (tmp_path / "text").write_text("no ELF")
    os.mkfifo(tmp_path / "fifo")
    resolver = Resolver(Path("/"))
    for path in (
        tmp_path / "text",
        tmp_path / "fifo",
        tmp_path,
        "/dev/zero",
        "/proc/self/exe",
        tmp_path / "absent",
        "",
        "[heap]",
    ):
        answer = resolver.user_functions(request(os.getpid(), path, 0x1000, 0x2000))
        assert answer == (None, [NO_FUNCTION, NO_FUNCTION])


@pytest.mark.root
@pytest.mark.kernel
def test_program_in_a_container_is_read_in_its_own_root(
    compile_c: Callable[..., Path], spawn: Any, offset_of: Any, tmp_path: Path
) -> None:
    if os.geteuid() != 0 or shutil.which("unshare") is None:
        pytest.skip("a mount namespace and chroot need root and unshare")
    program = compile_c("program", "-static", SPARE_ID)
    root = tmp_path / "container"
    (root / "opt").mkdir(parents=True)
    # A file system that only the container's mount namespace has, and in it a link that is absolute
    # there.
    script = (
        f"mount -t tmpfs none {root}/opt && cp {program} {root}/opt/inner && ln -s /opt/inner"
        f" {root}/opt/link && ln -s {program} {root}/opt/outside && exec chroot {root} /opt/inner"
    )
    process = spawn("unshare", "-m", "sh", "-c", script)
    assert not (root / "opt/inner").exists()
    offset = offset_of(program, "hidden_helper")
    resolver = Resolver(Path("/"))
    assert (
        resolver.user_functions(request(process.pid, "/opt/inner", offset)).build_id == "aabbccdd00"
    )
    assert named(resolver, process.pid, "/opt/inner", offset) == ["hidden_helper"]
    assert named(resolver, process.pid, "/opt/link", offset) == ["hidden_helper"]
    assert resolver.user_functions(request(process.pid, "/opt/outside", offset)) == (
        None,
        [NO_FUNCTION],
    )


@pytest.mark.kernel
def test_mappings_of_a_process_are_listed_and_those_of_none_are_not() -> None:
    resolver = Resolver(Path("/"))
    found = resolver.process_maps(os.getpid())
    assert found is not None
    mappings, is_bounded = found
    assert any("libc" in mapping.path for mapping in mappings)
    assert not is_bounded
    assert resolver.process_maps(1 << 22) is None


def test_process_with_ever_so_many_mappings_is_bounded(tmp_path: Path) -> None:
    (tmp_path / "proc/7").mkdir(parents=True)
    lines = [
        b"%x000-%x000 r-xp 00000000 00:00 0 \n" % (number, number + 1)
        for number in range(1, MOST_MAPPINGS + 2)
    ]
    for written, is_bounded in ((lines[:-1], False), (lines, True)):
        (tmp_path / "proc/7/maps").write_bytes(b"".join(written))
        found = Resolver(tmp_path).process_maps(7)
        assert found is not None
        assert (len(found[0]), found[0][-1].end, found[1]) == (
            MOST_MAPPINGS,
            (MOST_MAPPINGS + 1) << 12,
            is_bounded,
        )


@pytest.mark.kernel
def test_functions_of_the_vdso_are_named_by_blocks_of_its_mapping() -> None:
    resolver = Resolver(Path("/"))
    found = resolver.process_maps(os.getpid())
    assert found is not None
    vdso = next((mapping for mapping in found[0] if mapping.path == "[vdso]"), None)
    if vdso is None:
        pytest.skip("this kernel has no vdso")
    blocks = tuple(range((vdso.end - vdso.start - 1 >> BLOCK_BITS) + 1))
    answer = resolver.user_functions(
        UserRequest(os.getpid(), vdso.path, *vdso[3:6], (*blocks, 1 << 20))
    )
    names = {name for functions in answer.functions for _, name in unpack_block(functions)}
    assert any(b"clock_gettime" in name for name in names)
    assert len(answer.functions) == len(blocks) + 1
    assert answer.functions[-1] == NO_FUNCTION, "nothing lies behind its end"


def test_without_a_vdso_its_functions_are_unknown(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("necroscope.symbols.vdso.load", lambda: Vdso(b""))
    answer = Resolver(Path("/")).user_functions(UserRequest(1, "[vdso]", 0, 0, 0, (0, 1)))
    assert answer == (None, [NO_FUNCTION, NO_FUNCTION])


@pytest.mark.kernel
def test_symbols_that_do_not_fit_into_memory_are_tried_once_and_the_exported_ones_are_named(
    compile_c: Callable[..., Path], offset_of: Any, monkeypatch: pytest.MonkeyPatch
) -> None:
    program = compile_c("program", "-rdynamic")
    exported = section_bytes(program, ".dynsym")
    sizes = []

    def build(symbols: bytes, *others: Any) -> FunctionIndex:
        sizes.append(len(symbols))
        if len(symbols) > exported:
            raise MemoryError
        return FunctionIndex(symbols, *others)

    monkeypatch.setattr("necroscope.symbols.function_index.FunctionIndex", build)
    resolver = Resolver(Path("/"))
    offsets = [offset_of(program, "rest"), offset_of(program, "hidden_helper")]
    for _ in range(2):
        assert named(resolver, os.getpid(), program, *offsets) == ["rest", ""]
    assert sizes == [section_bytes(program, ".symtab"), exported]
