"""Frames by address: what one answer serves, what has to be asked for, and what is no code."""

from typing import Any

import pytest

from necroscope.model.frame import Frame
from necroscope.sources.perf import frame_names
from necroscope.sources.perf.address_space import AddressSpace
from necroscope.sources.perf.frame_names import ASKED, FrameNames, Wanted
from necroscope.sources.perf.interned import Interned
from necroscope.symbols.process_maps import Mapping

APP = Mapping(0x400000, 0x500000, 0x1000, 8, 1, 77, "/usr/bin/app")


@pytest.fixture
def interned() -> Interned:
    return Interned()


@pytest.fixture
def names(lookup: Any, interned: Interned) -> FrameNames:
    return FrameNames(lookup, interned)


def learn(names: FrameNames, space: AddressSpace, kernel: int, user: int) -> None:
    for _ in range(2):
        wanted = Wanted()
        names.of_kernel(kernel, wanted)
        names.of_user(100, space, user, wanted)
        names.learn(wanted)


def test_what_is_noted_is_known_after_it_was_learnt(names: FrameNames, interned: Interned, build: Any) -> None:
    space, wanted = AddressSpace(is_complete=True, base=(APP,)), Wanted()
    names.locate(100, space)
    assert names.of_user(100, space, 0x400100, wanted) == ASKED
    names.learn(wanted)
    user, kernel = names.of_user(100, space, 0x400100, Wanted()), names.of_kernel(build.KERNEL_BASE, Wanted())
    assert user == interned.frame(Frame("f_1100", "/usr/bin/app", "user", None, "b1d"))
    assert kernel == interned.frame(Frame("k_0", "[kernel]", "kernel", None, None))
    assert space.located is not None
    assert space.located[1] == (0x500000, 0x400000 - 0x1000, {0x1100: user})
    assert names.kernel == {build.KERNEL_BASE: kernel}


def test_what_one_process_taught_is_not_asked_for_another(names: FrameNames, lookup: Any) -> None:
    wanted, nothing = Wanted(), Wanted()
    space = AddressSpace(is_complete=True, base=(APP,))
    names.of_user(100, space, 0x400101, wanted)
    names.learn(wanted)
    number = names.of_user(100, space, 0x400101, nothing)
    other = AddressSpace(is_complete=True, base=(APP._replace(start=0x800000, end=0x900000),))
    names.locate(200, other)
    assert names.of_user(200, other, 0x80010F, nothing) == number
    assert nothing.blocks == {}
    assert other.located is not None
    assert other.located[1][2][0x1101] == number, "it finds what the first has looked up"


def test_the_vdso_is_the_same_in_all_processes(names: FrameNames, lookup: Any) -> None:
    wanted, nothing = Wanted(), Wanted()
    for start in (0x10000, 0x20000):
        space = AddressSpace(is_complete=True, base=(Mapping(start, start + 0x2000, 0, 0, 0, 0, "[vdso]"),))
        names.of_user(100, space, start + 0x40, wanted)
    names.learn(wanted)
    assert lookup.vdso_asked == [[0x40]]
    assert names.of_user(100, space, 0x20040, nothing) != ASKED


def test_code_made_at_run_time_is_known_to_its_process_alone(names: FrameNames, lookup: Any) -> None:
    lookup.jit_names = {0x900010: "py::main"}
    anonymous = Mapping(0x900000, 0x910000, 0, 0, 0, 0, "//anon")
    one, other = (AddressSpace(is_complete=True, base=(anonymous,)) for _ in range(2))
    wanted, again = Wanted(), Wanted()
    names.of_user(100, one, 0x900010, wanted)
    names.learn(wanted)
    assert names.of_user(100, one, 0x900010, again) != ASKED
    assert names.of_user(200, other, 0x900010, again) == ASKED
    assert [(pid, addresses) for pid, _, addresses in again.made.values()] == [(200, {0x900010})]


