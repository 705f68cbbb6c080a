"""From addresses to named stacks: kernel, files, vdso, just-in-time code and the unknown, each asked for once."""

import struct
from typing import Any

import pytest

from necroscope.model.frame import Frame
from necroscope.perf_abi.event_attr import CONTEXT_HV, CONTEXT_KERNEL, CONTEXT_USER
from necroscope.sources.perf import frame_names
from necroscope.sources.perf import symbolizer as symbolizer_module
from necroscope.sources.perf.address_space import AddressSpace
from necroscope.sources.perf.symbolizer import Symbolizer, split_chain
from necroscope.symbols.process_maps import Mapping


def space_of(*mappings: Mapping) -> AddressSpace:
    return AddressSpace(is_complete=True, base=mappings)


APP = Mapping(0x400000, 0x500000, 0x1000, 8, 1, 77, "/usr/bin/app")
LIBC = Mapping(0x7F0000, 0x7F8000, 0, 8, 1, 78, "/usr/lib/libc.so.6")
VDSO = Mapping(0x7FF000, 0x800000, 0, 0, 0, 0, "[vdso]")
ANON = Mapping(0x900000, 0x910000, 0, 0, 0, 0, "//anon")


class Asked:
    """A symbolizer with its lookup, answering whole stacks as texts, outermost first."""

    def __init__(self, lookup: Any, build: Any) -> None:
        self.lookup = lookup
        self.symbolizer = Symbolizer(lookup)
        self.chain = build.chain

    def number(self, *chains: tuple[bytes, AddressSpace], pid: int = 100) -> list[int]:
        known = [self.symbolizer.number(raw, pid, space) for raw, space in chains]
        unknown = [(raw, pid, space) for number, (raw, space) in zip(known, chains, strict=True) if number is None]
        resolved = iter(self.symbolizer.resolve(unknown))
        return [next(resolved) if number is None else number for number in known]

    def frames(self, raw: bytes, space: AddressSpace, pid: int = 100) -> list[Frame]:
        (number,) = self.number((raw, space), pid=pid)
        return self.symbolizer.interned.frames_of(number)[::-1]

    def names(self, raw: bytes, space: AddressSpace) -> list[str]:
        return [frame.function or frame.module for frame in self.frames(raw, space)]


@pytest.fixture
def asked(lookup: Any, build: Any) -> Asked:
    return Asked(lookup, build)


def test_return_addresses_are_moved_into_their_call_but_not_the_innermost() -> None:
    raw = struct.pack("<6Q", CONTEXT_KERNEL, 1000, 2000, CONTEXT_USER, 3000, 4000)
    assert split_chain(raw) == ([1000, 1999], [3000, 3999])


def test_a_chain_may_be_of_one_kind_or_empty() -> None:
    assert split_chain(struct.pack("<3Q", CONTEXT_USER, 1, 2)) == ([], [1, 1])
    assert split_chain(struct.pack("<2Q", CONTEXT_KERNEL, 5)) == ([5], [])
    assert split_chain(struct.pack("<Q", CONTEXT_KERNEL)) == ([], [])
    assert split_chain(b"") == ([], [])


def test_marks_of_other_kinds_are_no_addresses() -> None:
    assert split_chain(struct.pack("<4Q", CONTEXT_HV, 10, CONTEXT_KERNEL, 20)) == ([10, 20], [])


def test_a_stack_is_user_frames_below_kernel_frames(asked: Asked, build: Any) -> None:
    raw = asked.chain([build.KERNEL_BASE + 0x20, build.KERNEL_BASE + 0x11], [0x400100, 0x400201])
    assert asked.names(raw, space_of(APP)) == ["f_1200", "f_1100", "k_10", "k_20"]


def test_frames_say_their_module_kind_and_build_id(asked: Asked, build: Any) -> None:
    raw = asked.chain([build.KERNEL_BASE], [0x400100])
    assert asked.frames(raw, space_of(APP)) == [
        Frame("f_1100", "/usr/bin/app", "user", None, "b1d"),
        Frame("k_0", "[kernel]", "kernel", None, None),
    ]


def test_an_offset_without_a_symbol_keeps_module_offset_and_build_id(asked: Asked) -> None:
    asked.lookup.unknown_offsets = {0x1100}
    assert asked.frames(asked.chain(user=[0x400100]), space_of(APP)) == [Frame(None, "/usr/bin/app", "user", 0x1100, "b1d")]


