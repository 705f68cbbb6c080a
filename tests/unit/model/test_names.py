"""Names from the machine cannot steer a terminal, lie about their order, or be without end."""

import pytest

from necroscope.model.names import LINE_LIMIT, NAME_LIMIT, clean


def test_a_plain_name_stays_as_it_is() -> None:
    assert clean("kworker/0:1H-kblockd") == clean(b"kworker/0:1H-kblockd") == "kworker/0:1H-kblockd"
    assert clean("жуткий-λ-名前") == "жуткий-λ-名前"


def test_an_escape_sequence_becomes_visible() -> None:
    assert clean(b"\x1b]0;owned\x07\x1b[31mred\n") == "\\x1b]0;owned\\x07\\x1b[31mred\\x0a"


def test_c1_controls_that_terminals_obey_are_escaped() -> None:
    assert clean("\x9b31m") == "\\x9b31m"


def test_bytes_that_are_not_utf_8_stay_readable() -> None:
    assert clean(b"caf\xe9 \xff") == "caf\\xe9 \\xff"


def test_lone_surrogates_can_be_encoded_afterwards() -> None:
    assert clean("bad\udce9name\ud800") == "bad\\udce9name\\ud800"
    clean("\udcff").encode("utf-8")


@pytest.mark.parametrize(
    "mark", ["\u202e", "\u202a", "\u2066", "\u2069", "\u200f", "\u061c", "\u2028"]
)
def test_marks_that_change_the_order_of_text_are_escaped(mark: str) -> None:
    assert clean(f"exe{mark}gnp") == f"exe\\u{ord(mark):04x}gnp"


@pytest.mark.parametrize("raw", [b"a" * 10_000, "a" * 10_000, b"\x1b" * 10_000, b"\xff" * 10_000])
def test_a_name_is_cut_at_its_limit_and_says_so(raw: bytes | str) -> None:
    cut = clean(raw)
    assert len(cut) == NAME_LIMIT
    assert cut.endswith("…")
    assert len(clean(raw, LINE_LIMIT)) == LINE_LIMIT


def test_a_name_of_just_the_limit_is_not_cut() -> None:
    assert clean("a" * NAME_LIMIT) == "a" * NAME_LIMIT


def test_an_empty_name_stays_empty() -> None:
    assert clean(b"") == clean("") == ""


@pytest.mark.parametrize("code", [*range(0x100), 0x202E, 0xD800, 0xFEFF, 0xFFFF, 0x10FFFF])
def test_whatever_comes_in_no_control_comes_out(code: int) -> None:
    text = clean(chr(code))
    assert not any(ord(character) < 0x20 or 0x7F <= ord(character) < 0xA0 for character in text)
    text.encode("utf-8")
