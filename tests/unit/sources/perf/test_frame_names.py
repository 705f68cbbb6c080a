"""Frames by address: what one answer serves, what has to be asked for, and what is no code."""

import struct
from typing import Any

import pytest

from necroscope.model.frame import Frame
from necroscope.sources.perf.address_space import AddressSpace
from necroscope.sources.perf.frame_names import NOT_CODE, FrameNames, Wanted
from necroscope.sources.perf.interned import Interned
from necroscope.symbols.process_maps import Mapping

APP = Mapping(0x400000, 0x500000, 0x1000, 8, 1, 77, "/usr/bin/app")


@pytest.fixture
def interned() -> Interned:
    return Interned()


@pytest.fixture
def names(lookup: Any, interned: Interned) -> FrameNames:
    return FrameNames(lookup, interned)


def test_what_is_noted_is_known_after_it_was_learnt(names: FrameNames, interned: Interned, build: Any) -> None:
    space, wanted = AddressSpace(is_complete=True, base=(APP,)), Wanted()
    assert names.of_user(100, space, 0x400100, wanted) is None
    assert names.of_kernel(build.KERNEL_BASE, wanted) is None
    names.learn(wanted)
    user, kernel = names.of_user(100, space, 0x400100, Wanted()), names.of_kernel(build.KERNEL_BASE, Wanted())
    assert user == interned.frame(Frame("f_1100", "/usr/bin/app", "user", None, "b1d"))
    assert kernel == interned.frame(Frame("k_0", "[kernel]", "kernel", None, None))
    assert space.names.ranges.find(0x400100) == user
    assert names.kernel.by_address == {build.KERNEL_BASE: kernel}


@pytest.mark.parametrize("address", [-1, 0, 0x3FFFFF, 0x500000, (1 << 64) - 1])
def test_an_address_in_no_mapping_is_no_code_and_nothing_is_noted(names: FrameNames, lookup: Any, address: int) -> None:
    space, wanted = AddressSpace(is_complete=True, base=(APP,)), Wanted()
    assert names.of_user(100, space, address, wanted) == NOT_CODE
    names.learn(wanted)
    assert lookup.asked == 0
    assert len(space.names) == 0


def test_an_offset_that_a_neighbour_names_is_not_asked_in_any_process(names: FrameNames, lookup: Any) -> None:
    lookup.function_bytes = 64
    wanted, nothing = Wanted(), Wanted()
    names.of_user(100, AddressSpace(is_complete=True, base=(APP,)), 0x400101, wanted)
    names.learn(wanted)
    other = AddressSpace(is_complete=True, base=(APP._replace(start=0x800000, end=0x900000),))
    number = names.of_user(200, other, 0x80013F, nothing)
    assert number is not None
    assert nothing.offsets == {}
    assert other.names.ranges.extent(0x80013F) == (0x800100, 0x800140, number)


def test_two_addresses_of_a_function_in_one_question_make_one_range(names: FrameNames, lookup: Any, build: Any) -> None:
    lookup.function_bytes = 64
    space, wanted = AddressSpace(is_complete=True, base=(APP,)), Wanted()
    for distance in (1, 2, 3):
        names.of_kernel(build.KERNEL_BASE + distance, wanted)
        names.of_user(100, space, 0x400100 + distance, wanted)
    names.learn(wanted)
    (module,) = names._modules.values()
    assert (len(names._kernel_ranges), len(module.named), len(names.kernel.by_address)) == (1, 1, 3)


def test_what_the_kernel_cannot_name_is_kept_by_its_address(
    names: FrameNames, interned: Interned, lookup: Any, build: Any
) -> None:
    lookup.function_bytes = 64
    lookup.names = {build.KERNEL_BASE: None}
    wanted, again = Wanted(), Wanted()
    names.of_kernel(build.KERNEL_BASE + 5, wanted)
    names.learn(wanted)
    signed = build.KERNEL_BASE + 5 - (1 << 64)
    assert names.kernel.by_address == {build.KERNEL_BASE + 5: interned.frame(Frame(None, "[kernel]", "kernel", signed, None))}
    assert names.of_kernel(build.KERNEL_BASE + 6, again) is None
    assert again.kernel == {build.KERNEL_BASE + 6}


def test_reloading_forgets_ranges_too(names: FrameNames, lookup: Any, build: Any) -> None:
    addresses, wanted, again = names.idle_addresses, Wanted(), Wanted()
    for address in (build.KERNEL_BASE, build.IDLE):
        names.of_kernel(address, wanted)
    names.learn(wanted)
    assert addresses == {struct.pack("<Q", build.IDLE)}
    names.reload_kernel()
    assert names.of_kernel(build.KERNEL_BASE, again) is None
    assert again.kernel == {build.KERNEL_BASE}
    assert addresses == set()
    assert names.idle_addresses is addresses


def test_a_function_that_crosses_the_end_of_its_mapping_names_nothing_beyond_it(names: FrameNames, lookup: Any) -> None:
    lookup.function_bytes = 0x1000
    beside = Mapping(0x400900, 0x401000, 0, 0, 0, 0, "//anon")
    space = AddressSpace(is_complete=True, base=(APP._replace(start=0x400100, end=0x400900, file_offset=0x1100), beside))
    wanted, again = Wanted(), Wanted()
    names.of_user(100, space, 0x400500, wanted)
    names.learn(wanted)
    number = names.of_user(100, space, 0x400500, again)
    assert space.names.ranges.extent(0x400500) == (0x400100, 0x400900, number)
    assert names.of_user(100, space, 0x400980, again) is None
    assert names.of_user(100, space, 0x4000FF, again) == NOT_CODE


def test_an_innermost_address_is_known_by_its_function_alone(names: FrameNames, lookup: Any, build: Any) -> None:
    lookup.function_bytes = 64
    space, wanted = AddressSpace(is_complete=True, base=(APP,)), Wanted()
    raw_user, raw_kernel = struct.pack("<Q", 0x400120), struct.pack("<Q", build.KERNEL_BASE + 0x20)
    assert names.innermost_of_user(raw_user, space) is None
    assert names.innermost_of_kernel(raw_kernel) is None
    names.of_user(100, space, 0x400101, wanted)
    names.of_kernel(build.KERNEL_BASE, wanted)
    names.learn(wanted)
    number = names.of_user(100, space, 0x400101, wanted)
    assert names.innermost_of_user(raw_user, space) == number
    assert space.names.innermost == {raw_user: number}
    assert names.innermost_of_kernel(raw_kernel) == names.of_kernel(build.KERNEL_BASE, wanted)


def test_names_given_for_want_of_an_answer_are_forgotten(names: FrameNames, lookup: Any, build: Any) -> None:
    lookup.names[build.KERNEL_BASE] = None
    wanted = Wanted()
    names.of_kernel(build.KERNEL_BASE, wanted)
    names.learn(wanted)
    assert not names.bound([])
    assert names.kernel.by_address
    lookup.unanswered += 1
    assert names.bound([])
    assert not names.kernel.by_address
    assert not names.bound([])
