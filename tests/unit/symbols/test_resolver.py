import os
import shutil
import signal
import subprocess
from collections.abc import Callable
from pathlib import Path
from typing import Any

import numpy as np
import pytest

from necroscope.symbols.elf import Elf, Section, Segments
from necroscope.symbols.elf_symbols import FunctionTable
from necroscope.symbols.image import BytesImage
from necroscope.symbols.messages import UserRequest
from necroscope.symbols.resolver import Module, Resolver
from necroscope.symbols.table import SymbolTable

SEGMENT = [("type", "<u4"), ("flags", "<u4"), ("offset", "<u8"), ("address", "<u8"), ("size", "<u8")]
SPARE_ID = "-Wl,--build-id=0xaabbccdd00"
UNKNOWN = (None, [None, None], [(0x1000, 0x1001), (0x2000, 0x2001)])


def size_of(program: Path, function: str) -> int:
    lines = subprocess.run(["nm", "-S", program], capture_output=True, text=True, check=True).stdout.splitlines()
    return next(int(fields[1], 16) for fields in map(str.split, lines) if len(fields) == 4 and fields[3] == function)


def request(pid: int, path: Path | str, *offsets: int) -> UserRequest:
    """As of a file whose device and inode are not known."""
    return UserRequest(pid, str(path), 0, 0, 0, offsets)


@pytest.mark.kernel
def test_functions_of_a_running_program_are_named(compile_c: Callable[..., Path], spawn: Any, offset_of: Any) -> None:
    program = compile_c("program", SPARE_ID)
    process = spawn(program)
    rest = offset_of(program, "rest")
    answer = Resolver(Path("/")).user_symbols(request(process.pid, program, rest, 1 << 40, 0))
    assert answer[:2] == ("aabbccdd00", ["rest", None, None])
    assert answer.extents[0] == (rest - 1, rest - 1 + size_of(program, "rest"))
    assert answer.extents[1] == (1 << 40, (1 << 40) + 1)


@pytest.mark.kernel
@pytest.mark.parametrize("options", [["-pie"], ["-no-pie"], ["-static"], ["-pie", "-s", "-rdynamic"]], ids=" ".join)
def test_answer_holds_for_every_offset_of_its_extent_and_no_extent_leaves_its_segment(
    compile_c: Callable[..., Path], options: list[str]
) -> None:
    program = compile_c("program", *options)
    offsets = range(min(program.stat().st_size, 64 << 10))
    answer = Resolver(Path("/")).user_symbols(request(os.getpid(), program, *offsets))
    loads = Elf(BytesImage(program.read_bytes())).segments
    assert "main" in answer.functions
    for offset, (start, end), span in zip(offsets, answer.extents, loads.spans_of(offsets), strict=True):
        assert span[0] <= start <= offset < end <= span[1]
        assert set(answer.functions[start:end]) == {answer.functions[offset]}


def functions(*symbols: tuple[int, int]) -> FunctionTable:
    """Functions by start and size, all named `f`."""
    starts, sizes = (np.array(column, np.uint64) for column in zip(*symbols, strict=True))
    names, ranks = np.zeros(len(starts), np.uint32), np.zeros(len(starts), np.uint8)
    return FunctionTable(SymbolTable(starts, sizes, starts + sizes, names, ranks), Section(0, 2, 0), BytesImage(b"f\0"))


def test_extent_of_two_tables_is_what_neither_of_them_divides() -> None:
    resolver, identity, key = Resolver(Path("/")), (1, 2, 3, 4), ("key",)
    load = np.array([(1, 5, 0x1000, 0x401000, 0x100)], SEGMENT)
    resolver._modules[identity] = Module(None, Segments(load), key)
    resolver._tables[key] = [functions((0x401010, 0x10)), functions((0x401000, 0x18), (0x401080, 0x1000))]
    asked = request(1, "/x", 0x1008, 0x1014, 0x101C, 0x1040, 0x1090)
    answer = resolver._resolve(BytesImage(b""), identity, asked)  # type: ignore[arg-type]
    assert answer is not None
    assert answer.functions == ["f", "f", "f", None, "f"]
    # The last function reaches far beyond its segment.
    assert answer.extents == [(0x1000, 0x1010), (0x1010, 0x1018), (0x1018, 0x1020), (0x1020, 0x1080), (0x1080, 0x1100)]


