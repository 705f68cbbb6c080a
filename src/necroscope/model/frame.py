"""A frame of a call stack: what a row of `frames` says without its number."""

from typing import Final, NamedTuple


class Frame(NamedTuple):
    """The identity by which frames are the same function; without a symbol it is the module and the
    offset.

    `kind` is kernel, user or jit; in a flame graph also group, of a label that stands for some
    samples.
    """

    function: str | None
    module: str
    kind: str
    offset: int | None
    build_id: str | None

    @property
    def name(self) -> str:
        return frame_name(self.function, self.module, self.offset)


def frame_name(function: str | None, module: str, offset: int | None) -> str:
    """The function; without a symbol `libc.so.6+0x1f3a0`, which a symboliser can still look up."""
    if function:
        return function
    file = module.rsplit("/", 1)[-1] or module or "[unknown]"
    # Kernel addresses are stored as int64: those of the upper half are negative.
    return file if offset is None else f"{file}+{offset & 0xFFFF_FFFF_FFFF_FFFF:#x}"


UNKNOWN_USER: Final = Frame(None, "[unknown]", "user", None, None)
