from itertools import pairwise
from pathlib import Path

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from necroscope.errors import SourceUnavailable
from necroscope.symbols import kallsyms

MIXED = b"""\
ffffffff81000000 T _stext
ffffffff81000000 T start_here
ffffffff81000100 t local_one
ffffffff81000200 D some_data
ffffffff81000300 W weak_one
ffffffff81000300 t strong_one
ffffffff81000400 t $x
ffffffff81000480 t .L123
ffffffffc0001000 t nf_hook\t[nf_tables]
ffffffffc0002000 t bpf_prog_6deef7357e7b4530_sd_fw\t[bpf]
"""


def lookup_one(text: bytes, address: int) -> tuple[str, str] | None:
    return kallsyms.parse([text]).lookup([address])[0]


def test_symbol_of_a_capture_is_found_by_any_address_in_it(data: Path) -> None:
    text = (data / "kallsyms.txt").read_bytes()
    lines = [line.split() for line in text.splitlines() if b" __pfx_" not in line]
    starts = sorted({int(fields[0], 16) for fields in lines})
    names = {}
    for fields in lines:
        if fields[1] in (b"t", b"T", b"w", b"W"):
            names.setdefault(int(fields[0], 16), set()).add(fields[2].decode())
    symbols = kallsyms.parse([text])
    for start, following in pairwise(starts):
        (found,) = symbols.lookup([min(following - 1, start + 4095)])
        assert (found[0] in names[start]) if start in names else found is None


def test_a_function_ends_where_the_next_symbol_of_any_kind_begins() -> None:
    symbols = kallsyms.parse([MIXED])
    places = [symbols.place(0xFFFFFFFF81000000 + distance) for distance in (0, 0xFF, 0x100, 0x1FF, 0x200, 0x2FF)]
    assert places[0::2] == places[1::2]
    assert len(set(places)) == 3
    assert [place is not None and symbols.symbol(place) for place in places[0::2]] == [
        ("start_here", "[kernel]"),
        ("local_one", "[kernel]"),
        None,
    ]


def test_no_function_is_longer_than_one_can_be() -> None:
    symbols = kallsyms.parse([b"ffffffff81000000 T first\nffffffffc0000000 T far\n"])
    start = 0xFFFFFFFF81000000
    assert symbols.lookup([start + (1 << 20) - 1, start + (1 << 20)]) == [("first", "[kernel]"), None]


def test_a_mangled_name_stays_as_it_is() -> None:
    symbols = kallsyms.parse([b"ffffffff81000000 t _RNvCs1_6binder4poll\t[rust_binder]\n"])
    assert symbols.lookup([0xFFFFFFFF81000000]) == [("_RNvCs1_6binder4poll", "[rust_binder]")]


def test_padding_in_front_of_a_function_is_none() -> None:
    text = b"ffffffff81000000 T one\nffffffff810000f0 t __pfx_two\nffffffff81000100 T two\n"
    assert lookup_one(text, 0xFFFFFFFF810000F4) == ("one", "[kernel]")
    assert lookup_one(text, 0xFFFFFFFF81000104) == ("two", "[kernel]")


@pytest.mark.parametrize(
    "odd",
    [
        *(b"ffffffff81000180 T", b"ffffffff81000180 T ", b"ffffffff8100018 T short", b" fffffff81000180 T space", b"", b"zzz"),
        *(b"ffffffff81000180  T two", b"ffffffff81000180\tT tab", b"gfffffff81000180 T digits", b"\xffffffff81000180 T bytes"),
    ],
    ids=repr,
)
def test_a_line_of_another_form_is_left_out_and_the_others_stay(odd: bytes) -> None:
    symbols = kallsyms.parse([odd + b"\n" + MIXED])
    assert symbols.lookup([0xFFFFFFFF81000184]) == [("local_one", "[kernel]")]
    assert len(symbols) == len(kallsyms.parse([MIXED]))


def test_lines_in_any_order_and_digits_of_any_case_are_the_same() -> None:
    lines = MIXED.splitlines(keepends=True)
    addresses = range(0xFFFFFFFF81000000, 0xFFFFFFFF81000500, 64)
    expected = kallsyms.parse([MIXED]).lookup(addresses)
    assert kallsyms.parse(reversed(lines)).lookup(addresses) == expected
    assert kallsyms.parse([line[:16].upper() + line[16:] for line in lines]).lookup(addresses) == expected


def test_module_and_bpf_program_keep_their_module() -> None:
    assert lookup_one(MIXED, 0xFFFFFFFFC0001004) == ("nf_hook", "[nf_tables]")
    assert lookup_one(MIXED, 0xFFFFFFFFC0002004) == ("bpf_prog_6deef7357e7b4530_sd_fw", "[bpf]")
    assert lookup_one(MIXED, 0xFFFFFFFF81000104) == ("local_one", "[kernel]")


def test_data_is_no_function_and_ends_the_one_before_it() -> None:
    assert lookup_one(MIXED, 0xFFFFFFFF810001FF) == ("local_one", "[kernel]")
    assert lookup_one(MIXED, 0xFFFFFFFF81000204) is None


