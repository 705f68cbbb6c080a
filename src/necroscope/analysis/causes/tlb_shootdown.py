"""A process changes its mappings so often that the cores it runs on interrupt each other all the
time.

Signature: the sender's core in system mode in smp_call_function_many_cond below flush_tlb_*, in
mprotect, munmap or madvise; the row TLB of /proc/interrupts up by thousands per second on the cores
of its other threads.
Confirming signal: flushes in a sixth of the core's samples, and TLB (or CAL) interrupts of the
machine rising with them: to three times as many, or on a large machine by what one core's flushes
add.
Source: JabPerf "TLB shootdowns"; Amit, USENIX ATC 2017; arch/x86/mm/tlb.c.
"""

from typing import Final

from necroscope.analysis.case import Case
from necroscope.analysis.cause import Assessment, Cause, Rise, Signature
from necroscope.analysis.functions import functions
from necroscope.analysis.report import WillNotHelp
from necroscope.analysis.task_origin import origin_of
from necroscope.analysis.thresholds import Threshold

FLUSHES: Final = functions(
    "flush_tlb_mm_range flush_tlb_page flush_tlb_range flush_tlb_all flush_tlb_kernel_range"
    " arch_tlbbatch_flush flush_tlb_multi native_flush_tlb_multi native_flush_tlb_others"
    " flush_tlb_others kvm_flush_tlb_multi kvm_flush_tlb_others hyperv_flush_tlb_* xen_flush_tlb_*"
    " ptep_clear_flush try_to_unmap_flush*"
)
# What a process does to its own mappings, the flush included.
CHANGES: Final = functions(
    "do_mprotect_pkey mprotect_fixup change_protection* __do_sys_mprotect __x64_sys_mprotect"
    " do_madvise __vm_munmap do_munmap __do_munmap do_vmi_munmap do_vmi_align_munmap mremap_to"
    " do_mremap __x64_sys_mremap"
)
_SENT: Final = (
    Threshold(1_000.0, "munmaps of an ordinary threaded program are hundreds per second"),
    Threshold(
        10_000.0,
        "a sixth of one core's time sends this many to one other core; the threads of a hundred"
        " cores have more than that all day",
    ),
)
SHOOTDOWNS: Final = Rise("interrupts", "TLB", _SENT[0], more_per_s=_SENT[1])
# Where the flush is sent as a function call, as on arm64 and under some hypervisors.
CALLS: Final = Rise("interrupts", "CAL", _SENT[0], more_per_s=_SENT[1])
# Threads of the kernel that merge, collapse, move or drop pages: each flush is a part of that work.
PAGE_THREADS: Final = functions("ksm_scan_thread khugepaged* kcompactd* kswapd*")
SIGNATURE: Final = Signature(
    FLUSHES,
    "waiting for other cores to flush",
    also=CHANGES,
    without=PAGE_THREADS,
    least=Threshold(0.08, "half of what confirms: below it no task waits long for the flushes"),
    confirmed=Threshold(0.15, "a sixth of a core is spent in waiting, which no work pays back"),
    rises=(SHOOTDOWNS, CALLS),
)


def assess(case: Case) -> Assessment | None:
    found = SIGNATURE.match(case)
    if found is None:
        return None
    shot = SHOOTDOWNS.rate(case)
    text = f"{shot.now or 0:,.0f} TLB shootdowns per second, {shot.before or 0:,.0f} before"
    return found.assessment(
        summary=(
            f"{found.who} changes its mappings and waits for the other cores to flush them:"
            f" {found.share:.0%} of what {case.place} does"
        ),
        origin=origin_of(found.culprit),
        evidence=[case.evidence(text, "interrupts")] if shot.now else (),
        fix=(
            (
                f"have {found.who} unmap or protect in larger pieces, or not from a process with"
                " threads on many cores"
            ),
        ),
    )


CAUSE = Cause(
    slug="tlb-shootdown",
    title="cores interrupt each other to flush translations",
    confirming=(
        "TLB flushes in a sixth of the core's samples, with the TLB row of /proc/interrupts rising"
    ),
    would_confirm="the rows TLB and CAL of /proc/interrupts rising by thousands per second",
    assess=assess,
    signature=SIGNATURE,
    ordinary_s=3.0,
    fix=(
        "batch unmaps; MADV_FREE instead of MADV_DONTNEED and munmap; keep arenas",
        (
            "processes instead of threads, or fewer cores for the process: the interrupt goes to"
            " the cores it runs on"
        ),
        (
            "turn NUMA balancing off (kernel.numa_balancing=0) if the flushes come from its page"
            " migrations"
        ),
    ),
    verify=("the TLB row of /proc/interrupts grows by tens per second again, not by thousands",),
    will_not_help=(
        WillNotHelp(
            "pinning the thread that suffers",
            "while its process runs on several cores, each of them is interrupted",
        ),
        WillNotHelp("moving device interrupts", "these interrupts go from core to core"),
    ),
)
