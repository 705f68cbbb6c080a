"""Pages are moved together to make memory contiguous, and a task waits for it.

Signature: a core in system mode in compact_zone, isolate_migratepages, isolate_freepages,
migrate_pages: below the fault of a huge page, below a large kernel allocation, in kcompactd, or
below a write to /proc/sys/vm/compact_memory; after long uptimes.
Confirming signal: compaction in a sixth of the core's samples, and compact_* of /proc/vmstat rising
with it. In the background, in kcompactd or khugepaged, that is how it should be: there allocations
must wait for it (compact_stall), other tasks stall for memory, or something wait behind it on the
core.
Source: nixpkgs #211548; golang #61718; scylladb #8828; juicefs pull request 6147 (kcompactd behind
FUSE); mm/compaction.c.
"""

from typing import Final

from necroscope.analysis.case import Case
from necroscope.analysis.cause import Assessment, Cause, Match, Rise, Signature
from necroscope.analysis.episodes import SUFFERING
from necroscope.analysis.functions import Functions, functions
from necroscope.analysis.report import Evidence, Origin, WillNotHelp
from necroscope.analysis.task_origin import origin_of
from necroscope.analysis.thresholds import Threshold, Thresholds

COMPACTS: Final = functions(
    "compact_zone compact_zone_order try_to_compact_pages __alloc_pages_direct_compact compact_node"
    " compact_nodes proactive_compact_node kcompactd kcompactd_do_work isolate_migratepages*"
    " isolate_freepages* compaction_alloc*"
)
HUGE_FAULT: Final = functions(
    "do_huge_pmd_anonymous_page __do_huge_pmd_anonymous_page hugepage_madvise madvise_collapse"
)
BY_REQUEST: Final = functions("sysctl_compaction_handler compact_store compact_nodes")
THREADS: Final = functions("kcompactd kcompactd_do_work khugepaged")
STALLS: Final = Rise(
    "memory", "compact_stall", Threshold(1.0, "each is an allocation that stood and waited")
)
_SCANNED: Final = Threshold(5_000.0, "20 MiB of pages per second: kcompactd's own pace is below it")
SIGNATURE: Final = Signature(
    COMPACTS,
    "compaction",
    least=Threshold(0.08, "half of what confirms: kcompactd's ordinary rounds stay below it"),
    confirmed=Threshold(0.15, "a sixth of the core moves pages instead of working on them"),
    rises=(
        Rise("memory", "compact_migrate_scanned", _SCANNED, plus=("compact_free_scanned",)),
        STALLS,
    ),
)
LIMITS: Final = Thresholds(
    mostly=Threshold(0.5, "what asked for most of it is why it was done"),
    stalled=Threshold(0.1, "tasks other than kcompactd stall for memory a tenth of the time"),
)


def assess(case: Case) -> Assessment | None:
    found = SIGNATURE.match(case)
    if found is None:
        return None
    is_felt = STALLS.is_seen(case) or not _is_behind(found) or _something_waits(case)
    why, fix = _reason(found)
    return found.assessment(
        summary=(
            f"{found.who} compacts memory {why}: {found.share:.0%} of what {case.place}"
            f" does{case.beat}"
        ),
        origin=origin_of(found.culprit) or Origin("kernel", "kcompactd"),
        evidence=_counters(case),
        fix=fix,
        is_confirmed=is_felt,
    )


def _reason(found: Match) -> tuple[str, tuple[str, ...]]:
    """What asked for contiguous memory, and what to do about that."""
    if _is_mostly_below(found, BY_REQUEST):
        return "at its own request (vm.compact_memory)", (
            "stop the job that writes to /proc/sys/vm/compact_memory",
        )
    if _is_mostly_below(found, HUGE_FAULT):
        return "for huge pages", (
            (
                "set /sys/kernel/mm/transparent_hugepage/defrag to defer, or drop MADV_HUGEPAGE in"
                " the program"
            ),
        )
    if _is_behind(found):
        return "in the background", (
            "lower vm.compaction_proactiveness, or khugepaged's scan (pages_to_scan)",
        )
    return "for a large allocation", ()


def _is_behind(found: Match) -> bool:
    return _is_mostly_below(found, THREADS)


def _is_mostly_below(found: Match, callers: Functions) -> bool:
    case = found.case
    return case.samples.now.share(COMPACTS, inside=callers) >= case.limits.mostly * found.share


def _something_waits(case: Case) -> bool:
    # kcompactd works in a section of psi_memstall_enter: by itself it makes pressure as high as it
    # is busy.
    own = min(1.0, case.samples.machine.time_share(THREADS) * case.node.cores)
    stalled = case.counters.pressure("memory") or 0.0
    return case.has(*SUFFERING) or stalled >= own + case.limits.stalled


def _counters(case: Case) -> list[Evidence]:
    words = {
        "compact_stall": "allocations per second waited for compaction",
        "compact_migrate_scanned": "pages per second were scanned for migration",
        "pgmigrate_success": "pages per second were migrated",
    }
    rates = {counter: case.counters.rate("memory", counter).now for counter in words}
    return [
        case.evidence(f"{rate:,.0f} {words[counter]} ({counter})", "memory")
        for counter, rate in rates.items()
        if rate
    ]


CAUSE = Cause(
    slug="compaction-stall",
    title="the kernel compacts memory while a task waits",
    confirming=(
        "compaction in a sixth of the core's samples, with compact_* of /proc/vmstat rising; in the"
        " background only if a task waits for it"
    ),
    would_confirm=(
        "compact_stall of /proc/vmstat rising, or compact_migrate_scanned in tasks that wait for it"
    ),
    assess=assess,
    signature=SIGNATURE,
    thresholds=LIMITS,
    fix=(
        (
            "transparent_hugepage/defrag=defer+madvise: faults do not wait, kcompactd works in the"
            " background"
        ),
        "reserve huge pages at boot (hugetlb) for what needs them, before memory fragments",
        (
            "raise vm.min_free_kbytes or vm.watermark_scale_factor a little: it leaves room to"
            " move pages"
        ),
    ),
    verify=("compact_stall and compact_migrate_scanned of /proc/vmstat stop rising in busy hours",),
    will_not_help=(
        WillNotHelp(
            "turning huge pages on", "each one needs 2 MiB of contiguous memory: more of the same"
        ),
        WillNotHelp(
            "drop_caches now and then",
            "it frees scattered pages; those in the way cannot be moved",
        ),
    ),
)
