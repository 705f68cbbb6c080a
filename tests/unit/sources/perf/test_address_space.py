"""Mappings of a process: lazily parsed, inherited, laid over each other, bounded."""

from bisect import bisect_right
from itertools import product
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from necroscope.sources.perf import address_space
from necroscope.sources.perf.address_space import AddressSpace, parse_mmap2
from necroscope.symbols.process_maps import Mapping


def mapping(start: int, end: int, path: str, file_offset: int = 0) -> Mapping:
    return Mapping(start, end, file_offset, 8, 1, 5, path)


@pytest.fixture
def mapped(build: Any) -> Any:
    def record(start: int, end: int, path: str, file_offset: int = 0, inode: int = 5) -> bytes:
        return bytes(build.mmap2(1, 100, start, end - start, path.encode(), file_offset=file_offset, inode=inode))

    return record


def path_at(space: AddressSpace, address: int) -> str | None:
    found = space.find(address)
    return None if found is None else found.path


def test_a_record_says_where_which_file_is_mapped(build: Any) -> None:
    record = build.mmap2(1, 100, 0x7F00_0000, 0x2000, b"/usr/lib/libc.so.6", file_offset=0x1000, inode=77, device=254)
    assert parse_mmap2(record) == Mapping(0x7F00_0000, 0x7F00_2000, 0x1000, 254, 1, 77, "/usr/lib/libc.so.6")


@pytest.mark.parametrize("name", [b"", b"/a\x1b[31m", b"/\xff\xfe", b"/" + b"x" * 4095, b"/new\nline"])
def test_hostile_paths_come_back_byte_for_byte(build: Any, name: bytes) -> None:
    assert parse_mmap2(build.mmap2(1, 100, 0x1000, 0x1000, name)).path.encode("utf-8", "surrogateescape") == name


def test_an_address_is_found_in_its_mapping_and_not_beside_it(mapped: Any) -> None:
    space = AddressSpace(is_complete=True)
    space.add(mapped(0x1000, 0x2000, "/a"))
    space.add(mapped(0x3000, 0x4000, "/b"))
    assert [path_at(space, address) for address in (0xFFF, 0x1000, 0x1FFF, 0x2000, 0x3000, 0x4000)] == [
        *(None, "/a", "/a"),
        *(None, "/b", None),
    ]


def test_records_are_not_parsed_before_an_address_is_asked(mapped: Any, monkeypatch: pytest.MonkeyPatch) -> None:
    parsed = []
    monkeypatch.setattr(address_space, "parse_mmap2", lambda record: (parsed.append(record), parse_mmap2(record))[1])
    space = AddressSpace(is_complete=True)
    space.add(mapped(0x1000, 0x2000, "/a"))
    space.fork().add(mapped(0x3000, 0x4000, "/b"))
    assert parsed == []
    space.find(0x1000)
    space.find(0x1800)
    assert len(parsed) == 1


def test_a_new_record_costs_only_itself(mapped: Any, monkeypatch: pytest.MonkeyPatch) -> None:
    parsed = []
    space = AddressSpace(is_complete=True)
    for page in range(1, 50):
        space.add(mapped(page << 12, (page + 1) << 12, "/a"))
    space.find(0)
    monkeypatch.setattr(address_space, "parse_mmap2", lambda record: (parsed.append(record), parse_mmap2(record))[1])
    space.add(mapped(0x100000, 0x101000, "/b"))
    assert path_at(space, 0x100000) == "/b"
    assert len(parsed) == 1


def test_a_later_mapping_replaces_one_of_the_same_place(mapped: Any) -> None:
    space = AddressSpace(is_complete=True)
    space.add(mapped(0x1000, 0x3000, "/old"))
    space.find(0x1000)
    space.add(mapped(0x1000, 0x2000, "/new"))
    assert [path_at(space, address) for address in (0x1000, 0x2000)] == ["/new", "/old"]


def test_a_later_mapping_hides_what_was_unmapped_below_it(mapped: Any) -> None:
    space = AddressSpace(is_complete=True)
    space.add(mapped(0x4000, 0x5000, "/unmapped"))
    space.add(mapped(0x6000, 0x9000, "/partly"))
    space.add(mapped(0x1000, 0x8000, "/new"))
    assert [path_at(space, address) for address in (0x4800, 0x6000, 0x8000)] == ["/new", "/new", "/partly"]