@pytest.mark.kernel
def test_stopped_program_is_named_too(compile_c: Callable[..., Path], spawn: Any, offset_of: Any) -> None:
    program = compile_c("program")
    process = spawn(program)
    os.kill(process.pid, signal.SIGSTOP)
    assert Resolver(Path("/")).user_symbols(request(process.pid, program, offset_of(program, "main"))).functions == ["main"]


@pytest.mark.kernel
def test_table_is_read_once_per_build_id(compile_c: Callable[..., Path], spawn: Any, offset_of: Any, tmp_path: Path) -> None:
    program = compile_c("program", SPARE_ID)
    copy = Path(shutil.copy(program, tmp_path / "copy"))
    offset = offset_of(program, "rest")
    resolver = Resolver(Path("/"))
    for path in (program, copy, program):
        assert resolver.user_symbols(request(os.getpid(), path, offset)).functions == ["rest"]
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
    assert resolver.user_symbols(request(os.getpid(), stripped, offset)).functions == [None]
    assert resolver.user_symbols(request(os.getpid(), program, offset)).functions == ["hidden_helper"]


@pytest.mark.kernel
def test_changed_file_is_read_again(compile_c: Callable[..., Path], offset_of: Any) -> None:
    program = compile_c("program", "-Wl,--build-id=none")
    resolver = Resolver(Path("/"))
    assert resolver.user_symbols(request(os.getpid(), program, offset_of(program, "rest"))).functions == ["rest"]
    other = compile_c(
        "program", "-Wl,--build-id=none", source="int before(void) { return 1; } int main(void) { return before(); }"
    )
    assert resolver.user_symbols(request(os.getpid(), other, offset_of(other, "before"))).functions == ["before"]


@pytest.mark.kernel
def test_tables_beyond_the_limit_are_forgotten_oldest_first(compile_c: Callable[..., Path], offset_of: Any) -> None:
    one, two = compile_c("one", "-Wl,--build-id=0x0101"), compile_c("two", "-Wl,--build-id=0x0202")
    resolver = Resolver(Path("/"), tables_limit_bytes=1)
    for path in (one, one, two, one):
        assert resolver.user_symbols(request(os.getpid(), path, offset_of(path, "main"))).functions == ["main"]
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
        assert resolver.user_symbols(request(os.getpid(), path, 0x1000, 0x2000)) == UNKNOWN


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
    # A file system that only the container's mount namespace has, and in it a link that is absolute there.
    script = (
        f"mount -t tmpfs none {root}/opt && cp {program} {root}/opt/inner && ln -s /opt/inner {root}/opt/link"
        f" && ln -s {program} {root}/opt/outside && exec chroot {root} /opt/inner"
    )
    process = spawn("unshare", "-m", "sh", "-c", script)
    assert not (root / "opt/inner").exists()
    offset = offset_of(program, "hidden_helper")
    resolver = Resolver(Path("/"))
    extent = (offset - 1, offset - 1 + size_of(program, "hidden_helper"))
    assert resolver.user_symbols(request(process.pid, "/opt/inner", offset)) == ("aabbccdd00", ["hidden_helper"], [extent])
    assert resolver.user_symbols(request(process.pid, "/opt/link", offset)).functions == ["hidden_helper"]
    unknown = (None, [None], [(offset, offset + 1)])
    assert resolver.user_symbols(request(process.pid, "/opt/outside", offset)) == unknown


@pytest.mark.kernel
def test_mappings_of_a_process_are_listed_and_those_of_none_are_not() -> None:
    resolver = Resolver(Path("/"))
    mappings = resolver.process_maps(os.getpid())
    assert mappings is not None
    assert any("libc" in mapping.path for mapping in mappings)
    assert resolver.process_maps(1 << 22) is None


def test_hidden_kernel_symbols_are_unknown_and_say_why(tmp_path: Path, data: Path) -> None:
    (tmp_path / "proc").mkdir()
    shutil.copy(data / "kallsyms_restricted.txt", tmp_path / "proc/kallsyms")
    resolver = Resolver(tmp_path)
    hidden = resolver.reload_kernel_symbols()
    assert hidden is not None
    assert "kernel.kptr_restrict" in hidden
    assert resolver.kernel_symbols([0xFFFFFFFF81000000]) == [None]
    shutil.copy(data / "kallsyms.txt", tmp_path / "proc/kallsyms")
    assert resolver.reload_kernel_symbols() is None
    (found,) = resolver.kernel_symbols([0xFFFFFFFF81000000])
    assert found is not None
    for address in (found.start, found.end - 1):
        assert resolver.kernel_symbols([address]) == [found]
    assert resolver.kernel_symbols([found.start - 1, found.end]) != [found, found]
