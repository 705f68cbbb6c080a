"""Which samples and frames are those that a selection asks for."""

from typing import Final

import numpy as np
import pyarrow as pa

from necroscope.errors import UsageError
from necroscope.stacks.samples import flags_of, narrow_numbers
from necroscope.stacks.tree import Flags
from necroscope.store.selection import Selection

_EXPRESSIONS: Final = (
    "escape ( [ * + ? . with a backslash; look-around and back-references are not supported (the"
    " syntax is that of RE2)"
)


def check_expression(expression: str) -> None:
    """UsageError if it is not a valid regular expression."""
    try:
        _found(expression, pa.array([""]))
    except (pa.ArrowInvalid, UnicodeEncodeError) as error:
        raise UsageError(
            f"{expression!r} is not a valid regular expression: {error}", _EXPRESSIONS
        ) from None


def passing(selection: Selection, samples: pa.Table) -> Flags:
    """Samples that pass all but states and frames, which need stacks."""
    wanted = np.ones(samples.num_rows, dtype=np.bool_)
    chosen = (("cpu", selection.cpus), ("pid", selection.pids), ("tid", selection.tids))
    for column, values in chosen:
        if values is not None:
            wanted &= np.isin(narrow_numbers(samples, column), list(values))
    if selection.comms is not None:
        wanted &= flags_of(samples.column("comm"), selection.comms.__contains__)
    if selection.cgroup is not None:
        top = selection.cgroup.rstrip("/")
        wanted &= flags_of(
            samples.column("cgroup"), lambda path: path == top or path.startswith(f"{top}/")
        )
    return wanted


def matching(expression: str, frames: pa.Table) -> Flags:
    """Frames that match, with one more, False, for a frame that is lost."""
    names = (frames.column(name).cast(pa.string()) for name in ("function", "module"))
    in_function, in_module = (_found(expression, texts) for texts in names)
    return np.append(in_function | in_module, False)


def _found(expression: str, texts: pa.Array | pa.ChunkedArray) -> Flags:
    """Which of these texts it is found in; never in one that is null."""
    import pyarrow.compute as pc  # noqa: PLC0415 - only for who asks for frames: it takes long to load

    return np.asarray(
        pc.match_substring_regex(texts, pattern=expression).fill_null(False), dtype=np.bool_
    )
