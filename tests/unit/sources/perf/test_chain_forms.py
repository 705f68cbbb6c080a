"""Chains as they really come: callers that are no code, forged markers, unusual forms, mappings that come later."""

import struct
from bisect import bisect_right
from typing import Any

import pytest

from necroscope.model.frame import Frame
from necroscope.perf_abi.event_attr import CONTEXT_HV, CONTEXT_KERNEL, CONTEXT_MAX, CONTEXT_USER
from necroscope.sources.perf import symbolizer as symbolizer_module
from necroscope.sources.perf.address_space import AddressSpace
from necroscope.sources.perf.symbolizer import Symbolizer, _calls
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


def test_a_caller_that_is_no_code_cuts_the_chain_and_is_never_asked(asked: Asked, build: Any) -> None:
    space = space_of(APP)
    raw = asked.chain([build.KERNEL_BASE], [0x400100, 0x400201, 0x5, 0x400301, 0x7FFD_0000_0000])
    for _ in range(3):
        assert asked.names(raw, space) == ["[unknown]", "f_1200", "f_1100", "k_0"]
    assert [request.blocks for request in asked.lookup.user_asked] == [(0,)]
    assert asked.lookup.jit_asked == []
    assert asked.lookup.vdso_asked == []


@pytest.mark.parametrize("garbage", [(0,), (0x5,), (0x5, 0x400201), (0x400201, 0x5), (0, 0, 0), (0x5, 0x6)], ids=str)
def test_what_follows_no_code_changes_no_stack(asked: Asked, build: Any, garbage: tuple[int, ...]) -> None:
    """The chain of a good caller below another innermost address, before and after a cut one was numbered."""
    space = space_of(APP)
    good = [asked.chain(kernel, [0x400100, 0x400201]) for kernel in ([], [build.KERNEL_BASE])]
    before = [asked.names(raw, space) for raw in good]
    for innermost in (0x400100, 0x400180, 0x7):
        for kernel in ([], [build.KERNEL_BASE]):
            raw = asked.chain(kernel, [innermost, *garbage])
            known = ["f_1100"] if innermost == 0x400100 else ["f_1180"]
            callers = ["[unknown]", *(["f_1200"] if garbage[0] == 0x400201 else [])]
            expected = ["[unknown]"] if innermost == 0x7 else [*callers, *known]
            for _ in range(2):
                assert asked.names(raw, space) == [*expected, *(["k_0"] if kernel else [])]
    assert [asked.names(raw, space) for raw in good] == before


@pytest.mark.parametrize("address", [0, 1, 0x3FFFFF, 0x500000, (1 << 64) - 1])
def test_an_address_in_no_mapping_is_no_code_and_nothing_is_asked(asked: Asked, address: int) -> None:
    space = space_of(APP)
    assert asked.names(asked.chain(user=[address]), space) == ["[unknown]"]
    assert asked.names(asked.chain(user=[address, *range(0x400201, 0x400281, 16)]), space) == ["[unknown]"]
    assert asked.lookup.asked == 0


def test_code_without_a_name_does_not_cut_a_long_chain(asked: Asked) -> None:
    """What a just-in-time compiler made without a perf map is unknown too, but its callers are as good as any."""
    space = space_of(APP, ANON)
    callers = [0x400201, 0x400301, 0x900021, 0x400401, 0x400501]
    expected = ["f_1500", "f_1400", "[unknown]", "f_1300", "f_1200", "[unknown]"]
    for _ in range(3):
        assert asked.names(asked.chain(user=[0x900010, *callers]), space) == expected


def test_an_innermost_address_that_is_no_code_says_nothing_of_its_callers(asked: Asked) -> None:
    space = space_of(APP)
    assert asked.names(asked.chain(user=[0x7, 0x400201]), space) == ["[unknown]"]
    asked.names(asked.chain(user=[0x400100]), space)
    assert asked.names(asked.chain(user=[0x400100, 0x400201]), space) == ["f_1200", "f_1100"]
    assert asked.names(asked.chain(user=[0x7, 0x400201]), space) == ["[unknown]"]