def test_a_kernel_address_without_a_symbol_keeps_the_address_as_a_signed_number(asked: Asked, build: Any) -> None:
    asked.lookup.names[build.KERNEL_BASE] = None
    (frame,) = asked.frames(asked.chain([build.KERNEL_BASE]), space_of())
    assert frame == Frame(None, "[kernel]", "kernel", build.KERNEL_BASE - (1 << 64), None)


def test_the_vdso_has_names_of_its_own_and_asks_no_perf_map(asked: Asked) -> None:
    assert asked.frames(asked.chain(user=[0x7FF123]), space_of(VDSO)) == [Frame("__vdso_123", "[vdso]", "user", None, None)]
    assert asked.lookup.jit_asked == []


def test_code_made_at_run_time_is_named_by_its_perf_map(asked: Asked) -> None:
    asked.lookup.jit_names = {0x900010: "LazyCompile:~walk"}
    assert asked.frames(asked.chain(user=[0x900010]), space_of(ANON)) == [Frame("LazyCompile:~walk", "[jit]", "jit", None, None)]


@pytest.mark.parametrize(
    "path", ["//anon", "[heap]", "[stack]", "/memfd:doublemapper (deleted)", "/dev/zero (deleted)", "/SYSV0000", ""]
)
def test_memory_that_is_no_file_is_taken_for_code_made_at_run_time(asked: Asked, path: str) -> None:
    asked.lookup.jit_names = {0x900010: "jitted"}
    assert asked.names(asked.chain(user=[0x900010]), space_of(ANON._replace(path=path))) == ["jitted"]


def test_what_nobody_knows_is_unknown(asked: Asked) -> None:
    assert asked.frames(asked.chain(user=[0x900010, 0x5]), space_of(ANON)) == [Frame(None, "[unknown]", "user", None, None)] * 2


def test_one_request_a_file_holds_all_blocks_of_a_drain(asked: Asked) -> None:
    space, other = space_of(APP, LIBC), space_of(APP)
    asked.number((asked.chain(user=[0x400100, 0x7F0011]), space), (asked.chain(user=[0x410300, 0x401000]), other))
    assert asked.lookup.user_calls == 1
    assert {request.path: request.blocks for request in asked.lookup.user_asked} == {
        "/usr/bin/app": (0, 4),
        "/usr/lib/libc.so.6": (0,),
    }


def test_a_request_names_the_file_by_device_and_inode(asked: Asked) -> None:
    asked.number((asked.chain(user=[0x400100]), space_of(APP)), pid=4711)
    (request,) = asked.lookup.user_asked
    assert (request.pid, request.path) == (4711, "/usr/bin/app")
    assert (request.device_major, request.device_minor, request.inode) == (8, 1, 77)


def test_files_of_the_same_path_in_different_containers_are_not_mixed(asked: Asked) -> None:
    asked.lookup.unknown_offsets = {0x1100}
    asked.number((asked.chain(user=[0x400100]), space_of(APP)), (asked.chain(user=[0x400100]), space_of(APP._replace(inode=99))))
    assert len(asked.lookup.user_asked) == 2


def test_what_is_known_is_not_asked_again(asked: Asked, build: Any) -> None:
    space = space_of(APP, VDSO, ANON)
    raw = asked.chain([build.KERNEL_BASE], [0x400100, 0x7FF001, 0x900011])
    asked.number((raw, space))
    before = asked.lookup.asked
    asked.number((raw, space), (asked.chain(user=[0x400100]), space_of(APP)))
    assert asked.lookup.asked == before


def test_a_new_segment_numbers_again_but_asks_nothing(asked: Asked, build: Any) -> None:
    space = space_of(APP, VDSO, ANON)
    kernel_only = asked.chain([build.KERNEL_BASE + 16])
    mixed = asked.chain([build.KERNEL_BASE], [0x400100, 0x7FF001, 0x900011])
    asked.number((kernel_only, space), (mixed, space))
    before = asked.lookup.asked
    asked.symbolizer.start_segment([space])
    assert asked.number((mixed, space), (kernel_only, space)) == [3, 4]
    assert asked.names(mixed, space) == ["[unknown]", "__vdso_0", "f_1100", "k_0"]
    assert asked.names(kernel_only, space) == ["k_10"]
    assert asked.lookup.asked == before
    frames, stacks = asked.symbolizer.interned.take_rows()
    assert [row[:2] for row in stacks] == [(0, -1), (1, 0), (2, 1), (3, 2), (4, -1)]
    assert [row[0] for row in frames] == [0, 1, 2, 3, 4]


