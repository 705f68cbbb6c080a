"""One process faults in memory page by page, faster than it uses it.

Signature: a core in system mode below the page fault handler in one process, often with several
threads (waits for the lock of the address space, rwsem_down_*); minor faults of the machine up by
tens of thousands a second, none of them from disk.
Confirming signal: faults have a third of what runs on a core that is mostly in the kernel, in one
process, and pgfault of /proc/vmstat rises with it, to twice as many or on a large machine by what
one core's storm adds; but the memory in use does not grow faster than before: a program that loads
its data faults as well. Faults below fork, exec, reclaim or compaction are those causes' own.
Source: OpenSearch #20933; golang #33092; bun #27490; mm/memory.c.
"""

from collections.abc import Sequence
from typing import Final

import numpy as np

from necroscope.analysis.case import Case
from necroscope.analysis.case_times import TICK_NS
from necroscope.analysis.cause import Assessment, Cause
from necroscope.analysis.episodes import Span
from necroscope.analysis.evidence import in_samples, suffering, what_held_the_core
from necroscope.analysis.functions import functions
from necroscope.analysis.report import WillNotHelp
from necroscope.analysis.task_origin import origin_of
from necroscope.model.units import NS_PER_S

FAULTS: Final = functions(
    "do_user_addr_fault handle_mm_fault __handle_mm_fault do_page_fault __do_page_fault"
    " exc_page_fault asm_exc_page_fault async_page_fault do_anonymous_page do_translation_fault"
    " do_mem_abort el0_da"
)
# Giving back what was faulted in is the other half of it.
GIVES_BACK: Final = functions(
    "do_madvise madvise_vma_behavior zap_page_range* zap_pte_range unmap_page_range __vm_munmap"
    " do_munmap __do_munmap do_vmi_munmap do_vmi_align_munmap"
)
OTHERS: Final = functions(
    "try_to_free_pages try_to_free_mem_cgroup_pages compact_zone copy_process load_elf_binary"
    " begin_new_exec flush_old_exec do_exit"
)
_LEAST: Final = 0.25
_CONFIRMED: Final = 0.35
_FAULTS_PER_S: Final = 20_000.0
# A third of one core's time makes so many; a hundred cores have more than that all day, and the sum
# hardly doubles.
_RISE_PER_S: Final = 50_000.0
_ONE_PROCESS: Final = 0.6
_IN_KERNEL: Final = 0.5
_PAGE_BYTES: Final = 4096
# From this part of the faulted pages on they were wanted.
_KEPT: Final = 0.4


def assess(case: Case) -> Assessment | None:
    own = case.samples.now.without(OTHERS)
    of_all = own.total / case.samples.now.total if case.samples.now.total else 0.0
    held = own.share(FAULTS) * of_all
    if held < _LEAST or case.core is None:
        return None
    faults = case.counters.rate("memory", "pgfault")
    is_loading = _kept_per_s(case) >= _KEPT * max(faults.rise, _FAULTS_PER_S)
    tasks = own.tasks(FAULTS)
    is_one = bool(tasks) and tasks[0].pid is not None and tasks[0].share >= _ONE_PROCESS
    is_counted = faults.grew(2, _FAULTS_PER_S) or faults.rise >= _RISE_PER_S
    in_kernel = case.counters.share("kernel") or 0.0
    culprit = case.culprit(FAULTS)
    who = culprit.comm if culprit else "a task"
    evidence = [in_samples(case, FAULTS, "page faults"), *what_held_the_core(case)]
    against = (
        [] if is_one else [case.seen("the faults are of many processes", "samples", case.core)]
    )
    if is_loading:
        against.append(
            case.seen("what is faulted in is kept: a program that loads its data", "memory")
        )
    if faults.now is not None:
        evidence.append(
            case.seen(
                f"{faults.now:,.0f} page faults a second, {faults.before or 0:,.0f} before",
                "memory",
            )
        )
    return Assessment(
        explains=own.share(FAULTS | GIVES_BACK) * of_all,
        is_confirmed=held >= _CONFIRMED and is_one and is_counted and in_kernel >= _IN_KERNEL,
        evidence=[*evidence, *suffering(case)],
        against=against,
        doubt=0.6 if is_loading else 0.0,
        would_confirm=(
            "pgfault of /proc/vmstat rising with the faults of one process (minflt of"
            " /proc/PID/stat)"
        ),
        summary=f"{who} faults in memory page by page: {held:.0%} of what core {case.core} does",
        culprit=culprit,
        origin=origin_of(culprit),
        fix=(f"have {who} keep its memory: larger arenas, no trim after each piece of work",),
    )


def _kept_per_s(case: Case) -> float:
    """Pages a second by which the memory of programs and files grew faster than before: others may
    fill caches all along.
    """
    now = _grown_per_s(case, [(from_ns - TICK_NS, to_ns) for from_ns, to_ns in case.times.spans])
    return now - max(0.0, _grown_per_s(case, case.times.quiet))


def _grown_per_s(case: Case, spans: Sequence[Span]) -> float:
    rows = case.counters.columns("memory")
    grown_bytes, elapsed_ns = 0.0, 0
    for span in spans if len(rows) else ():
        own = rows.within([span])
        held = own["anon_bytes"] + own["cached_bytes"]
        is_known = np.isfinite(held)
        if is_known.sum() >= 2:
            grown_bytes += float(held[is_known][-1] - held[is_known][0])
            elapsed_ns += int(own["time"][is_known][-1] - own["time"][is_known][0])
    return grown_bytes / _PAGE_BYTES / elapsed_ns * NS_PER_S if elapsed_ns else 0.0


CAUSE = Cause(
    slug="page-fault-storm",
    title="a process faults in its memory page by page",
    confirming=(
        "page faults of one process in a third of the samples of a core in the kernel, with pgfault"
        " rising"
    ),
    assess=assess,
    ordinary_s=5.0,
    fix=(
        (
            "allocator: M_TRIM_THRESHOLD and M_MMAP_THRESHOLD up (glibc), decay times up"
            " (jemalloc), GODEBUG=madvdontneed=0 (Go)"
        ),
        (
            "MADV_FREE instead of MADV_DONTNEED; huge pages for large work areas (a fault for 2 MiB"
            " instead of 512)"
        ),
        "fault in beforehand: MAP_POPULATE, MADV_POPULATE_WRITE (5.14)",
        "from 6.4 on faults take the lock of the mapping only, not that of the whole address space",
    ),
    verify=(
        "pgfault of /proc/vmstat is back at what it was, and the core is out of the fault handler",
    ),
    will_not_help=(
        WillNotHelp("more threads", "they meet at the lock of the same address space"),
        WillNotHelp("more memory", "the pages are free; the way to them is what costs"),
    ),
    yields_to=frozenset(
        {
            "compaction-stall",
            "direct-reclaim",
            "memcg-limit-reclaim",
            "fork-exec-churn",
            "tlb-shootdown",
        }
    ),
)
