"""Rows of the core as the buffers of `samples` and `stacks`, in Arrow's layout: they never become
Python objects one by one.
"""

from array import array
from collections.abc import Sequence
from itertools import accumulate
from typing import Final

from necroscope.model.names import clean
from necroscope.model.reading import ColumnBuffers
from necroscope.profile.core import Core

_ALL_VALID: Final = b""


def sample_columns(core: Core, cgroup_paths: Sequence[str]) -> ColumnBuffers | None:
    """None if there is no row. The order is that of the table's columns."""
    count = core.row_count
    if not count:
        return None
    rows = core.view.rows.contents
    has_cgroup = (
        core.column("has_cgroup", 1)[: (count + 7) // 8] if rows.without_cgroup else _ALL_VALID
    )
    names = [readable_name(name) for name in core.names()]
    cgroups = [cgroup_paths[number] for number in core.cgroups()] or [""]
    numbers = (
        core.column(name, width)
        for name, width in (("time", 8), ("cpu", 2), ("pid", 4), ("tid", 4))
    )
    return columns_of(
        count,
        (*numbers, core.column("name", 4)),
        names,
        (has_cgroup, core.column("cgroup", 4)),
        cgroups,
        (core.column("stack", 4), b"\1\0\0\0" * count),
    )


def columns_of(
    count: int,
    times_to_names: Sequence[bytes],
    names: Sequence[str],
    cgroup: tuple[bytes, bytes],
    cgroups: Sequence[str],
    stacks_and_weights: tuple[bytes, bytes],
) -> ColumnBuffers:
    """Times, cores, pids, tids and names; which rows have a cgroup, and which; stacks and
    weights.
    """
    times, cpus, pids, tids, name_numbers = times_to_names
    stacks, weights = stacks_and_weights
    plain = (buffer for column in (times, cpus, pids, tids) for buffer in (_ALL_VALID, column))
    named = (_ALL_VALID, name_numbers, *_texts(names))
    return ColumnBuffers(
        count, (*plain, *named, *cgroup, *_texts(cgroups), _ALL_VALID, stacks, _ALL_VALID, weights)
    )


def stack_columns(core: Core, first: int) -> ColumnBuffers | None:
    """The segment's stacks from a number on; None if there is none."""
    count = core.view.node_count - first
    if count <= 0:
        return None
    parents, frames = core.stacks(first)
    numbers = array("i", range(first, first + count)).tobytes()
    return ColumnBuffers(count, (_ALL_VALID, numbers, _ALL_VALID, parents, _ALL_VALID, frames))


def readable_name(raw: bytes) -> str:
    """A task's name as it is shown."""
    return clean(raw) or "[empty]"


def _texts(texts: Sequence[str]) -> tuple[bytes, bytes]:
    """Offsets and bytes of a dictionary of texts."""
    encoded = [text.encode("utf-8", "backslashreplace") for text in texts]
    return array("i", accumulate(map(len, encoded), initial=0)).tobytes(), b"".join(encoded)
