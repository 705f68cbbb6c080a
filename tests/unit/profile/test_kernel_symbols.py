import socket
from collections.abc import Iterable
from itertools import pairwise, permutations
from pathlib import Path
from threading import Thread

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from necroscope.errors import SourceUnavailable
from necroscope.profile.kernel_symbols import KernelSymbols, read
from necroscope.symbols.messages import BLOCK_BITS, unpack_block

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


DATA = Path(__file__).parents[2] / "data" / "symbols"
BASE = 0xFFFFFFFF81000000
LONGEST = 1 << 20


@pytest.fixture
def data() -> Path:
    return DATA


def functions_between(symbols: KernelSymbols, low: int, high: int) -> list[tuple[int, bytes]]:
    """Where which function begins, as the blocks give it."""
    found = [(low, b"")]
    for block in range(low >> BLOCK_BITS, (high - 1 >> BLOCK_BITS) + 1):
        for start, name in unpack_block(symbols.block(block)):
            at = max((block << BLOCK_BITS) + start, low)
            if at >= high:
                break
            if at == found[-1][0]:
                found[-1] = at, name
            elif name != found[-1][1]:
                found.append((at, name))
    return found


def parse(pieces: Iterable[bytes]) -> KernelSymbols:
    """Handed out piece by piece, as the kernel does it: each read of such a socket gives one."""
    ours, theirs = socket.socketpair(socket.AF_UNIX, socket.SOCK_SEQPACKET)
    sender = Thread(target=_send, args=(theirs, list(pieces)))
    sender.start()
    with ours:
        try:
            return KernelSymbols(ours.fileno())
        finally:
            sender.join()


def _send(to: socket.socket, pieces: list[bytes]) -> None:
    with to:
        for piece in pieces:
            for at in range(0, len(piece), 4000):
                to.send(piece[at : at + 4000])


def find(symbols: KernelSymbols, address: int) -> bytes:
    """Name of the function around an address, as its block gives it, with its module behind a tab;
    empty if there is none.
    """
    low = address >> BLOCK_BITS << BLOCK_BITS
    functions = functions_between(symbols, low, low + (1 << BLOCK_BITS))
    starts = [start for start, _ in functions]
    assert starts[0] == low
    assert starts == sorted(set(starts))
    assert starts[-1] < low + (1 << BLOCK_BITS)
    return next(name for start, name in reversed(functions) if start <= address)


def find_one(text: bytes, address: int) -> bytes:
    return find(parse([text]), address)


def test_symbol_of_a_capture_is_found_by_any_address_in_it(data: Path) -> None:
    text = (data / "kallsyms.txt").read_bytes()
    lines = [line.split() for line in text.splitlines() if b" __pfx_" not in line]
    starts = sorted({int(fields[0], 16) for fields in lines})
    names = {}
    for fields in lines:
        if fields[1] in (b"t", b"T", b"w", b"W"):
            names.setdefault(int(fields[0], 16), set()).add(b"\t".join(fields[2:]))
    symbols = parse([text])
    for start, following in pairwise(starts):
        for address in (start, min(following - 1, start + 4095)):
            assert find(symbols, address) in names.get(start, {b""})


def test_a_function_ends_where_the_next_symbol_of_any_kind_begins() -> None:
    symbols = parse([MIXED])
    assert functions_between(symbols, BASE, BASE + 0x300) == [
        (BASE, b"start_here"),
        (BASE + 0x100, b"local_one"),
        (BASE + 0x200, b""),
    ]


def test_no_function_is_longer_than_one_can_be() -> None:
    symbols = parse([b"ffffffff81000000 T first\nffffffffc0000000 T far\n"])
    assert [find(symbols, BASE + LONGEST - 1), find(symbols, BASE + LONGEST)] == [b"first", b""]
    # Where it ends within what is asked for, and where what is asked for is longer than any
    # function.
    end = BASE + LONGEST
    assert functions_between(symbols, end - 16, end + 16) == [(end - 16, b"first"), (end, b"")]
    assert functions_between(symbols, BASE, end + 16) == [(BASE, b"first"), (end, b"")]
    assert functions_between(symbols, end, end + 16) == [(end, b"")]


