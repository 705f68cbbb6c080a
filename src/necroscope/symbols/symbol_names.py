"""Names of symbols as the linker has them, made harmless; `demangle` makes those of C++ and Rust
readable.
"""

from typing import Final

from necroscope.model.names import clean

# How symbols of C++ and of Rust begin.
MANGLED: Final = ("_Z", "_R")
MANGLED_LIMIT: Final = 1024
FUNCTION_LIMIT: Final = 200


def plain(name: bytes) -> str:
    """The symbol as it is, cleaned and bounded."""
    text = name.decode("utf-8", "backslashreplace")
    return clean(text, MANGLED_LIMIT if text.startswith(MANGLED) else FUNCTION_LIMIT)
