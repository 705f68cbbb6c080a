"""How much memory reading a recording may take, for systems that cannot limit it too."""

import os
import sys
from collections.abc import Iterator
from contextlib import contextmanager
from typing import Final

from necroscope.errors import CorruptData
from necroscope.model.units import format_bytes, parse_bytes

_VARIABLE: Final = "NECROSCOPE_MEMORY"
# An hour of 96 cores is judged in 400 MiB.
_DEFAULT_BYTES: Final = 1 << 30


def memory_limit_bytes() -> int:
    text = os.environ.get(_VARIABLE)
    return parse_bytes(text) if text else _DEFAULT_BYTES


def out_of_memory() -> CorruptData:
    """The limit as an error with a way out."""
    return CorruptData(
        f"reading this recording takes more than {format_bytes(memory_limit_bytes())} of memory",
        f"a shorter window, or, if you trust who made it: {_VARIABLE}=4GiB necroscope ...",
    )


@contextmanager
def unconfined() -> Iterator[None]:
    """A browser that is started in here has the memory that the user gave it."""
    if sys.platform != "linux":
        yield
        return
    import resource  # noqa: PLC0415 - not every system has it

    soft, hard = resource.getrlimit(resource.RLIMIT_DATA)
    resource.setrlimit(resource.RLIMIT_DATA, (hard, hard))
    try:
        yield
    finally:
        resource.setrlimit(resource.RLIMIT_DATA, (soft, hard))
