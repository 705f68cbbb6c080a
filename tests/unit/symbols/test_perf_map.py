import time

from hypothesis import given, settings
from hypothesis import strategies as st

from necroscope.symbols.perf_map import PerfMap


def perf_map(text: bytes) -> PerfMap:
    found = PerfMap()
    found.append(text)
    return found


def test_name_may_hold_spaces() -> None:
    assert perf_map(b"7f00 20 LazyCompile:~add /srv/app one.js:3\n").lookup(
        [0x7F00, 0x7F1F, 0x7F20]
    ) == [
        "LazyCompile:~add /srv/app one.js:3",
        "LazyCompile:~add /srv/app one.js:3",
        None,
    ]


def test_last_entry_wins_where_they_overlap() -> None:
    text = b"1000 100 old\n1010 10 inner\n1000 30 new\n"
    assert perf_map(text).lookup([0x1005, 0x1015, 0x1080]) == ["new", "new", "old"]


def test_prefixed_numbers_are_read_too() -> None:
    assert perf_map(b"0x1000 0x10 f\n").lookup([0x1001]) == ["f"]


def test_line_being_written_is_left_for_the_next_time() -> None:
    found = PerfMap()
    assert found.append(b"1000 10 f\n2000 10 half") == 10
    assert found.lookup([0x2000]) == [None]
    found.append(b"2000 10 half_no_more\n")
    assert found.lookup([0x1000, 0x2000]) == ["f", "half_no_more"]


def test_malformed_lines_are_left_out() -> None:
    text = (
        b"\nxyz 10 f\n1000\n1000 10\n1000 10 \n-1 10 f\nffffffffffffffff 10 f\n1000 0 f\n1000 10"
        b" good\n"
    )
    assert len(perf_map(text)) == 1


@settings(max_examples=100, deadline=None)
@given(st.binary(max_size=300) | st.text("0123456789abcdefx- \n", max_size=300).map(str.encode))
def test_no_text_breaks_the_parser(text: bytes) -> None:
    perf_map(text).lookup([0, 0x10, 1 << 63])


def test_entries_around_one_address_do_not_make_each_look_up_walk_them_all() -> None:
    perf_map = PerfMap()
    for start, size in ((0x1000, 0x10), (0x1000, 0x100000)):
        perf_map.append(b"".join(b"%x %x old%d\n" % (start, size, n) for n in range(20_000)))
    perf_map.append(b"1000 10 newest\n")
    began = time.process_time()
    assert perf_map.lookup([0x1008] * 50) == ["newest"] * 50
    assert time.process_time() - began < 0.5