def test_garbage_that_never_comes_again_is_not_kept(asked: Asked, build: Any) -> None:
    space = space_of(APP)
    for garbage in range(100):
        for callers in ([garbage], [0x400201, 0x400301, 0x400401, 0x400501, garbage]):
            chains = [asked.chain(kernel, [0x400100, *callers]) for kernel in ([], [build.KERNEL_BASE])]
            asked.number(*((raw, space) for raw in chains))
    assert len(space.callers) + len(space.made) + len(asked.symbolizer._above) < 10
    assert len(asked.symbolizer.names._module((8, 1, 77, "/usr/bin/app")).frames) == 5


def test_code_in_no_mapping_is_named_once_it_is_mapped(asked: Asked, build: Any) -> None:
    space = space_of()
    chains = [asked.chain(user=[0x400100]), asked.chain([build.KERNEL_BASE], [0x400100])]
    assert [asked.names(raw, space)[0] for raw in chains] == ["[unknown]", "[unknown]"]
    space.add(build.mmap2(1, 100, 0x400000, 0x1000, b"/usr/bin/late"))
    assert [asked.names(raw, space)[0] for raw in chains] == ["f_100", "f_100"]


def test_code_met_in_the_kernel_only_is_named_once_it_is_mapped(asked: Asked, build: Any) -> None:
    space = space_of()
    raw = asked.chain([build.KERNEL_BASE], [0x400100])
    assert asked.names(raw, space) == ["[unknown]", "k_0"]
    space.add(build.mmap2(1, 100, 0x400000, 0x1000, b"/usr/bin/late"))
    assert asked.names(raw, space) == ["f_100", "k_0"]


def test_a_new_mapping_over_a_named_address_forgets_its_name(asked: Asked, build: Any) -> None:
    space = space_of(APP)
    chains = [
        asked.chain(user=[0x400100, 0x400201]),
        asked.chain([build.KERNEL_BASE], [0x400100, 0x400201]),
    ]
    assert [asked.names(raw, space)[:2] for raw in chains] == [["f_1200", "f_1100"]] * 2
    space.add(build.mmap2(1, 100, 0x400000, 0x1000, b"/usr/lib/plugin.so", file_offset=0x8000))
    assert [asked.names(raw, space)[:2] for raw in chains] == [["f_8200", "f_8100"]] * 2


@pytest.mark.parametrize("forged", [CONTEXT_KERNEL, CONTEXT_USER, CONTEXT_HV, (1 << 64) - 1, CONTEXT_MAX])
def test_a_marker_on_the_programs_own_stack_is_no_marker(asked: Asked, build: Any, forged: int) -> None:
    space = space_of(APP)
    for kernel, names in (([], []), ([build.KERNEL_BASE], ["k_0"])):
        raw = asked.chain(kernel, [0x400100, 0x400201, forged, build.KERNEL_BASE + 0x99])
        for _ in range(2):
            assert asked.names(raw, space) == ["[unknown]", "f_1200", "f_1100", *names]
        raw = asked.chain(kernel, [0x400100, forged, build.KERNEL_BASE + 0x99])
        for _ in range(2):
            assert asked.names(raw, space) == ["[unknown]", "f_1100", *names]
    assert asked.lookup.kernel_asked == [build.KERNEL_BASE]


def test_a_mapping_that_comes_later_in_the_drain_over_a_sampled_address_does_not_cost_the_stack(asked: Asked, build: Any) -> None:
    space = space_of(APP)
    raw = asked.chain([build.KERNEL_BASE], [0x400100])
    assert asked.symbolizer.number(raw, 100, space) is None
    space.add(build.mmap2(1, 100, 0x400000, 0x1000, b"/usr/lib/plugin.so", file_offset=0x8000))
    (number,) = asked.symbolizer.resolve([(raw, 100, space)])
    assert [frame.function for frame in asked.symbolizer.interned.frames_of(number)] == ["k_0", "f_8100"]


WORDS = {"K": CONTEXT_KERNEL, "U": CONTEXT_USER, "H": CONTEXT_HV}