def test_where_a_function_must_have_ended_the_next_one_may_have_begun() -> None:
    end = BASE + LONGEST
    symbols = parse([b"%016x T first\n%016x T second\n" % (BASE, end - 8)])
    assert functions_between(symbols, end - 16, end + 16) == [
        (end - 16, b"first"),
        (end - 8, b"second"),
    ]


def test_of_several_symbols_before_a_block_the_best_is_shown_in_it() -> None:
    lines = [b"%016x W weak\n" % BASE, b"%016x T best\n" % BASE, b"%016x t _local\n" % BASE]
    for order in permutations(lines):
        symbols = parse([b"".join(order)])
        assert functions_between(symbols, BASE, BASE + 16) == [(BASE, b"best")]
        assert functions_between(symbols, BASE + 8, BASE + 16) == [(BASE + 8, b"best")]


def test_a_symbol_belongs_to_what_is_asked_for_from_its_first_byte_on() -> None:
    symbols = parse([MIXED])
    assert functions_between(symbols, BASE - 16, BASE) == [(BASE - 16, b"")]
    assert functions_between(symbols, BASE - 16, BASE + 1) == [
        (BASE - 16, b""),
        (BASE, b"start_here"),
    ]


def test_without_symbols_nothing_is_known() -> None:
    symbols = parse([])
    assert functions_between(symbols, BASE, BASE + 16) == [(BASE, b"")]
    assert symbols.ranges(["schedule"]) == []
    assert symbols.core_text == (0, 0)


@settings(max_examples=200, deadline=None)
@given(
    st.lists(st.tuples(st.integers(0, 300), st.sampled_from("tTWD")), max_size=12),
    st.integers(0, 300),
    st.integers(1, 300),
)
def test_a_range_gives_every_address_the_last_symbol_before_it(
    drawn: list[tuple[int, str]], low: int, length: int
) -> None:
    """Symbols 64 KiB apart, so that some functions end because they are too long, and several begin
    at one address.
    """
    step = 1 << 16
    text = "".join(f"{step * place + 1:016x} {kind} f_{place}\n" for place, kind in drawn).encode()
    symbols = parse([text])
    found = functions_between(symbols, step * low, step * (low + length))
    assert found[0][0] == step * low
    assert all(one < other for (one, _), (other, _) in pairwise(found))
    for place in range(low, low + length):
        address = step * place + 2
        before = max((begin for begin, _ in drawn if begin <= place), default=None)
        is_function = (
            before is not None
            and before + 16 > place
            and any(kind != "D" for begin, kind in drawn if begin == before)
        )
        expected = b"f_%d" % before if is_function else b""
        assert next(name for start, name in reversed(found) if start <= address) == expected


def test_a_mangled_name_stays_as_it_is() -> None:
    text = b"ffffffff81000000 t _RNvCs1_6binder4poll\t[rust_binder]\n"
    assert find_one(text, BASE) == b"_RNvCs1_6binder4poll\t[rust_binder]"


def test_padding_in_front_of_a_function_is_none() -> None:
    text = b"ffffffff81000000 T one\nffffffff810000f0 t __pfx_two\nffffffff81000100 T two\n"
    assert find_one(text, 0xFFFFFFFF810000F4) == b"one"
    assert find_one(text, 0xFFFFFFFF81000104) == b"two"


