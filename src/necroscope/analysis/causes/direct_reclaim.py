"""Tasks have to free memory themselves before they get any.

Signature: system time in the workload's own tasks, in try_to_free_pages below the page allocator's
slow path, in a fault or a read; free memory near the minimum; kswapd works too, on another core or
the same.
Confirming signal: direct reclaim in a sixth of the samples, and allocstall or pgscan_direct of
/proc/vmstat rising with it.
Source: corosync #520 (real-time threads stopped by reclaim); mm/vmscan.c;
Documentation/admin-guide/sysctl/vm.rst.
"""

from typing import Final

from necroscope.analysis.case import Case
from necroscope.analysis.cause import Assessment, Cause, Rise, Signature
from necroscope.analysis.causes.kswapd_reclaim import KSWAPD
from necroscope.analysis.functions import functions
from necroscope.analysis.report import WillNotHelp
from necroscope.analysis.task_origin import cgroup_or_process
from necroscope.analysis.thresholds import Threshold

# Only of the whole machine: a cgroup's own reclaim does not pass through here.
DIRECT: Final = functions(
    "try_to_free_pages __alloc_pages_direct_reclaim __perform_reclaim node_reclaim __node_reclaim"
    " zone_reclaim __zone_reclaim"
)
STALLS: Final = Rise(
    "memory",
    "allocstall",
    Threshold(5.0, "an allocation that reclaims first is rare on a well node"),
)
SCANS: Final = Rise(
    "memory", "pgscan_direct", Threshold(2_000.0, "8 MiB of pages per second, scanned by tasks")
)
SIGNATURE: Final = Signature(
    DIRECT,
    "direct reclaim",
    # What kswapd does on the same core is for the same want of memory.
    also=KSWAPD,
    least=Threshold(0.08, "half of what confirms: below it tasks hardly notice"),
    confirmed=Threshold(0.15, "a sixth of the core goes into reclaim inside the tasks' own calls"),
    rises=(STALLS, SCANS),
)


def assess(case: Case) -> Assessment | None:
    found = SIGNATURE.match(case)
    if found is None:
        return None
    stalls, scans = STALLS.rate(case).now, SCANS.rate(case).now
    free = case.counters.level("memory", "available_bytes")
    texts = (
        stalls is not None
        and f"{stalls:,.0f} allocations per second had to reclaim first (allocstall)",
        scans is not None
        and f"tasks scanned {scans:,.0f} pages per second themselves (pgscan_direct)",
        free is not None and f"{free / (1 << 30):.1f} GiB are available",
    )
    return found.assessment(
        summary=(
            f"{found.who} has to free memory itself before it gets any: {found.share:.0%} of what"
            f" {case.place} does"
        ),
        origin=cgroup_or_process(found.culprit) if found.culprit else None,
        evidence=[case.evidence(text, "memory") for text in texts if text],
        fix=(
            (f"limit or move what fills memory, {found.who} on core {case.core} first",)
            if case.core is not None
            else ()
        ),
    )


CAUSE = Cause(
    slug="direct-reclaim",
    title="tasks free memory themselves before they get any",
    confirming=(
        "direct reclaim in the samples of the core, with allocstall or pgscan_direct of"
        " /proc/vmstat rising"
    ),
    would_confirm="allocstall_* and pgscan_direct of /proc/vmstat rising",
    assess=assess,
    signature=SIGNATURE,
    fix=(
        (
            "leave headroom: kubelet's system-reserved and eviction-hard, or fewer and smaller"
            " limits on the node"
        ),
        (
            "wake kswapd earlier: vm.watermark_scale_factor=100 to 200 (1 to 2 % of memory between"
            " the watermarks)"
        ),
        (
            "if vm.min_free_kbytes was raised too far, nearly all memory is below the watermark:"
            " put it back"
        ),
        "lock the memory of what must not wait (mlockall): even then it must not allocate",
    ),
    verify=("allocstall_* of /proc/vmstat stops rising, and PSI memory `some` is near 0",),
    will_not_help=(
        WillNotHelp(
            "CPU limits or pinning", "a task that allocates must reclaim, wherever it runs"
        ),
        WillNotHelp("vm.swappiness=0", "it limits what reclaim can free, and frees nothing"),
    ),
    yields_to=frozenset({"compaction-stall"}),
)