def test_of_aliases_the_one_without_underscore_and_not_weak_is_shown() -> None:
    assert lookup_one(MIXED, 0xFFFFFFFF81000004) == ("start_here", "[kernel]")
    assert lookup_one(MIXED, 0xFFFFFFFF81000304) == ("strong_one", "[kernel]")


def test_mapping_symbols_and_labels_are_no_functions() -> None:
    assert lookup_one(MIXED, 0xFFFFFFFF81000404) is None
    assert lookup_one(MIXED, 0xFFFFFFFF81000484) is None


def test_addresses_outside_all_symbols_are_unknown() -> None:
    symbols = kallsyms.parse([MIXED])
    assert symbols.lookup([0, 0xFFFFFFFF80FFFFFF, 0xFFFFFFFFC0002000 + (2 << 20)]) == [None, None, None]


def test_blocks_of_lines_give_what_the_whole_text_gives(data: Path) -> None:
    lines = (data / "kallsyms.txt").read_bytes().splitlines(keepends=True)
    addresses = [int(line.split()[0], 16) + 1 for line in lines if line]
    whole = kallsyms.parse([b"".join(lines)]).lookup(addresses)
    assert kallsyms.parse([b"".join(lines[at : at + 7]) for at in range(0, len(lines), 7)]).lookup(addresses) == whole


def test_hidden_addresses_are_said_with_the_sysctl(data: Path) -> None:
    with pytest.raises(SourceUnavailable) as caught:
        kallsyms.parse([(data / "kallsyms_restricted.txt").read_bytes()])
    assert "hidden" in caught.value.facts
    assert "kernel.kptr_restrict" in caught.value.hint
    assert "CAP_SYSLOG" in caught.value.hint


def test_absent_file_is_unavailable(tmp_path: Path) -> None:
    with pytest.raises(SourceUnavailable, match="cannot read /proc/kallsyms"):
        kallsyms.load(tmp_path)


def test_file_is_read_across_its_blocks(tmp_path: Path) -> None:
    lines = [f"{0xFFFFFFFF81000000 + 16 * number:016x} T function_{number}\n" for number in range(60_000)]
    (tmp_path / "proc").mkdir()
    (tmp_path / "proc/kallsyms").write_text("".join(lines))
    symbols = kallsyms.load(tmp_path)
    assert len(symbols) == 60_000
    for number in (0, 29_999, 59_998):
        assert symbols.lookup([0xFFFFFFFF81000000 + 16 * number + 15]) == [(f"function_{number}", "[kernel]")]


@settings(max_examples=100, deadline=None)
@given(st.binary(max_size=300) | st.text("0123456789abcdefTtD \t\n[]", max_size=300).map(str.encode))
def test_no_text_breaks_the_parser(text: bytes) -> None:
    try:
        symbols = kallsyms.parse([MIXED[:40], text])
    except SourceUnavailable:
        return
    symbols.lookup([0, 1, 0xFFFFFFFF81000000])


@pytest.mark.kernel
def test_running_kernel_has_symbols() -> None:
    try:
        symbols = kallsyms.load(Path("/"))
    except SourceUnavailable as error:
        pytest.skip(error.facts)
    assert len(symbols) > 10_000
    assert symbols.size_bytes < 15 << 20


IDLE = b"""\
ffffffff81000000 T _stext
ffffffff81000100 t default_idle
ffffffff81000180 t __pfx_mwait_idle
ffffffff81000190 t mwait_idle
ffffffff81000200 t mwait_idle_with_hints
ffffffff81000300 D poll_idle
ffffffff81000400 W weak_alias
ffffffff81000400 t io_idle
ffffffff81000500 W cpu_do_idle
ffffffff81000500 t something_else
ffffffff81000600 t default_idle
ffffffff81000640 D some_data
ffffffffc0001000 t acpi_safe_halt\t[processor]
ffffffffc0002000 t intel_idle
"""


def test_ranges_of_functions_reach_to_the_next_symbol_and_are_of_the_kernel_itself() -> None:
    names = {"default_idle", "mwait_idle", "poll_idle", "io_idle", "cpu_do_idle", "acpi_safe_halt", "intel_idle", "absent"}
    assert kallsyms.parse([IDLE]).ranges(names) == [
        (0xFFFFFFFF81000100, 0xFFFFFFFF81000190),
        (0xFFFFFFFF81000190, 0xFFFFFFFF81000200),
        (0xFFFFFFFF81000400, 0xFFFFFFFF81000500),
        (0xFFFFFFFF81000600, 0xFFFFFFFF81000640),
        (0xFFFFFFFFC0002000, 0xFFFFFFFFC0102000),
    ]
    assert kallsyms.parse([IDLE]).ranges(()) == []


def test_ranges_are_where_names_are_found(data: Path) -> None:
    """What is in a range has one of the names, and nothing beside it has."""
    symbols = kallsyms.parse([(data / "kallsyms.txt").read_bytes()])
    named = {name for name, module in filter(None, map(symbols.symbol, range(0, len(symbols), 3))) if module == "[kernel]"}
    ranges = symbols.ranges(named)
    assert len(ranges) >= len(named) > 20
    for start, end in ranges:
        inside, last, after = symbols.lookup([start, end - 1, end])
        assert inside is not None
        assert inside == last != after
        assert inside[0] in named