def test_a_kernel_chain_is_shared_by_all_processes(asked: Asked, build: Any) -> None:
    raw = asked.chain([build.KERNEL_BASE, build.KERNEL_BASE + 0x11])
    (number,) = asked.number((raw, space_of(APP)))
    assert asked.symbolizer.number(raw, 200, space_of(LIBC)) == number


def test_the_same_addresses_in_two_programs_are_two_stacks(asked: Asked) -> None:
    raw = asked.chain(user=[0x400100])
    assert asked.names(raw, space_of(APP)) == ["f_1100"]
    assert asked.names(raw, space_of(APP._replace(file_offset=0, path="/other"))) == ["f_100"]


def test_an_image_that_predates_us_is_asked_of_proc_once(asked: Asked) -> None:
    asked.lookup.maps[100] = [APP]
    space = AddressSpace(is_complete=False)
    assert asked.names(asked.chain(user=[0x400100]), space) == ["f_1100"]
    asked.names(asked.chain(user=[0x400200]), space)
    assert asked.lookup.maps_asked == [100]


def test_an_image_that_is_gone_is_unknown_and_not_asked_again(asked: Asked) -> None:
    space = AddressSpace(is_complete=False)
    assert asked.names(asked.chain(user=[0x400100]), space) == ["[unknown]"]
    asked.names(asked.chain(user=[0x400200]), space)
    assert asked.lookup.maps_asked == [100]


def test_a_kernel_thread_asks_for_no_maps(asked: Asked, build: Any) -> None:
    asked.number((asked.chain([build.KERNEL_BASE]), AddressSpace(is_complete=False)))
    assert asked.lookup.maps_asked == []


def test_two_images_of_one_pid_in_a_drain_are_kept_apart(asked: Asked) -> None:
    asked.lookup.jit_names = {0x900010: "before_exec", 0x900020: "after_exec"}
    first, second = space_of(ANON), space_of(ANON)
    numbers = asked.number((asked.chain(user=[0x900010]), first), (asked.chain(user=[0x900020]), second))
    assert [asked.symbolizer.interned.frames_of(number)[0].function for number in numbers] == ["before_exec", "after_exec"]


def test_idle_functions_are_known_by_their_sampled_address(asked: Asked, build: Any) -> None:
    asked.number((asked.chain([build.IDLE, build.KERNEL_BASE]), space_of()))
    assert asked.symbolizer.idle_addresses == {struct.pack("<Q", build.IDLE)}


def test_each_idle_address_is_added_although_one_question_would_name_the_function(asked: Asked, build: Any) -> None:
    asked.lookup.function_bytes = 64
    start = build.KERNEL_BASE + 0x1D00
    asked.lookup.names = {start: ("default_idle", "[kernel]")}
    for address in (start + 0x1E, start + 0x1F):
        assert asked.names(asked.chain([address, build.KERNEL_BASE + 0x41]), space_of()) == ["k_40", "default_idle"]
    assert asked.symbolizer.idle_addresses == {struct.pack("<Q", start + 0x1E), struct.pack("<Q", start + 0x1F)}
    assert sorted(asked.lookup.kernel_asked) == [build.KERNEL_BASE + 0x40, start]


def test_reloading_the_kernels_symbols_forgets_what_addresses_meant(asked: Asked, build: Any) -> None:
    core = asked.chain([build.KERNEL_BASE + 0x20])
    raw = asked.chain([build.KERNEL_BASE + 0x55, build.KERNEL_BASE + 0x21])
    asked.lookup.names[build.KERNEL_BASE + 0x50] = ("bpf_prog_old", "[bpf]")
    asked.lookup.names[build.KERNEL_BASE + 0x70] = None
    unnamed = asked.chain([build.KERNEL_BASE + 0x71])
    assert asked.names(raw, space_of()) == ["k_20", "bpf_prog_old"]
    assert asked.names(unnamed, space_of()) == ["[kernel]"]
    for place in (0x50, 0x70):
        asked.lookup.names[build.KERNEL_BASE + place] = ("bpf_prog_new", "[bpf]")
    asked.symbolizer.note_kernel_change(())
    asked.names(core, space_of())
    assert asked.lookup.reloads == 0, "the kernel's own text does not change"
    assert asked.names(raw, space_of()) == ["k_20", "bpf_prog_new"]
    assert asked.names(unnamed, space_of()) == ["bpf_prog_new"]
    assert asked.lookup.reloads == 1
    asked.symbolizer.note_kernel_change(())
    asked.names(raw, space_of())
    assert asked.lookup.reloads == 1, "not again before it is allowed"
    asked.symbolizer.names.may_reload = True
    asked.number((asked.chain([build.KERNEL_BASE + 0x58]), space_of()))
    assert asked.lookup.reloads == 2


