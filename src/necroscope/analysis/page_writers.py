"""Who makes pages dirty, and whether pages were being written while a task stood in fsync(2).

A writer that the kernel throttles is found by its pauses in balance_dirty_pages. Below the limits
of a large machine nothing is throttled, however slow the disk: then a writer is who was sampled as
it copied into the page cache, before or meanwhile. How many bytes are on their way to all disks
together is in `memory`; of which disk is not recorded.
"""

from collections import Counter
from itertools import pairwise
from typing import Final

from necroscope.analysis.case import Case
from necroscope.analysis.functions import functions
from necroscope.analysis.report import Evidence
from necroscope.analysis.task_waits import TaskWait, Waiter
from necroscope.model.span import Span
from necroscope.model.units import NS_PER_S

# Who is throttled here makes pages dirty faster than they are written.
DIRTIES: Final = functions("balance_dirty_pages*")
# mm/filemap.c, fs/iomap, fs/btrfs: from user space into the page cache.
_COPIES: Final = functions(
    "generic_perform_write iomap_file_buffered_write btrfs_buffered_write ext4_buffered_write_iter"
    " f2fs_buffered_write_iter iomap_write_iter copy_page_from_iter_atomic"
)
# Samples of one that writes: fewer are the logs that every program writes.
_LEAST_SAMPLES: Final = 3
# Of what is sampled there, so that it is the one that writes.
_MOSTLY: Final = 0.5
# Bytes on their way to a disk that others stand behind; less is the journal of a quiet machine.
_QUEUE_BYTES: Final = 4 << 20
_WRITTEN_BYTES: Final = 16 << 20
_BEFORE_NS: Final = 60 * NS_PER_S
# Of the looks within a wait: so often pages were on their way.
_NEARLY_ALL: Final = 0.8


def find_pauses(waits: list[TaskWait]) -> Counter[Waiter]:
    """How long tasks are throttled for the pages they dirty; short waits count as well."""
    found: Counter[Waiter] = Counter()
    for wait in waits:
        if any(name in DIRTIES for name in wait.stack):
            found[wait.task] += wait.to_ns - wait.from_ns
    return found


def sampled_writer(case: Case, victims: set[int]) -> Waiter | None:
    """Who copied most into the page cache while dirty pages became many, or else all the time; None
    if no program did most of it, or a victim did.
    """
    weights: Counter[tuple[str, int, str | None]] = Counter()
    rises = _rises(case)
    for stacks in (case.samples.machine, case.samples.machine_before):
        then = stacks.where(None, rises, case.node.cores) if rises else stacks
        for task in then.tasks(_COPIES):
            weights[task.comm, task.pid or 0, task.cgroup] += task.weight
    if not weights:
        return None
    (comm, pid, cgroup), weight = weights.most_common(1)[0]
    is_most = weight >= _LEAST_SAMPLES and weight >= _MOSTLY * weights.total()
    return Waiter(comm, pid, pid, cgroup, None) if is_most and pid and pid not in victims else None


def _rises(case: Case) -> list[Span]:
    """When dirty pages became more, before the incident or in it."""
    rows = case.counters.columns("memory")
    if not len(rows):
        return []
    rows = rows.within([Span(case.window[0] - _BEFORE_NS, case.window[1])])
    held = (rows["dirty_bytes"] + rows["writeback_bytes"]).tolist()
    times = rows["time"].tolist()
    looks = pairwise(zip(times, held, strict=True))
    return [
        Span(int(before[0]), int(after[0]))
        for before, after in looks
        if after[1] - before[1] >= _WRITTEN_BYTES
    ]


def written_behind(case: Case, wait: TaskWait) -> int | None:
    """How many bytes of pages were written while it waited, if some were on their way nearly all
    the time; None if not, or if that is not recorded.
    """
    rows = case.counters.columns("memory")
    rows = rows.within([Span(wait.from_ns, wait.to_ns + NS_PER_S)]) if len(rows) else rows
    queued = [int(value) for value in rows["writeback_bytes"]] if len(rows) else []
    within = queued[:-1]
    if not within or sum(v >= _QUEUE_BYTES for v in within) < _NEARLY_ALL * len(within):
        return None
    falls = (max(0, before - after) for before, after in pairwise(queued))
    written = sum(falls)
    return written if written >= _WRITTEN_BYTES else None


def pages_moved(case: Case, waits: list[TaskWait]) -> list[Evidence]:
    """That disks worked while the first of these stood."""
    written = written_behind(case, waits[0]) if waits else None
    if written is None:
        return []
    text = f"{written / 1e6:,.0f} MB of pages were written meanwhile: slow I/O, not a hang"
    return [case.evidence(text, "memory")]
