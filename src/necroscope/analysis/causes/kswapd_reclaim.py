"""kswapd keeps a core busy, since what it frees is taken again at once or cannot be freed at all.

Signature: the kernel thread kswapd near 100 % in system mode on one core, in balance_pgdat,
shrink_node, shrink_lruvec, shrink_slab; often without swap; file pages that were dropped are read
again.
Confirming signal: kswapd has a third of the core's samples, pgscan_kswapd of /proc/vmstat rises
with it, and it is in vain: pages come back that were just dropped (workingset_refault), few of the
scanned are freed, or tasks stall for memory besides kswapd itself, which counts as stalled (PSI)
all the time it runs. Who reads a large file once makes kswapd work too, and loses nothing.
Source: coreos/bugs #1424, #1450; okd #1846; bottlerocket #4916 (91.7 % of a core in kswapd0);
mm/vmscan.c.
"""

from typing import Final

from necroscope.analysis.case import Case
from necroscope.analysis.cause import Assessment, Cause
from necroscope.analysis.evidence_texts import in_samples, suffering, what_held_the_core
from necroscope.analysis.functions import functions
from necroscope.analysis.report import Evidence, Origin, WillNotHelp
from necroscope.analysis.stacks import TaskShare
from necroscope.analysis.task_origin import cgroup_or_process

KSWAPD: Final = functions("kswapd balance_pgdat kswapd_shrink_node kswapd_shrink_zone")
# Who takes the pages that kswapd frees.
TAKES: Final = functions(
    "filemap_add_folio add_to_page_cache_lru __filemap_get_folio* page_cache_ra_unbounded"
    " __do_page_cache_readahead page_cache_ra_order filemap_fault do_anonymous_page"
    " alloc_anon_folio shmem_alloc_* shmem_get_folio* vma_alloc_folio* grab_cache_page_write_begin"
)
_LEAST: Final = 0.15
_CONFIRMED: Final = 0.3
_PAGES_PER_S: Final = 2_000.0
# Of a machine without a hot core: pages that are dropped and read again are no incident unless
# somebody stalls for it.
_STALLED: Final = 0.1
# In vain: of the pages freed so many come back, of the pages scanned so few are freed, so many
# allocations a second wait.
_COME_BACK: Final = 0.1
_COME_BACK_PER_S: Final = 500.0
_FEW_FREED: Final = 0.3
_STALLS_PER_S: Final = 5.0


def assess(case: Case) -> Assessment | None:
    held = case.now.share(KSWAPD)
    if held < _LEAST:
        return None
    scanned = case.rate("memory", "pgscan_kswapd")
    is_counted = scanned.grew(3, _PAGES_PER_S)
    is_felt = case.core is not None or (case.pressure("memory") or 0.0) >= _STALLED
    takers = _takers(case)
    taker = cgroup_or_process(takers[0]) if takers else None
    return Assessment(
        explains=held,
        is_confirmed=held >= _CONFIRMED and is_counted and is_felt and _is_in_vain(case),
        evidence=[
            in_samples(case, KSWAPD, "kswapd"),
            *_counted(case),
            *_taken(case, takers),
            *what_held_the_core(case),
            *suffering(case),
        ],
        would_confirm=(
            "pgscan_kswapd of /proc/vmstat rising, with pgsteal_kswapd far behind it or"
            " workingset_refault_* beside it"
        ),
        summary=_summary(case, held, takers),
        culprit=case.culprit(KSWAPD),
        origin=taker or Origin("kernel", "kswapd"),
        fix=(f"limit the memory of {taker.name}: it takes what kswapd frees",) if taker else (),
    )


def _is_in_vain(case: Case) -> bool:
    """Whether somebody is worse off by it. What is not recorded does not tell."""
    scanned, stolen, refaults, stalls = (
        case.rate("memory", name).now
        for name in ("pgscan_kswapd", "pgsteal_kswapd", "workingset_refault", "allocstall")
    )
    few_freed = scanned is not None and stolen is not None and stolen <= _FEW_FREED * scanned
    come_back = refaults is not None and refaults >= max(
        _COME_BACK_PER_S, _COME_BACK * (stolen or 0.0)
    )
    # balance_pgdat runs in a section of psi_memstall_enter: without anybody else pressure is as
    # high as kswapd is busy.
    own = min(1.0, case.machine.time_share(KSWAPD) * case.node.cores)
    others_stall = (case.pressure("memory") or 0.0) >= own + _STALLED
    return few_freed or come_back or others_stall or (stalls or 0.0) >= _STALLS_PER_S


def _summary(case: Case, held: float, takers: list[TaskShare]) -> str:
    place = f"core {case.core}" if case.core is not None else "the node"
    taken = f" while {takers[0].comm} takes what it frees" if takers else ""
    return f"kswapd has {held:.0%} of what {place} does for {case.seconds:.1f} s{taken}"


def _takers(case: Case) -> list[TaskShare]:
    return [task for task in case.machine.without(KSWAPD).tasks(TAKES) if task.share >= 0.1]


def _taken(case: Case, takers: list[TaskShare]) -> list[Evidence]:
    share = case.machine.without(KSWAPD).share(TAKES)
    return (
        [
            case.seen(
                f"{takers[0].comm} allocates most meanwhile ({share:.0%} of the other samples"
                " allocate)",
                "samples",
            )
        ]
        if takers
        else []
    )


def _counted(case: Case) -> list[Evidence]:
    scanned, stolen = case.rate("memory", "pgscan_kswapd"), case.rate("memory", "pgsteal_kswapd")
    refaults = case.rate("memory", "workingset_refault")
    found = []
    if scanned.now is not None and stolen.now is not None:
        found.append(
            case.seen(
                f"kswapd scanned {scanned.now:,.0f} pages a second and freed {stolen.now:,.0f}",
                "memory",
            )
        )
    if refaults.now:
        found.append(
            case.seen(
                f"{refaults.now:,.0f} pages a second came back that had just been dropped", "memory"
            )
        )
    return found


CAUSE = Cause(
    slug="kswapd-reclaim",
    title="kswapd keeps a core busy with reclaim",
    confirming=(
        "kswapd in a third of the core's samples, with pgscan_kswapd of /proc/vmstat rising, in"
        " vain: pages come back, few are freed, or tasks stall besides"
    ),
    assess=assess,
    fix=(
        (
            "give the node headroom: evict or limit what fills memory, reserve memory for the"
            " system (kubelet's system-reserved)"
        ),
        (
            "without swap only file pages can go: a working set of files larger than what private"
            " memory leaves never settles"
        ),
        "zram or zswap on a small node: size it, or switch it off",
    ),
    verify=(
        (
            "pgscan_kswapd of /proc/vmstat stands still and kswapd0 sleeps: `necroscope top` does"
            " not show it"
        ),
    ),
    will_not_help=(
        WillNotHelp(
            "vm.swappiness=0",
            "without swap it changes nothing, with swap it leaves even less to reclaim",
        ),
        WillNotHelp(
            "adding swap in the middle of it",
            "it starts empty and the reclaim goes on; size it beforehand",
        ),
        WillNotHelp(
            "renicing or pinning kswapd", "then tasks reclaim directly, which is worse for them"
        ),
    ),
)
