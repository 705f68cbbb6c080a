"""Text that came from the machine is hostile: decode it, escape what could steer a terminal, bound
its length.
"""

from typing import Final

NAME_LIMIT: Final = 200
LINE_LIMIT: Final = 4096
_CUT_MARK: Final = "…"

# C0 and C1 controls, line and paragraph separators, and the bidirectional marks and overrides that
# make text lie about its order.
_ESCAPES: Final = {
    code: f"\\x{code:02x}" if code < 0x100 else f"\\u{code:04x}"
    for code in (
        *range(0x20),
        *range(0x7F, 0xA0),
        0x61C,
        0x200E,
        0x200F,
        *range(0x2028, 0x202F),
        *range(0x2066, 0x206A),
    )
}


def clean(raw: bytes | str, limit: int = NAME_LIMIT) -> str:
    """A printable, bounded form of a name or line; bytes that are not UTF-8 stay readable as
    \\xNN.
    """
    text = raw.decode("utf-8", "backslashreplace") if isinstance(raw, bytes) else raw
    if not text.isprintable():
        text = text.translate(_ESCAPES).encode("utf-8", "backslashreplace").decode("utf-8")
    return text if len(text) <= limit else text[: limit - 1] + _CUT_MARK