@pytest.mark.parametrize(
    "odd",
    [
        *(
            b"ffffffff81000180 T",
            b"ffffffff81000180 T ",
            b"ffffffff8100018 T short",
            b" fffffff81000180 T space",
            b"",
            b"zzz",
        ),
        *(
            b"ffffffff81000180  T two",
            b"ffffffff81000180\tT tab",
            b"gfffffff81000180 T digits",
            b"\xffffffff81000180 T bytes",
        ),
    ],
    ids=repr,
)
def test_a_line_of_another_form_is_left_out_and_the_others_stay(odd: bytes) -> None:
    symbols = parse([odd + b"\n" + MIXED])
    assert find(symbols, 0xFFFFFFFF81000184) == b"local_one"
    assert len(symbols) == len(parse([MIXED]))


def test_lines_in_any_order_and_digits_of_any_case_are_the_same() -> None:
    lines = MIXED.splitlines(keepends=True)
    expected = functions_between(parse([MIXED]), BASE, BASE + 0x500)
    assert len(expected) == 5
    assert functions_between(parse(reversed(lines)), BASE, BASE + 0x500) == expected
    assert (
        functions_between(
            parse([line[:16].upper() + line[16:] for line in lines]), BASE, BASE + 0x500
        )
        == expected
    )


def test_module_and_bpf_program_keep_their_module_behind_a_tab() -> None:
    assert find_one(MIXED, 0xFFFFFFFFC0001004) == b"nf_hook\t[nf_tables]"
    assert find_one(MIXED, 0xFFFFFFFFC0002004) == b"bpf_prog_6deef7357e7b4530_sd_fw\t[bpf]"
    assert find_one(MIXED, 0xFFFFFFFF81000104) == b"local_one"


def test_data_is_no_function_and_ends_the_one_before_it() -> None:
    assert find_one(MIXED, 0xFFFFFFFF810001FF) == b"local_one"
    assert find_one(MIXED, 0xFFFFFFFF81000204) == b""


def test_of_aliases_the_one_without_underscore_and_not_weak_is_shown() -> None:
    assert find_one(MIXED, 0xFFFFFFFF81000004) == b"start_here"
    assert find_one(MIXED, 0xFFFFFFFF81000304) == b"strong_one"


def test_mapping_symbols_and_labels_are_no_functions() -> None:
    assert find_one(MIXED, 0xFFFFFFFF81000404) == b""
    assert find_one(MIXED, 0xFFFFFFFF81000484) == b""


def test_addresses_outside_all_symbols_are_unknown() -> None:
    symbols = parse([MIXED])
    outside = (0, 0xFFFFFFFF80FFFFFF, 0xFFFFFFFFC0002000 + (2 << 20), (1 << 64) - 1)
    assert {find(symbols, address) for address in outside} == {b""}


