"""Runs of call chains: from one context mark to the next all addresses are of one kind (perf_event.h, PERF_CONTEXT_*)."""

from typing import Final, NamedTuple

import numpy as np
import numpy.typing as npt

from necroscope.interchange.perf_data.stream import Places, Words
from necroscope.perf_abi.event_attr import CONTEXT_HV, CONTEXT_KERNEL, CONTEXT_MAX, CONTEXT_USER
from necroscope.perf_abi.sample_layout import CONTEXT_GUEST_USER

KERNEL: Final = 0
USER: Final = 1
GUEST: Final = 2
GUEST_USER: Final = 3
UPPER_HALF: Final = np.uint64(1 << 63)
_KINDS: Final = ((CONTEXT_KERNEL, KERNEL), (CONTEXT_HV, KERNEL), (CONTEXT_USER, USER), (CONTEXT_GUEST_USER, GUEST_USER))


class Runs(NamedTuple):
    """Of each word whether it is a mark, and its kind; the places of innermost addresses; how many marks each chain has."""

    is_mark: npt.NDArray[np.bool_]
    kinds: npt.NDArray[np.int8]
    innermost: Places
    marks: Places


def runs_of(addresses: Words, lengths: Places) -> Runs:
    """Of chains that lie one after the other. Without a mark the half of the address space decides."""
    ends = np.cumsum(lengths)
    is_mark = addresses >= np.uint64(CONTEXT_MAX)
    is_begin = is_mark.copy()
    is_begin[(ends - lengths)[lengths > 0]] = True
    begins = np.flatnonzero(is_begin)
    has_mark = is_mark[begins]
    run_lengths = np.diff(begins, append=len(addresses))
    kinds = np.repeat(_kinds(addresses[begins]), run_lengths)
    if not has_mark.all():
        bare = np.repeat(~has_mark, run_lengths)
        kinds[bare] = np.where(addresses[bare] >= UPPER_HALF, KERNEL, USER)
    innermost = begins + has_mark
    marks = np.bincount(np.searchsorted(ends, begins[has_mark], "right"), minlength=len(lengths))
    return Runs(is_mark, kinds, innermost[innermost < len(addresses)], marks)


def _kinds(marks: Words) -> npt.NDArray[np.int8]:
    kinds = np.full(len(marks), GUEST, np.int8)
    for mark, kind in _KINDS:
        kinds[marks == np.uint64(mark)] = kind
    return kinds