def test_what_a_mapping_leaves_of_an_older_one_keeps_its_place_in_the_file(mapped: Any) -> None:
    space = AddressSpace(is_complete=True)
    space.add(mapped(0x1000, 0x9000, "/library", file_offset=0x100))
    space.add(mapped(0x3000, 0x5000, "/patch"))
    assert space.find(0x1800) == mapping(0x1000, 0x3000, "/library", 0x100)
    assert space.find(0x3800) == mapping(0x3000, 0x5000, "/patch")
    assert space.find(0x6000) == mapping(0x5000, 0x9000, "/library", 0x4100)


PAGES = st.tuples(st.integers(0, 15), st.integers(1, 6))


@given(st.lists(PAGES, max_size=12), st.lists(PAGES, max_size=3), st.integers(0, 12))
def test_every_page_belongs_to_the_mapping_that_came_last(
    build: Any, mapped: list[tuple[int, int]], base: list[tuple[int, int]], asked_after: int
) -> None:
    painted: dict[int, str] = {}
    read_from_proc = []
    for number, (start, pages) in enumerate(base):
        if not any(page in painted for page in range(start, start + pages)):
            read_from_proc.append(mapping(start << 12, (start + pages) << 12, f"/base{number}"))
            painted |= dict.fromkeys(range(start, start + pages), f"/base{number}")
    space = AddressSpace(is_complete=True, base=tuple(read_from_proc))
    for number, (start, pages) in enumerate(mapped):
        if number == asked_after:
            space.find(0)
        space.add(build.mmap2(number, 100, start << 12, pages << 12, f"/{number}".encode()))
        painted |= dict.fromkeys(range(start, start + pages), f"/{number}")
    assert [path_at(space, page << 12) for page in range(25)] == [painted.get(page) for page in range(25)]


def test_one_file_at_two_places_and_two_files_at_one_place_are_told_apart(build: Any) -> None:
    def found(start: int, name: bytes, file_offset: int, inode: int) -> Mapping:
        return parse_mmap2(build.mmap2(start, start, start, 0x1000, name, file_offset=file_offset, inode=inode))

    for _ in range(2):
        for start, name, file_offset, inode in product((0x1000, 0x5000), (b"/a", b"/b"), (0, 0x2000), (5, 6)):
            expected = Mapping(start, start + 0x1000, file_offset, 8, 1, inode, name.decode())
            assert found(start, name, file_offset, inode) == expected


def test_what_is_kept_of_records_stays_small_whatever_a_user_maps(build: Any, monkeypatch: pytest.MonkeyPatch) -> None:
    kept: dict[bytes, Any] = {}
    monkeypatch.setattr(address_space, "_known", kept)
    for number in range(3 * address_space._MOST_KNOWN):
        path = f"/{number}/".encode() + b"x" * (number % 2 * 4000)
        assert parse_mmap2(build.mmap2(1, 100, 0x1000, 0x1000, path)).path == path.decode()
    assert len(kept) <= address_space._MOST_KNOWN
    assert sum(map(len, kept)) < 1 << 20


def test_a_child_inherits_and_then_goes_its_own_way(mapped: Any) -> None:
    parent = AddressSpace(is_complete=True, base=(mapping(0x1000, 0x2000, "/base"),))
    parent.add(mapped(0x3000, 0x4000, "/shared"))
    child = parent.fork()
    child.add(mapped(0x5000, 0x6000, "/child"))
    parent.add(mapped(0x7000, 0x8000, "/parent"))
    addresses = (0x1000, 0x3000, 0x5000, 0x7000)
    assert [path_at(child, address) for address in addresses] == ["/base", "/shared", "/child", None]
    assert [path_at(parent, address) for address in addresses] == ["/base", "/shared", None, "/parent"]


def test_a_child_of_an_image_not_yet_known_asks_for_its_own() -> None:
    child = AddressSpace(is_complete=False).fork()
    child.complete(lambda: [mapping(0x1000, 0x2000, "/own")])
    assert path_at(child, 0x1000) == "/own"


