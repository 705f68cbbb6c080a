"""kswapd keeps a core busy, since what it frees is taken again at once or cannot be freed at all.

Signature: the kernel thread kswapd near 100 % in system mode on one core, in balance_pgdat,
shrink_node, shrink_lruvec, shrink_slab; often without swap; file pages that were dropped are read
again.
Confirming signal: kswapd has a third of the core's samples, pgscan_kswapd of /proc/vmstat rises
with it, and it is in vain: pages come back that were just dropped (workingset_refault), few of the
scanned are freed, or tasks other than kswapd stall for memory. (PSI counts kswapd itself as stalled
all the time it runs.) A program that reads a large file once makes kswapd work too, without harm.
Source: coreos/bugs #1424, #1450; okd #1846; bottlerocket #4916 (91.7 % of a core in kswapd0);
mm/vmscan.c.
"""

from typing import Final

from necroscope.analysis.case import Case
from necroscope.analysis.cause import Assessment, Cause, Rise, Signature
from necroscope.analysis.functions import functions
from necroscope.analysis.report import Evidence, Origin, WillNotHelp
from necroscope.analysis.stacks import TaskShare
from necroscope.analysis.task_origin import cgroup_or_process
from necroscope.analysis.thresholds import Threshold, Thresholds

KSWAPD: Final = functions("kswapd balance_pgdat kswapd_shrink_node kswapd_shrink_zone")
# Who takes the pages that kswapd frees.
TAKES: Final = functions(
    "filemap_add_folio add_to_page_cache_lru __filemap_get_folio* page_cache_ra_unbounded"
    " __do_page_cache_readahead page_cache_ra_order filemap_fault do_anonymous_page"
    " alloc_anon_folio shmem_alloc_* shmem_get_folio* vma_alloc_folio* grab_cache_page_write_begin"
)
SCANS: Final = Rise(
    "memory", "pgscan_kswapd", Threshold(2_000.0, "8 MiB of pages per second that kswapd scans")
)
SIGNATURE: Final = Signature(
    KSWAPD,
    "kswapd",
    least=Threshold(0.15, "half of what confirms: kswapd has that much while a file is read once"),
    confirmed=Threshold(0.3, "a third of a core: bottlerocket #4916 saw 91.7 %"),
    rises=(SCANS,),
)
# Reclaim is an incident only where it is in vain, or where other tasks wait for it.
LIMITS: Final = Thresholds(
    stalled=Threshold(0.1, "tasks other than kswapd stall for memory a tenth of the time"),
    come_back=Threshold(0.1, "of the freed pages this many are read again: the working set went"),
    come_back_per_s=Threshold(500.0, "fewer pages that come back are nothing a disk notices"),
    few_freed=Threshold(0.3, "of the scanned pages this few are freed: there is little to free"),
    stalls_per_s=Threshold(
        5.0, "allocations that have to reclaim themselves in addition to kswapd"
    ),
    taker=Threshold(0.1, "of the other samples one program's share of the allocations"),
)


def assess(case: Case) -> Assessment | None:
    found = SIGNATURE.match(case)
    if found is None:
        return None
    stalled = case.counters.pressure("memory") or 0.0
    is_felt = case.core is not None or stalled >= case.limits.stalled
    taker = _taker(case)
    origin = cgroup_or_process(taker) if taker else None
    meanwhile = f", while {taker.comm} used up what it freed" if taker else ""
    return found.assessment(
        summary=(
            f"kswapd was {found.share:.0%} of what {case.place} did for"
            f" {case.seconds:.1f} s{meanwhile}"
        ),
        origin=origin or Origin("kernel", "kswapd"),
        evidence=[*_counters(case), *_allocations(case, taker)],
        fix=(f"limit the memory of {origin.name}: it takes what kswapd frees",) if origin else (),
        is_confirmed=is_felt and _is_in_vain(case),
    )


def _is_in_vain(case: Case) -> bool:
    """Whether something is worse off by it. What is not recorded does not tell."""
    limits = case.limits
    scanned, stolen, refaults, stalls = (
        case.counters.rate("memory", name).now
        for name in ("pgscan_kswapd", "pgsteal_kswapd", "workingset_refault", "allocstall")
    )
    few_freed = scanned is not None and stolen is not None and stolen <= limits.few_freed * scanned
    come_back = refaults is not None and refaults >= max(
        limits.come_back_per_s, limits.come_back * (stolen or 0.0)
    )
    # balance_pgdat runs in a section of psi_memstall_enter: by itself it makes pressure as high as
    # kswapd is busy.
    own = min(1.0, case.samples.machine.time_share(KSWAPD) * case.node.cores)
    others_stall = (case.counters.pressure("memory") or 0.0) >= own + limits.stalled
    return few_freed or come_back or others_stall or (stalls or 0.0) >= limits.stalls_per_s


def _taker(case: Case) -> TaskShare | None:
    """Who takes most of the pages that kswapd frees."""
    most = next(iter(case.samples.machine.without(KSWAPD).tasks(TAKES)), None)
    return most if most is not None and most.share >= case.limits.taker else None


def _allocations(case: Case, taker: TaskShare | None) -> list[Evidence]:
    share = case.samples.machine.without(KSWAPD).share(TAKES)
    text = f" allocates most meanwhile ({share:.0%} of the other samples allocate)"
    return [case.evidence(f"{taker.comm}{text}", "samples")] if taker else []


def _counters(case: Case) -> list[Evidence]:
    scanned, stolen, refaults = (
        case.counters.rate("memory", name).now
        for name in ("pgscan_kswapd", "pgsteal_kswapd", "workingset_refault")
    )
    texts = (
        scanned is not None
        and stolen is not None
        and f"kswapd scanned {scanned:,.0f} pages per second and freed {stolen:,.0f}",
        refaults and f"{refaults:,.0f} pages per second were read back soon after being dropped",
    )
    return [case.evidence(text, "memory") for text in texts if text]


CAUSE = Cause(
    slug="kswapd-reclaim",
    title="kswapd keeps a core busy with reclaim",
    confirming=(
        "kswapd in a third of the core's samples, with pgscan_kswapd of /proc/vmstat rising, in"
        " vain: pages come back, few are freed, or other tasks stall"
    ),
    would_confirm=(
        "pgscan_kswapd of /proc/vmstat rising, with pgsteal_kswapd far behind it or"
        " workingset_refault_* rising too"
    ),
    assess=assess,
    signature=SIGNATURE,
    thresholds=LIMITS,
    fix=(
        (
            "give the node headroom: evict or limit what fills memory, reserve memory for the"
            " system (kubelet's system-reserved)"
        ),
        (
            "without swap only file pages can be freed: if the files in use do not fit, reclaim"
            " never ends"
        ),
        "zram or zswap on a small node: size it, or switch it off",
    ),
    verify=(
        (
            "pgscan_kswapd of /proc/vmstat stops rising and kswapd0 sleeps: `necroscope top` does"
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