def test_blocks_of_lines_give_what_the_whole_text_gives(data: Path) -> None:
    lines = (data / "kallsyms.txt").read_bytes().splitlines(keepends=True)
    addresses = [int(line.split()[0], 16) for line in lines]
    whole = functions_between(parse([b"".join(lines)]), min(addresses), max(addresses) + 1)
    parts = parse([b"".join(lines[at : at + 7]) for at in range(0, len(lines), 7)])
    assert functions_between(parts, min(addresses), max(addresses) + 1) == whole
    assert len(whole) > 100


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
ffffffff81000700 T _etext
ffffffffc0001000 t acpi_safe_halt\t[processor]
ffffffffc0002000 t intel_idle
"""


def test_ranges_of_functions_reach_to_the_next_symbol_and_are_of_the_kernel_itself() -> None:
    names = {
        "default_idle",
        "mwait_idle",
        "poll_idle",
        "io_idle",
        "cpu_do_idle",
        "acpi_safe_halt",
        "intel_idle",
        "absent",
    }
    assert parse([IDLE]).ranges(names) == [
        (0xFFFFFFFF81000100, 0xFFFFFFFF81000190),
        (0xFFFFFFFF81000190, 0xFFFFFFFF81000200),
        (0xFFFFFFFF81000400, 0xFFFFFFFF81000500),
        (0xFFFFFFFF81000600, 0xFFFFFFFF81000640),
        (0xFFFFFFFFC0002000, 0xFFFFFFFFC0102000),
    ]
    assert parse([IDLE]).ranges(()) == []


def test_ranges_are_where_functions_of_those_names_are(data: Path) -> None:
    """What is in a range has one of the names, and nothing beside it has."""
    lines = (data / "kallsyms.txt").read_bytes().splitlines(keepends=True)
    addresses = [int(line.split()[0], 16) for line in lines]
    symbols = parse(lines)
    functions = functions_between(symbols, min(addresses), max(addresses) + 1)
    names = {name for _, name in functions[::3] if name and b"\t" not in name}
    ranges = symbols.ranges(name.decode() for name in names)
    assert len(ranges) >= len(names) > 20
    assert [start for start, _ in ranges] == [start for start, name in functions if name in names]
    for start, end in ranges:
        assert find(symbols, start) == find(symbols, end - 1) != find(symbols, end)


def test_text_of_the_kernel_itself_reaches_from_its_first_function_to_behind_its_last() -> None:
    assert parse([IDLE]).core_text == (0xFFFFFFFF81000000, 0xFFFFFFFF81000700)
    assert parse([MIXED]).core_text == (0, 0), "it does not say where the text ends"


def test_only_a_whole_name_without_a_module_is_a_symbol_of_the_kernel_itself() -> None:
    lines = [
        b"%016x T %s\n" % (number << 4, name)
        for number, name in enumerate((b"odd x", b"not_x", b"x\t[m]", b"x", b"y"), 1)
    ]
    symbols = parse(lines)
    assert symbols.address_of("x") == 0x40
    assert symbols.ranges(["x"]) == [(0x40, 0x50)]
    assert symbols.address_of("absent") is None


def test_hidden_addresses_are_said_with_the_sysctl(data: Path) -> None:
    with pytest.raises(SourceUnavailable) as caught:
        parse([(data / "kallsyms_restricted.txt").read_bytes()])
    assert "hidden" in caught.value.facts
    assert "kernel.kptr_restrict" in caught.value.hint
    assert "CAP_SYSLOG" in caught.value.hint


def test_absent_file_is_unavailable(tmp_path: Path) -> None:
    with pytest.raises(SourceUnavailable, match=r"cannot read .*/proc/kallsyms"):
        read(tmp_path / "proc/kallsyms")


def test_file_is_read_across_its_blocks(tmp_path: Path) -> None:
    lines = [
        f"{0xFFFFFFFF81000000 + 16 * number:016x} T function_{number}\n" for number in range(60_000)
    ]
    (tmp_path / "proc").mkdir()
    (tmp_path / "proc/kallsyms").write_text("".join(lines))
    symbols = read(tmp_path / "proc/kallsyms")
    assert len(symbols) == 60_000
    for number in (0, 29_999, 59_998):
        assert find(symbols, 0xFFFFFFFF81000000 + 16 * number + 15) == b"function_%d" % number


@settings(max_examples=100, deadline=None)
@given(
    st.binary(max_size=300) | st.text("0123456789abcdefTtD \t\n[]", max_size=300).map(str.encode)
)
def test_no_text_breaks_the_parser(text: bytes) -> None:
    try:
        symbols = parse([MIXED[:40], text])
    except SourceUnavailable:
        return
    for address in (0, 1, BASE):
        find(symbols, address)
    symbols.ranges(["T", "a", "0"])
    assert symbols.core_text == (0, 0)


@pytest.mark.kernel
def test_running_kernel_has_symbols() -> None:
    try:
        symbols = read(Path("/proc/kallsyms"))
    except SourceUnavailable as error:
        pytest.skip(error.facts)
    assert len(symbols) > 10_000
    start, end = symbols.core_text
    ((schedule, _),) = symbols.ranges(["schedule"])
    assert start < schedule < end
    assert find(symbols, schedule + 1) == b"schedule"
