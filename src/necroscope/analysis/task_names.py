"""What tasks are called: one whose name was not seen is sampled as `:PID`, which is not a name to
act on.
"""

import re
from typing import Final

_NOT_SEEN: Final = re.compile(r":(\d+)")
_SHOWN: Final = re.compile(r"pid \d+ \(name not seen\)")


def shown_name(comm: str) -> str:
    """The name, or `pid 29838 (name not seen)`."""
    number = _NOT_SEEN.fullmatch(comm)
    return f"pid {number[1]} (name not seen)" if number else comm


def is_name(comm: str | None) -> bool:
    """Whether a program of this name can be looked for."""
    return bool(comm) and _SHOWN.fullmatch(comm or "") is None