def test_what_the_kernel_cannot_name_is_kept_by_its_address(
    names: FrameNames, interned: Interned, lookup: Any, build: Any
) -> None:
    lookup.names = {build.KERNEL_BASE: None}
    for distance in (5, 6):
        signed = build.KERNEL_BASE + distance - (1 << 64)
        expected = interned.frame(Frame(None, "[kernel]", "kernel", signed, None))
        assert names.of_kernel(build.KERNEL_BASE + distance, Wanted()) == expected


def test_a_function_of_a_module_is_named_with_it(names: FrameNames, interned: Interned, lookup: Any, build: Any) -> None:
    lookup.names = {build.KERNEL_BASE: ("nf_hook", "[nf_tables]")}
    assert names.of_kernel(build.KERNEL_BASE, Wanted()) == interned.frame(Frame("nf_hook", "[nf_tables]", "kernel", None, None))


def test_a_mangled_function_of_the_kernel_is_demangled_by_a_question(
    names: FrameNames, interned: Interned, lookup: Any, build: Any
) -> None:
    lookup.names = {build.KERNEL_BASE: ("_RNvCs1_6binder4poll", "[kernel]")}
    wanted = Wanted()
    assert names.of_kernel(build.KERNEL_BASE, wanted) == ASKED
    names.learn(wanted)
    expected = interned.frame(Frame("readable _RNvCs1_6binder4poll", "[kernel]", "kernel", None, None))
    assert names.of_kernel(build.KERNEL_BASE, Wanted()) == expected


def test_each_function_of_the_kernel_is_named_once(names: FrameNames, lookup: Any, build: Any) -> None:
    numbers = {names.of_kernel(build.KERNEL_BASE + distance, Wanted()) for distance in range(16)}
    assert len(numbers) == 1
    assert lookup.kernel_asked == [build.KERNEL_BASE]


def test_a_function_names_nothing_beyond_the_end_of_its_mapping(names: FrameNames, lookup: Any) -> None:
    lookup.function_bytes = 0x1000
    beside = Mapping(0x400900, 0x401000, 0, 0, 0, 0, "//anon")
    space = AddressSpace(is_complete=True, base=(APP._replace(start=0x400100, end=0x400900, file_offset=0x1100), beside))
    wanted, again = Wanted(), Wanted()
    names.of_user(100, space, 0x400500, wanted)
    names.learn(wanted)
    assert names.of_user(100, space, 0x400500, again) != ASKED
    assert names.of_user(100, space, 0x400980, again) == ASKED


def test_names_given_for_want_of_an_answer_are_forgotten_and_only_those(names: FrameNames, lookup: Any, build: Any) -> None:
    space = AddressSpace(is_complete=True, base=(APP,))
    learn(names, space, build.KERNEL_BASE, 0x400100)
    lookup.is_gone = True
    learn(names, space, build.KERNEL_BASE + 0x1000, 0x404100)
    assert names.of_user(100, space, 0x404100, Wanted()) != ASKED, "without an answer it is left nameless, not asked again"
    assert names.bound(lambda: [space])
    assert (names.kernel, space.located) == ({}, None)
    wanted = Wanted()
    assert names.of_user(100, space, 0x400100, wanted) != ASKED
    assert names.of_user(100, space, 0x404100, wanted) == ASKED
    assert not names.bound(lambda: [space])


def test_a_target_that_is_not_asked_because_it_hung_stays_nameless(names: FrameNames, lookup: Any, build: Any) -> None:
    space = AddressSpace(is_complete=True, base=(APP,))
    lookup.is_gone = True
    learn(names, space, build.KERNEL_BASE, 0x400100)
    lookup.unanswered = 0
    assert not names.bound(lambda: [space])
    assert names.of_user(100, space, 0x400100, Wanted()) != ASKED


def test_too_many_addresses_are_forgotten_but_not_their_functions(
    names: FrameNames, lookup: Any, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(frame_names, "MOST_NAMES", 50)
    space, asked_before = AddressSpace(is_complete=True, base=(APP,)), 0
    for turn in range(3):
        for address in range(0x400000, 0x400040):
            wanted = Wanted()
            names.of_user(100, space, address, wanted)
            names.learn(wanted)
        assert names.bound(lambda: [space])
        assert names._modules == {}
        asked_before = asked_before if turn else lookup.asked
    assert lookup.asked == asked_before
