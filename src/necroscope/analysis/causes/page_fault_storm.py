"""One process faults in memory page by page, faster than it uses it.

Signature: a core in system mode below the page fault handler in one process, often with several
threads (waits for the lock of the address space, rwsem_down_*); minor faults of the machine up by
tens of thousands per second, none of them from disk.
Confirming signal: faults have a third of what runs on a core that is mostly in the kernel, in one
process. pgfault of /proc/vmstat rises with it: to twice as many, or on a large machine by what one
core's storm adds. But the memory in use does not grow faster than before: a program that loads
its data faults as well. Faults below fork, exec, reclaim or compaction are those causes' own, and
pages that one system call fills at once (MAP_POPULATE, mlock(2)) are the remedy, not the storm.
Source: OpenSearch #20933; golang #33092; bun #27490; mm/memory.c.
"""

from collections.abc import Sequence
from typing import Final

import numpy as np

from necroscope.analysis.case import Case
from necroscope.analysis.case_times import TICK_NS
from necroscope.analysis.cause import Assessment, Cause, Rise, Signature
from necroscope.analysis.functions import functions
from necroscope.analysis.report import WillNotHelp
from necroscope.analysis.task_origin import origin_of
from necroscope.analysis.thresholds import Threshold, Thresholds
from necroscope.model.span import Span
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
    " __mm_populate populate_vma_page_range faultin_page* madvise_populate* __get_user_pages"
)
FAULT_RATE: Final = Rise(
    "memory",
    "pgfault",
    Threshold(20_000.0, "an ordinary node has a few thousand per second"),
    times=Threshold(2.0, "all of the node's programs fault: one storm seldom triples the sum"),
    more_per_s=Threshold(
        50_000.0,
        "a third of one core's time makes this many; a hundred cores have more than that all day,"
        " and the sum hardly doubles",
    ),
)
SIGNATURE: Final = Signature(
    FAULTS,
    "page faults",
    without=OTHERS,
    also=GIVES_BACK,
    least=Threshold(0.25, "a program that starts has a quarter of a core in faults for a moment"),
    confirmed=Threshold(0.35, "a third of the core goes into the way to pages, not their use"),
    rises=(FAULT_RATE,),
)
LIMITS: Final = Thresholds(
    one_process=Threshold(0.6, "the faults of many processes are a node that starts work"),
    in_kernel=Threshold(0.5, "of the core's time: less and the program still gets its work done"),
    kept=Threshold(0.4, "from this part of the faulted pages on they were wanted: it loads data"),
)
_PAGE_BYTES: Final = 4096


def assess(case: Case) -> Assessment | None:
    found = SIGNATURE.match(case)
    if found is None or case.core is None:
        return None
    faults = FAULT_RATE.rate(case)
    floor_per_s = max(faults.rise, case.limits.pgfault_per_s)
    is_loading = _kept_per_s(case) >= case.limits.kept * floor_per_s
    tasks = found.own.tasks(FAULTS)
    is_one = bool(tasks) and tasks[0].pid is not None
    is_one = is_one and tasks[0].share >= case.limits.one_process
    text = f"{faults.now or 0:,.0f} page faults per second, {faults.before or 0:,.0f} before"
    many = case.evidence("the faults come from many processes", "samples", case.core)
    kept = case.evidence("what is faulted in is kept: a program that loads its data", "memory")
    return found.assessment(
        summary=(
            f"{found.who} faults in memory page by page: {found.share:.0%} of what {case.place}"
            " does"
        ),
        origin=origin_of(found.culprit),
        evidence=[case.evidence(text, "memory")] if faults.now is not None else (),
        fix=(f"have {found.who} keep its memory: larger arenas, no trim after each piece of work",),
        is_confirmed=is_one and (case.counters.share("kernel") or 0.0) >= case.limits.in_kernel,
        against=[*(() if is_one else (many,)), *((kept,) if is_loading else ())],
        doubt=0.6 if is_loading else 0.0,
    )


def _kept_per_s(case: Case) -> float:
    """Pages per second by which the memory of programs and files grew faster than before: others
    may fill caches all along.
    """
    now = _grown_per_s(
        case, [Span(from_ns - TICK_NS, to_ns) for from_ns, to_ns in case.times.spans]
    )
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
    would_confirm=(
        "pgfault of /proc/vmstat rising with the faults of one process (minflt of /proc/PID/stat)"
    ),
    assess=assess,
    signature=SIGNATURE,
    thresholds=LIMITS,
    ordinary_s=5.0,
    fix=(
        (
            "allocator: raise M_TRIM_THRESHOLD and M_MMAP_THRESHOLD (glibc) or decay times"
            " (jemalloc), GODEBUG=madvdontneed=0 (Go)"
        ),
        (
            "MADV_FREE instead of MADV_DONTNEED; huge pages for large work areas (a fault for 2 MiB"
            " instead of 512)"
        ),
        "fault in beforehand: MAP_POPULATE, MADV_POPULATE_WRITE (5.14)",
        "from Linux 6.4 on, faults lock only the mapping, not the whole address space",
    ),
    verify=("pgfault of /proc/vmstat is back to normal, and the core is out of the fault handler",),
    will_not_help=(
        WillNotHelp("more threads", "they contend for the lock of one address space"),
        WillNotHelp("more memory", "free pages are there; getting them is what costs"),
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