def drawn(text: str, base: int) -> bytes:
    """`K 10 20 U 400100`: markers by letter, the rest hexadecimal; what is below 1000 is in the kernel."""
    words = [WORDS.get(word) or int(word, 16) for word in text.split()]
    return struct.pack(f"<{len(words)}Q", *(base + word if word < 0x1000 else word for word in words))


@pytest.mark.parametrize(
    ("unusual", "plain"),
    [
        ("H 10", "K 10"),
        ("H 10 U 400100", "K 10 U 400100"),
        ("H 10 K 20 U 400100", "K 10 21 U 400100"),
        ("K 10 H 20 U 400100", "K 10 21 U 400100"),
        ("K 10 K 20", "K 10 21"),
        ("K U 400100 400201", "U 400100 400201"),
        ("K 10 20 U", "K 10 20"),
        ("K 10 20 H", "K 10 20"),
        ("H K 10 20", "K 10 20"),
        ("H U 400100", "U 400100"),
        ("K H", ""),
        ("K", ""),
        ("U", ""),
    ],
)
@pytest.mark.parametrize("plain_comes_first", [True, False])
def test_a_chain_of_unusual_form_has_the_number_of_its_plain_equivalent(
    asked: Asked, build: Any, unusual: str, plain: str, plain_comes_first: bool
) -> None:
    # Names and stacks of all addresses are known, so that a part that is cut wrong finds something.
    space = space_of(APP)
    parts = ["K 10", "K 20", "K 10 20", "K 20 10", "U 400100", "U 400200", "K 10 U 400100", "K 20 U 400100", "K 10 U 400200"]
    asked.number(*((drawn(text, build.KERNEL_BASE), space) for text in parts))
    order = [plain, unusual] if plain_comes_first else [unusual, plain]
    first, second = (asked.number((drawn(text, build.KERNEL_BASE), space)) for text in order)
    assert first == second
    assert asked.number((drawn(unusual, build.KERNEL_BASE), space)) == first
    assert asked.names(drawn(unusual, build.KERNEL_BASE), space) == asked.names(drawn(plain, build.KERNEL_BASE), space)


def test_chains_of_one_loop_need_nothing_but_their_innermost_address(
    asked: Asked, build: Any, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Of a chain that differs from known ones in its innermost address alone no other part is looked at."""
    space, base = space_of(APP), build.KERNEL_BASE
    asked.lookup.function_bytes = 64
    callers = [[0x400301], [0x400301, 0x400381, 0x400401, 0x400481, 0x400501]]
    chains = [asked.chain(kernel, [0x400100, *user]) for kernel in ([], [base, base + 0x81]) for user in callers]
    for _ in range(2):
        asked.number(*((chain, space) for chain in chains))
    asked.number((asked.chain([base + 0x3F], [0x40013F]), space))
    taken_apart, looked_up = [], []

    def calls(addresses: tuple[int, ...]) -> list[int]:
        taken_apart.append(addresses)
        return _calls(addresses)

    def bisect(starts: list[int], address: int) -> int:
        looked_up.append(address)
        return bisect_right(starts, address)

    monkeypatch.setattr(symbolizer_module, "_calls", calls)
    monkeypatch.setattr(symbolizer_module, "bisect_right", bisect)
    for user in callers:
        names = [f"f_{0x1000 + (address & 0xFC0):x}" for address in reversed(user)]
        assert asked.names(asked.chain(user=[0x40013F, *user]), space) == [*names, "f_1100"]
        chain = asked.chain([base + 0x3F, base + 0x81], [0x400100, *user])
        assert asked.names(chain, space) == [*names, "f_1100", "k_80", "k_0"]
    assert taken_apart == [(0x400100, 0x400301)], "only what is short"
    taken_apart.clear()
    assert looked_up == [0x40013F, 0x400300, 0x400100, 0x400300, 0x40013F, 0x400100]
    for chain in (asked.chain(user=[0x400140]), asked.chain([base + 0x90]), asked.chain([base + 0x3F, base + 0xC1])):
        asked.number((chain, space))
    assert len(taken_apart) == 3
