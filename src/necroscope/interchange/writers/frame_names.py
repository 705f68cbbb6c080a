"""What a frame is called where a format has room for one name only."""


def frame_name(function: str | None, module: str, offset: int | None) -> str:
    """The function; without a symbol `libc.so.6+0x1f3a0`, which a symboliser can still look up."""
    if function:
        return function
    file = module.rsplit("/", 1)[-1] or module or "[unknown]"
    # Kernel addresses are stored as int64: those of the upper half are negative.
    return file if offset is None else f"{file}+{offset & 0xFFFF_FFFF_FFFF_FFFF:#x}"
