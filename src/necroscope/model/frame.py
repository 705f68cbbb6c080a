"""A frame of a call stack: what a row of `frames` says without its number."""

from typing import Final, NamedTuple


class Frame(NamedTuple):
    """The identity by which frames are the same function; without a symbol it is the module and the offset."""

    function: str | None
    module: str
    kind: str
    offset: int | None
    build_id: str | None


UNKNOWN_USER: Final = Frame(None, "[unknown]", "user", None, None)
