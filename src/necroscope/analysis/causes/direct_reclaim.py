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
from necroscope.analysis.cause import Assessment, Cause
from necroscope.analysis.causes.kswapd_reclaim import KSWAPD
from necroscope.analysis.evidence_texts import in_samples, suffering, what_held_the_core
from necroscope.analysis.functions import functions
from necroscope.analysis.report import WillNotHelp
from necroscope.analysis.task_origin import cgroup_or_process

# Only of the whole machine: a cgroup's own reclaim does not pass through here.
DIRECT: Final = functions(
    "try_to_free_pages __alloc_pages_direct_reclaim __perform_reclaim node_reclaim __node_reclaim"
    " zone_reclaim __zone_reclaim"
)
_LEAST: Final = 0.08
_CONFIRMED: Final = 0.15
_STALLS_PER_S: Final = 5.0
_PAGES_PER_S: Final = 2_000.0


def assess(case: Case) -> Assessment | None:
    held = case.now.share(DIRECT)
    if held < _LEAST:
        return None
    stalls, scanned = case.rate("memory", "allocstall"), case.rate("memory", "pgscan_direct")
    is_counted = stalls.grew(3, _STALLS_PER_S) or scanned.grew(3, _PAGES_PER_S)
    culprit = case.culprit(DIRECT)
    who = culprit.comm if culprit else "tasks"
    evidence = [in_samples(case, DIRECT, "direct reclaim"), *what_held_the_core(case)]
    if stalls.now is not None:
        evidence.append(
            case.seen(
                f"{stalls.now:,.0f} allocations a second had to reclaim first (allocstall)",
                "memory",
            )
        )
    if scanned.now is not None:
        evidence.append(
            case.seen(
                f"tasks scanned {scanned.now:,.0f} pages a second themselves (pgscan_direct)",
                "memory",
            )
        )
    free = case.level("memory", "available_bytes")
    if free is not None:
        evidence.append(case.seen(f"{free / (1 << 30):.1f} GiB are available", "memory"))
    place = f"core {case.core}" if case.core is not None else "the node"
    return Assessment(
        # What kswapd does on the same core is for the same want of memory.
        explains=case.now.share(DIRECT | KSWAPD),
        is_confirmed=held >= _CONFIRMED and is_counted,
        evidence=[*evidence, *suffering(case)],
        would_confirm="allocstall_* and pgscan_direct of /proc/vmstat rising",
        summary=(
            f"{who} has to free memory itself before it gets any: {held:.0%} of what {place} does"
        ),
        culprit=culprit,
        origin=cgroup_or_process(culprit) if culprit else None,
        fix=(
            (f"limit or move what fills memory; {who} is first on core {case.core}",)
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
    assess=assess,
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
            "vm.min_free_kbytes was raised too far? then nearly all memory is below the watermark:"
            " put it back"
        ),
        "lock the memory of what must not wait (mlockall): it still must not allocate",
    ),
    verify=("allocstall_* of /proc/vmstat stands still, and PSI memory `some` is near 0",),
    will_not_help=(
        WillNotHelp("CPU limits or pinning", "who allocates has to reclaim, wherever it runs"),
        WillNotHelp(
            "vm.swappiness=0", "it takes away choices from reclaim, it does not make memory free"
        ),
    ),
    yields_to=frozenset({"compaction-stall"}),
)