def test_the_maps_of_a_process_are_asked_once_whatever_comes_of_it(mapped: Any) -> None:
    asked = []
    space = AddressSpace(is_complete=False)
    space.add(mapped(0x1000, 0x2000, "/seen"))
    for _ in range(3):
        space.complete(lambda: asked.append(1))  # type: ignore[func-returns-value]
    assert len(asked) == 1
    assert path_at(space, 0x1000) == "/seen"


def test_the_maps_just_read_are_newer_than_the_records_before(mapped: Any) -> None:
    space = AddressSpace(is_complete=False)
    space.add(mapped(0x1000, 0x2000, "/before"))
    space.complete(lambda: [mapping(0x1000, 0x2000, "/now")])
    assert path_at(space, 0x1000) == "/now"
    space.add(mapped(0x1000, 0x2000, "/after"))
    assert path_at(space, 0x1000) == "/after"


def located(*mappings: Mapping) -> AddressSpace:
    space = AddressSpace(is_complete=True, base=mappings)
    space.locate()
    return space


def test_a_place_is_found_by_the_start_of_its_mapping() -> None:
    space = located(mapping(0x3000, 0x4000, "/b", 0x100), Mapping(0x1000, 0x2000, 0, 0, 0, 0, "//anon"))
    assert space.located is not None
    ends = [space.located[bisect_right(space.starts, address) - 1][0] for address in (-1, 0, 0xFFF, 0x1000, 0x2FFF, 0x3000)]
    assert ends == [-1, -1, -1, 0x2000, 0x2000, 0x4000]
    assert [frames for _, _, frames in space.located] == [{}] * 3


def test_what_is_said_of_one_mapping_holds_for_all_its_addresses_and_no_other() -> None:
    space = located(mapping(0x3000, 0x4000, "/b", 0x100), mapping(0x4000, 0x5000, "/c"))
    frames = {0x100: 7}
    space.place(0x3ABC, 0x2F00, frames)
    assert space.located is not None
    assert space.located[1:] == [(0x4000, 0x2F00, frames), (0x5000, 0, {})]


def test_a_new_mapping_forgets_places_and_what_lies_in_them(mapped: Any) -> None:
    space = located(mapping(0x3000, 0x4000, "/b"))
    space.made[0x1000] = space.callers[b"chain"] = 1
    space.add(mapped(0x1000, 0x2000, "/new"))
    assert (space.located, space.made, space.callers) == (None, {}, {})


def test_a_child_has_places_of_its_own(mapped: Any) -> None:
    parent = located(mapping(0x3000, 0x4000, "/b"))
    parent.made[0x1000] = parent.callers[b"chain"] = 1
    child = parent.fork()
    assert (child.located, child.made, child.callers) == (None, {}, {})
    child.add(mapped(0x1000, 0x2000, "/child"))
    assert (len(parent.made), len(parent.callers)) == (1, 1)


def test_a_compiler_that_maps_the_same_pages_without_end_does_not_push_out_the_program(mapped: Any) -> None:
    space = AddressSpace(is_complete=True)
    space.add(mapped(0x1000, 0x2000, "/usr/bin/node"))
    for turn in range(20_000):
        space.add(mapped(0x10000 + turn % 7 * 0x1000, 0x11000 + turn % 7 * 0x1000, "//anon", inode=0))
    assert path_at(space, 0x1000) == "/usr/bin/node"
    assert path_at(space, 0x10000) == "//anon"
    assert space.size_bytes < 2 << 20


def test_a_process_that_maps_ever_new_pages_stays_bounded_and_keeps_its_files(mapped: Any) -> None:
    space = AddressSpace(is_complete=True)
    space.add(mapped(0x1000, 0x2000, "/usr/bin/node"))
    for turn in range(20_000):
        space.add(mapped(0x100000 + (turn << 12), 0x101000 + (turn << 12), "//anon", inode=0))
    assert path_at(space, 0x1000) == "/usr/bin/node"
    assert path_at(space, 0x100000 + (19_999 << 12)) == "//anon"
    assert space.size_bytes < 8 << 20


def test_children_of_a_process_with_many_mappings_share_them(mapped: Any) -> None:
    parent = AddressSpace(is_complete=True)
    for page in range(1000):
        parent.add(mapped(page << 12, (page + 1) << 12, "/a"))
    children = [parent.fork() for _ in range(3)]
    assert all(child._base is parent._base and not child._records for child in children)
    assert path_at(children[0], 999 << 12) == "/a"