@pytest.mark.parametrize("path", ["/a\x1b[31m", "/bad\udcff", "/" + "x" * 4000])
def test_a_hostile_path_becomes_a_harmless_module_name(asked: Asked, path: str) -> None:
    (frame,) = asked.frames(asked.chain(user=[0x400100]), space_of(APP._replace(path=path)))
    assert len(frame.module) <= 300
    assert frame.module.isprintable()
    assert asked.lookup.user_asked[0].path == path


@pytest.mark.parametrize("mangling", ["_Z", "_R"])
def test_only_the_names_that_are_needed_are_demangled_all_of_a_drain_at_once(asked: Asked, mangling: str) -> None:
    asked.lookup.mangling = mangling
    space = space_of(APP)
    chains = [asked.chain(user=[0x400100, 0x400201]), asked.chain(user=[0x400104]), asked.chain(user=[0x402300])]
    numbers = asked.number(*((raw, space) for raw in chains))
    assert asked.lookup.mangled_asked == [[f"{mangling}f_{offset:x}" for offset in (0x1100, 0x1200, 0x3300)]]
    asked.symbolizer.bound(lambda: [space])
    assert asked.names(chains[0], space) == [f"readable {mangling}f_1200", f"readable {mangling}f_1100"]
    assert asked.number(*((raw, space) for raw in chains)) == numbers
    asked.number((asked.chain(user=[0x400108]), space))
    assert len(asked.lookup.mangled_asked) == 1, "the frame of the function is known by then"


def test_a_file_that_is_asked_about_again_and_again_is_learnt_as_a_whole(asked: Asked) -> None:
    space = space_of(APP, LIBC._replace(end=0x7F0000 + (8 << 20)))
    for turn in range(4):
        asked.number((asked.chain(user=[0x400100 + (turn << 16)]), space), (asked.chain(user=[0x7F0000 + (turn << 20)]), space))
    blocks = [(request.path, len(request.blocks)) for request in asked.lookup.user_asked]
    # 1 MiB of the program is mapped, at an offset that is in the middle of a block; the library is too large.
    assert [count for path, count in blocks if path == "/usr/bin/app"] == [1, 1, 63]
    assert [count for path, count in blocks if path == "/usr/lib/libc.so.6"] == [1, 1, 1, 1]


def test_one_question_names_a_whole_block(asked: Asked, build: Any) -> None:
    asked.lookup.function_bytes = 64
    asked.number((asked.chain([build.KERNEL_BASE + 0x41], [0x400101, 0x400141]), space_of(APP)))
    before = asked.lookup.asked
    raw = asked.chain([build.KERNEL_BASE + 0x7F, build.KERNEL_BASE + 0x41], [0x40013F, 0x400180])
    assert asked.names(raw, space_of(APP._replace(start=0x400000))) == ["f_1140", "f_1100", "k_40", "k_40"]
    assert asked.lookup.asked == before
    asked.number((asked.chain([build.KERNEL_BASE + 0xFFF], [0x402FFF, 0x400001]), space_of(APP)))
    assert asked.lookup.asked == before
    asked.number((asked.chain([build.KERNEL_BASE + 0x1000], [0x403000, 0x400182]), space_of(APP)))
    assert asked.lookup.kernel_asked == [build.KERNEL_BASE + distance for distance in (0x40, 0xFC0, 0x1000)]
    assert [request.blocks for request in asked.lookup.user_asked[1:]] == [(1,)]


def test_one_question_tells_that_a_whole_stretch_has_no_symbol_and_each_offset_of_it_is_kept(asked: Asked) -> None:
    asked.lookup.function_bytes = 64
    asked.lookup.unknown_offsets = {0x1100}
    space = space_of(APP)
    for address, offset in ((0x400100, 0x1100), (0x400101, 0x1101), (0x400100, 0x1100)):
        assert asked.frames(asked.chain(user=[address]), space)[0].offset == offset
    assert asked.names(asked.chain(user=[0x400140]), space) == ["f_1140"]
    assert [request.blocks for request in asked.lookup.user_asked] == [(0,)]


