"""Pages are moved together to make memory contiguous, and somebody waits for it.

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
from necroscope.analysis.cause import Assessment, Cause
from necroscope.analysis.episodes import SUFFERING
from necroscope.analysis.evidence_texts import in_samples, suffering, what_held_the_core
from necroscope.analysis.functions import functions
from necroscope.analysis.periodicity import told
from necroscope.analysis.report import Evidence, Origin, WillNotHelp
from necroscope.analysis.task_origin import origin_of

COMPACTS: Final = functions(
    "compact_zone compact_zone_order try_to_compact_pages __alloc_pages_direct_compact compact_node"
    " compact_nodes proactive_compact_node kcompactd kcompactd_do_work isolate_migratepages*"
    " isolate_freepages* compaction_alloc*"
)
HUGE_FAULT: Final = functions(
    "do_huge_pmd_anonymous_page __do_huge_pmd_anonymous_page hugepage_madvise madvise_collapse"
)
ASKED: Final = functions("sysctl_compaction_handler compact_store compact_nodes")
THREADS: Final = functions("kcompactd kcompactd_do_work khugepaged")
_LEAST: Final = 0.08
_CONFIRMED: Final = 0.15
_PAGES_PER_S: Final = 5_000.0
_STALLED: Final = 0.1


def assess(case: Case) -> Assessment | None:
    held = case.now.share(COMPACTS)
    if held < _LEAST:
        return None
    scanned = case.rate("memory", "compact_migrate_scanned", "compact_free_scanned")
    stalls = case.rate("memory", "compact_stall")
    is_stalled = stalls.grew(3, 1.0)
    is_counted = scanned.grew(3, _PAGES_PER_S) or is_stalled
    is_felt = is_stalled or not _is_behind(case, held) or _something_waits(case)
    culprit = case.culprit(COMPACTS)
    who = culprit.comm if culprit else "a task"
    why, fix = _reason(case, held)
    beat = f", {told(case.period_s)}" if case.period_s else ""
    place = f"core {case.core}" if case.core is not None else "the node"
    return Assessment(
        explains=held,
        is_confirmed=held >= _CONFIRMED and is_counted and is_felt,
        evidence=[
            in_samples(case, COMPACTS, "compaction"),
            *_counted(case),
            *what_held_the_core(case),
            *suffering(case),
        ],
        would_confirm=(
            "compact_stall of /proc/vmstat rising, or compact_migrate_scanned in tasks that wait"
            " for it"
        ),
        summary=f"{who} is in compaction {why} for {held:.0%} of what {place} does{beat}",
        culprit=culprit,
        origin=origin_of(culprit) or Origin("kernel", "kcompactd"),
        fix=fix,
    )


def _reason(case: Case, held: float) -> tuple[str, tuple[str, ...]]:
    """What asked for contiguous memory, and what to do about that."""
    if case.now.share(COMPACTS, inside=ASKED) >= 0.5 * held:
        return "that it asked for itself (vm.compact_memory)", (
            "stop the job that writes to /proc/sys/vm/compact_memory",
        )
    if case.now.share(COMPACTS, inside=HUGE_FAULT) >= 0.5 * held:
        return "for huge pages", (
            (
                "set /sys/kernel/mm/transparent_hugepage/defrag to defer, or drop MADV_HUGEPAGE in"
                " the program"
            ),
        )
    if _is_behind(case, held):
        return "in the background", (
            "lower vm.compaction_proactiveness, or khugepaged's scan (pages_to_scan)",
        )
    return "for a large allocation", ()


def _is_behind(case: Case, held: float) -> bool:
    return case.now.share(COMPACTS, inside=THREADS) >= 0.5 * held


def _something_waits(case: Case) -> bool:
    # kcompactd works in a section of psi_memstall_enter: without anybody else pressure is as high
    # as it is busy.
    own = min(1.0, case.machine.time_share(THREADS) * case.node.cores)
    return case.has(*SUFFERING) or (case.pressure("memory") or 0.0) >= own + _STALLED


def _counted(case: Case) -> list[Evidence]:
    found = []
    for column, what in (
        ("compact_stall", "allocations a second waited for compaction"),
        ("compact_migrate_scanned", "pages a second were looked at to be moved"),
        ("pgmigrate_success", "pages a second were moved"),
    ):
        rate = case.rate("memory", column)
        if rate.now:
            found.append(case.seen(f"{rate.now:,.0f} {what} ({column})", "memory"))
    return found


CAUSE = Cause(
    slug="compaction-stall",
    title="pages are moved together while somebody waits",
    confirming=(
        "compaction in a sixth of the core's samples, with compact_* of /proc/vmstat rising; in the"
        " background only if somebody waits for it"
    ),
    assess=assess,
    fix=(
        "transparent_hugepage/defrag=defer+madvise: faults do not wait, kcompactd works behind",
        "reserve huge pages at boot (hugetlb) for what needs them, while memory is in one piece",
        (
            "vm.min_free_kbytes or vm.watermark_scale_factor a little higher leaves room to move"
            " pages to"
        ),
    ),
    verify=(
        "compact_stall and compact_migrate_scanned of /proc/vmstat stand still in the busy hours",
    ),
    will_not_help=(
        WillNotHelp(
            "turning huge pages on", "each of them asks for 2 MiB in one piece: more of the same"
        ),
        WillNotHelp(
            "drop_caches now and then",
            "it frees pages here and there; what is in the way is what cannot be moved",
        ),
    ),
)
