"""C++ and Rust names as people write them, by libraries: libstdc++ for C++, rust-demangler for
Rust.

Names come from other people's files. Both libraries can be made to run forever by a short name
whose references unfold exponentially, so references (C++) and steps (Rust) are bounded; a name
beyond the bounds is left as it is.
"""

import re
from contextlib import suppress
from ctypes import CDLL, POINTER, byref, c_char_p, c_int, c_void_p, string_at
from functools import cache, lru_cache
from typing import Any, Final

from necroscope.model.names import clean
from necroscope.symbols.symbol_names import FUNCTION_LIMIT, MANGLED, MANGLED_LIMIT

# Two references a level double the text: 32 make 1.1 MB in 8 ms. Of libLLVM's 36,115 C++ names 3
# have more.
_REFERENCES_LIMIT: Final = 32
_REFERENCE: Final = re.compile(r"S[0-9A-Z]*_|T[0-9]*_")
_LEGACY_RUST: Final = re.compile(r"(_ZN.*17h[0-9a-f]{16}E)(?:\.|$)", re.DOTALL)


@lru_cache(maxsize=8192)
def demangle(name: bytes) -> str:
    """The readable form of a symbol, cleaned and bounded."""
    text = name.decode("utf-8", "backslashreplace")
    if text.startswith(MANGLED) and len(text) <= MANGLED_LIMIT:
        # The libraries answer a malformed name with any exception there is; then the symbol itself
        # is the answer.
        with suppress(Exception):
            text = _demangle(text) or text
    return clean(text, FUNCTION_LIMIT)


def _demangle(text: str) -> str:
    # Loading the libraries takes longer than all the rest of a look-up: only for those who have
    # such names.
    legacy = _LEGACY_RUST.match(text)
    if legacy or text.startswith("_R"):
        from necroscope.symbols import demangle_rust  # noqa: PLC0415

        return (
            demangle_rust.demangle_legacy(legacy[1])
            if legacy
            else demangle_rust.demangle_v0(text[2:])
        )
    if len(_REFERENCE.findall(text)) > _REFERENCES_LIMIT:
        return text
    return _demangle_cxx(text)


@cache
def _cxx_demangler() -> Any:
    """`__cxa_demangle` of the C++ ABI, which allocates its answer."""
    for name in ("libstdc++.so.6", "libc++.so.1", "libc++.1.dylib"):
        with suppress(OSError, AttributeError):
            function = CDLL(name)["__cxa_demangle"]
            function.restype, function.argtypes = (
                c_void_p,
                (c_char_p, c_void_p, c_void_p, POINTER(c_int)),
            )
            return function
    return None


def _demangle_cxx(text: str) -> str:
    demangler, status = _cxx_demangler(), c_int()
    found = demangler(text.encode(), None, None, byref(status)) if demangler is not None else None
    if not found:
        return text
    try:
        return string_at(found).decode("utf-8", "backslashreplace")
    finally:
        _free(found)


@cache
def _libc() -> Any:
    libc = CDLL(None)
    libc.free.restype, libc.free.argtypes = None, (c_void_p,)
    return libc


def _free(pointer: int) -> None:
    _libc().free(pointer)