def test_a_file_rewritten_in_place_has_its_new_functions_where_no_old_one_was(asked: Asked) -> None:
    space = space_of(APP)
    asked.lookup.function_bytes = 16
    assert asked.names(asked.chain(user=[0x400104]), space) == ["f_1100"]
    asked.lookup.function_bytes = 256
    assert asked.names(asked.chain(user=[0x400180]), space) == ["f_1180"]
    assert asked.names(asked.chain(user=[0x4041FF]), space) == ["f_5100"]
    assert asked.lookup.user_calls == 2


@pytest.mark.parametrize("most", [3, 100_000])
def test_too_many_frames_begin_again_with_the_next_segment(
    asked: Asked, build: Any, monkeypatch: pytest.MonkeyPatch, most: int
) -> None:
    monkeypatch.setattr(symbolizer_module, "MOST_NAMES", most)
    space = space_of(APP)
    raw = asked.chain([build.KERNEL_BASE], [0x400100, 0x400201, 0x5])
    before = asked.names(raw, space)
    asked.symbolizer.start_segment([space])
    assert asked.names(raw, space) == before
    assert asked.lookup.user_calls == (2 if most == 3 else 1)
    asked.symbolizer.start_segment([])
    assert asked.symbolizer.interned.take_rows() == ([], [])


def test_caches_are_emptied_when_they_outgrow_their_bound(asked: Asked, build: Any, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(symbolizer_module, "_MOST_CHAINS", 3)
    monkeypatch.setattr(frame_names, "MOST_NAMES", 3)
    spaces = [space_of(APP), space_of(APP), space_of(ANON)]
    for turn in range(4):
        asked.number(*((asked.chain([build.KERNEL_BASE + turn * 16], [0x400000 + turn, 0x900001]), space) for space in spaces))
    for turn in range(4):
        asked.number((asked.chain([build.KERNEL_BASE + turn * 16]), spaces[0]))
    asked.symbolizer.bound(lambda: spaces)
    assert not any(space.callers or space.made or space.located for space in spaces)
    assert not asked.symbolizer._above
    names = asked.symbolizer.names
    assert (names.kernel, names._modules) == ({}, {})
    before = asked.lookup.asked
    assert asked.names(asked.chain(user=[0x400100]), spaces[0]) == ["f_1100"]
    assert asked.lookup.asked == before, "functions are kept"


def test_too_many_chains_forget_stacks_but_no_names(asked: Asked, build: Any, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(symbolizer_module, "_MOST_CHAINS", 3)
    space = space_of(APP)
    chains = [asked.chain([build.KERNEL_BASE], [0x400100 + 16 * turn, *range(0x400201, 0x400281, 16)]) for turn in range(4)]
    numbers = asked.number(*((raw, space) for raw in chains))
    assert asked.number(*((raw, space) for raw in chains)) == numbers
    before = asked.lookup.asked
    assert (len(space.callers), len(asked.symbolizer._above)) == (1, 4)
    asked.symbolizer.bound(lambda: [space])
    assert (len(space.callers), len(asked.symbolizer._above)) == (0, 0)
    assert asked.number(*((raw, space) for raw in chains)) == numbers
    assert asked.lookup.asked == before


def test_a_chain_that_comes_again_is_known_in_its_program_only(asked: Asked, build: Any, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(symbolizer_module, "_MOST_WHOLE", 3)
    space, other = space_of(APP), space_of(APP)
    chains = [asked.chain([build.KERNEL_BASE + 16 * turn], [0x400100]) for turn in range(5)]
    asked.number(*((raw, space) for raw in chains))  # learns the names
    numbers = [asked.symbolizer.number(raw, 100, space) for raw in chains]
    assert [space.stacks[raw] for raw in chains] == numbers
    assert not other.stacks
    asked.symbolizer.bound(lambda: [space])
    assert not space.stacks
    assert asked.symbolizer._above, "what they are put together from is kept"


def test_within_bounds_nothing_is_forgotten(asked: Asked, build: Any) -> None:
    space = space_of(APP)
    asked.number((asked.chain([build.KERNEL_BASE], [0x400100]), space))
    before = asked.lookup.asked
    asked.symbolizer.bound(lambda: [space])
    asked.number((asked.chain([build.KERNEL_BASE], [0x400100]), space))
    assert asked.lookup.asked == before
