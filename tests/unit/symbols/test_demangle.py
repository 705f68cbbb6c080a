import time

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from necroscope.symbols import demangle as module
from necroscope.symbols.demangle import demangle
from necroscope.symbols.symbol_names import plain

DIGITS = "0123456789ABCDEFGHIJKLMNOPQRSTUVWXYZ"


def cxx_bomb(levels: int) -> bytes:
    """X<S,S> of X<S,S> of ...: each level doubles the text."""
    reference = [
        "S_",
        *(f"S{DIGITS[at]}_" for at in range(36)),
        *(f"S1{DIGITS[at]}_" for at in range(36)),
    ]
    return (
        "_Z1f1XIiiE" + "".join(f"S_I{reference[level] * 2}E" for level in range(1, levels))
    ).encode()


def rust_bomb(levels: int) -> bytes:
    """((a, a), (a, a)) by back references, each level doubling the text."""
    digits = "0123456789abcdefghijklmnopqrstuvwxyzABCDEFGHIJKLMNOPQRSTUVWXYZ"

    def base62(value: int) -> str:
        return "_" if value == 0 else (_number(value - 1) + "_")

    def _number(value: int) -> str:
        return (_number(value // 62) if value >= 62 else "") + digits[value % 62]

    text = "INvC1a1f"
    place = len(text)
    text += "TuuE"
    for _ in range(levels):
        here = len(text)
        text += "T" + f"B{base62(place)}" * 2 + "E"
        place = here
    return f"_R{text}E".encode()


@pytest.mark.parametrize(
    ("mangled", "readable"),
    [
        (b"memcpy", "memcpy"),
        (b"main.(*Server).Serve", "main.(*Server).Serve"),
        (b"_ZN4core3fmt9Formatter3pad17h1234567890abcdefE", "core::fmt::Formatter::pad"),
        (b"_ZN4core3fmt9Formatter3pad17h1234567890abcdefE.llvm.123", "core::fmt::Formatter::pad"),
        (
            b"_ZN66_$LT$alloc..vec..Vec$LT$T$GT$$u20$as$u20$core..ops..drop..Drop$GT$4drop17h0123456789abcdefE",
            "<alloc::vec::Vec<T> as core::ops::drop::Drop>::drop",
        ),
        (b"_RNvCs1234_7mycrate3foo", "mycrate::foo"),
        (b"_RNCNvCs1234_7mycrate3foo0B3_", "mycrate::foo::{closure#0}"),
        (b"_RINvCs1234_7mycrate3fooyE", "mycrate::foo::<u64>"),
    ],
)
def test_name_is_readable(mangled: bytes, readable: str) -> None:
    assert demangle(mangled) == readable


def test_cxx_name_is_readable() -> None:
    if module._cxx_demangler() is None:
        pytest.skip("no libstdc++ on this machine")
    assert (
        demangle(b"_ZNSt6vectorIiSaIiEE9push_backERKi")
        == "std::vector<int, std::allocator<int> >::push_back(int const&)"
    )
    assert demangle(b"_ZN3foo3barEv.isra.0") == "foo::bar() [clone .isra.0]"


def test_without_libstdcxx_the_name_stays(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(module, "_cxx_demangler", lambda: None)
    assert module.demangle.__wrapped__(b"_ZN3foo3quxEv") == "_ZN3foo3quxEv"


@pytest.mark.parametrize(
    "bomb",
    [
        cxx_bomb(60),
        rust_bomb(60),
        b"_RINvC1a1fFGzzzzzzz_EuE",
        b"_R" + b"I" * 1000,
        b"_R" + b"Nv" * 500,
        b"_Z" + b"P" * 1000 + b"i",
        b"_ZN" + b"9" * 800 + b"17h0123456789abcdefE",
        b"_Z" + b"A" * 100_000,
    ],
    ids=[
        "cxx references",
        "rust references",
        "lifetimes",
        "generics",
        "paths",
        "pointers",
        "lengths",
        "length",
    ],
)
def test_bomb_is_left_as_it_is_and_costs_little(bomb: bytes) -> None:
    start_s = time.process_time()
    assert len(demangle(bomb)) <= module.FUNCTION_LIMIT
    assert time.process_time() - start_s < 1


def test_bombs_below_the_limits_are_what_they_seem() -> None:
    assert demangle(cxx_bomb(4)).startswith("f(X<int, int>, X<")
    assert demangle(rust_bomb(2)).startswith("a::f::<((), ())")


def test_escapes_are_made_visible() -> None:
    assert demangle(b"evil\x1b[31m") == "evil\\x1b[31m"


def test_libraries_do_not_print(capfd: pytest.CaptureFixture[str]) -> None:
    demangle(b"_RINvC1a1fRL9_uE")
    demangle(b"_RINvC1a1fKb5_E")
    assert capfd.readouterr().out == ""


@settings(max_examples=100, deadline=None)
@given(
    st.sampled_from([b"_R", b"_RNv", b"_RINvC1a", b"_Z", b"_ZN", b"_ZN3foo"]),
    st.binary(max_size=60) | st.text("0123456789_EBNvCTRLGIKS$.h", max_size=80).map(str.encode),
)
def test_no_name_breaks_it(prefix: bytes, rest: bytes) -> None:
    assert isinstance(demangle(prefix + rest), str)


@pytest.mark.parametrize(
    "name", [b"main", b"_ZN3foo3barEv", b"_R" + b"x" * 900, b"\xff\x1b", b"x" * 500]
)
def test_a_symbol_that_passed_as_it_is_demangles_to_the_same(name: bytes) -> None:
    passed = plain(name)
    assert "\n" not in passed
    assert demangle(passed.encode()) == demangle(name)
