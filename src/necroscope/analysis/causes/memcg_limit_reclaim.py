"""A cgroup at its memory limit reclaims its own pages in the middle of its own system calls.

Signature: a core in system mode in the container's own tasks, in reclaim
(try_to_free_mem_cgroup_pages, shrink_slab, super_cache_count, list_lru_count_one) below the charge
of a page; the machine has memory to spare, and kswapd sleeps.
Confirming signal: that reclaim below a charge in a fifth of the core's samples, and where they are
recorded, a limit that was hit (memory.events, memory.failcnt) or work that stalls for memory (PSI).
Reclaim that somebody asked for (memory.force_empty, memory.reclaim) is not below a charge.
Source: concourse/hush-house #22; mm/memcontrol.c, try_charge_memcg.
"""

from collections import Counter
from typing import Final

import numpy as np

from necroscope.analysis.case import Case
from necroscope.analysis.cause import Assessment, Cause
from necroscope.analysis.evidence_texts import in_samples, suffering, what_held_the_core
from necroscope.analysis.functions import functions
from necroscope.analysis.report import Culprit, Origin, WillNotHelp
from necroscope.analysis.task_origin import cgroup_or_process
from necroscope.model.units import NS_PER_S

RECLAIM: Final = functions("try_to_free_mem_cgroup_pages")
# Where a page, a slab object or a socket buffer is booked on a cgroup, and where memory.high makes
# a task pay on its way out.
CHARGES: Final = functions(
    "try_charge try_charge_memcg mem_cgroup_try_charge* __mem_cgroup_charge mem_cgroup_charge*"
    " charge_memcg mem_cgroup_swapin_charge_* obj_cgroup_charge* __memcg_kmem_charge*"
    " memcg_kmem_charge* memcg_slab_pre_alloc_hook __memcg_slab_post_alloc_hook"
    " mem_cgroup_handle_over_high __mem_cgroup_handle_over_high reclaim_high high_work_func"
)
_LEAST: Final = 0.1
_CONFIRMED: Final = 0.2
_STALLED: Final = 0.1
# The table is read every 10 s.
_LATE_NS: Final = 11 * NS_PER_S


def assess(case: Case) -> Assessment | None:
    held = case.now.share(RECLAIM, inside=CHARGES)
    if held < _LEAST:
        return None
    culprit = case.culprit(RECLAIM, inside=CHARGES)
    who = culprit.comm if culprit else "a task"
    hit = _limit_hit(case, culprit)
    free = case.level("memory", "available_bytes")
    evidence = [
        in_samples(case, RECLAIM, "reclaim for a cgroup's own limit"),
        *what_held_the_core(case),
    ]
    if hit is not None:
        evidence.append(
            case.seen(
                f"cgroup {hit[0]} was stopped by its memory limit {hit[1]:,.0f} times", "cgroups"
            )
        )
    if free is not None:
        evidence.append(
            case.seen(f"the machine has {free / (1 << 30):.1f} GiB available meanwhile", "memory")
        )
    where = hit[0] if hit else (culprit.cgroup if culprit else None)
    place = f"core {case.core}" if case.core is not None else "the node"
    return Assessment(
        explains=held,
        is_confirmed=held >= _CONFIRMED and (hit is not None or _is_felt(case)),
        evidence=[*evidence, *suffering(case)],
        would_confirm=(
            "memory.events (max, high) or memory.failcnt of the task's cgroup rising, or PSI memory"
        ),
        summary=(
            f"{who} is at the memory limit of {where or 'its cgroup'} and reclaims for {held:.0%}"
            f" of what {place} does"
        ),
        culprit=culprit,
        origin=Origin("cgroup", hit[0]) if hit else cgroup_or_process(culprit) if culprit else None,
        fix=(f"raise the memory limit of {where}, or lower what runs in it",) if where else (),
    )


def _is_felt(case: Case) -> bool:
    """Whether work stalls for memory; where neither that nor hits of limits are recorded, the
    samples alone tell.
    """
    stalled = case.pressure("memory")
    if stalled is not None:
        return stalled >= _STALLED
    rows = case.columns("cgroups").within([(case.window[0], case.window[1] + _LATE_NS)])
    return not len(rows) or not np.isfinite(rows["memory_max_events"]).any()


def _limit_hit(case: Case, culprit: Culprit | None) -> tuple[str, float] | None:
    """The cgroup whose limit was hit most and how often: the culprit's own, one above it or below
    it.

    Any other only where nothing is known of the culprit's: the limits of many cgroups are read in
    turn, and the one that had its turn may be somebody else's.
    """
    rows = case.columns("cgroups").within([(case.window[0], case.window[1] + _LATE_NS)])
    counts: Counter[str] = Counter()
    if len(rows):
        hits = np.nan_to_num(rows["memory_max_events"]) + np.nan_to_num(rows["memory_high_events"])
        for path, count in zip(rows["path"], hits, strict=True):
            counts[str(path)] += int(count) if path != "/" else 0
    own = culprit.cgroup if culprit and culprit.cgroup != "/" else None
    path, count = max(
        ((path, count) for path, count in counts.items() if _is_of(path, own)),
        default=("", 0),
        key=_count,
    )
    return (path, float(count)) if count else None


def _is_of(path: str, own: str | None) -> bool:
    return own is None or f"{own}/".startswith(f"{path}/") or path.startswith(f"{own}/")


def _count(item: tuple[str, int]) -> int:
    return item[1]


CAUSE = Cause(
    slug="memcg-limit-reclaim",
    title="a cgroup at its memory limit reclaims its own pages",
    confirming=(
        "reclaim below the charge of a page in a fifth of the core's samples, with hits of the"
        " limit or stalls for memory"
    ),
    assess=assess,
    ordinary_s=3.0,
    fix=(
        (
            "find what the cgroup holds: memory.stat of that cgroup (anon: the program's own; file:"
            " cache that comes back at once)"
        ),
        (
            "without swap private memory cannot be given back: the limit must be above it with room"
            " for the files in use"
        ),
        (
            "fewer cgroups below one limit and fewer mounts: reclaim goes through the shrinkers of"
            " each pair of them"
        ),
    ),
    verify=(
        (
            "memory.events (max) or memory.failcnt of the cgroup stands still, and the core is out"
            " of try_charge"
        ),
    ),
    will_not_help=(
        WillNotHelp(
            "more memory in the node", "the limit is the cgroup's own; the node has memory to spare"
        ),
        WillNotHelp(
            "drop_caches", "the cache of a cgroup at its limit is as small as it can be already"
        ),
        WillNotHelp("more CPU for the container", "it would reclaim faster, not less"),
    ),
)
