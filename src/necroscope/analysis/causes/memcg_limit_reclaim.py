"""A cgroup at its memory limit reclaims its own pages in its own system calls, or its tasks sleep.

Signature: a core in system mode in the container's own tasks, in reclaim
(try_to_free_mem_cgroup_pages, shrink_slab, super_cache_count, list_lru_count_one) below the charge
of a page; the machine has memory to spare, and kswapd sleeps.
Confirming signal: that reclaim below a charge in a fifth of the core's samples, and where they are
recorded, a limit that was hit (memory.events, memory.failcnt) or work that stalls for memory (PSI).
Reclaim that a program asked for (memory.force_empty, memory.reclaim) is not below a charge.
Or no core is busy: tasks sleep for seconds because their cgroup has no room and its OOM killer is
switched off (v1, memory.oom_control), or because it is over memory.high (v2). That sleep confirms
it by itself. Who ends it made room, and is not accused.
Source: concourse/hush-house #22; mm/memcontrol.c, try_charge_memcg; mm/memcontrol-v1.c,
mem_cgroup_oom_synchronize; Documentation/admin-guide/cgroup-v1/memory.rst, section 10.
"""

from collections import Counter
from collections.abc import Sequence
from typing import Final

import numpy as np

from necroscope.analysis.attribution import container_of
from necroscope.analysis.case import Case
from necroscope.analysis.cause import Assessment, Cause, Signature
from necroscope.analysis.evidence import suffering
from necroscope.analysis.functions import functions
from necroscope.analysis.report import Culprit, Origin, WillNotHelp
from necroscope.analysis.task_origin import cgroup_or_process
from necroscope.analysis.task_waits import TaskWait
from necroscope.analysis.thresholds import Threshold, Thresholds
from necroscope.analysis.wait_channels import MEMORY_LIMIT

RECLAIM: Final = functions("try_to_free_mem_cgroup_pages")
# Where a page, a slab object or a socket buffer is booked on a cgroup, and where memory.high makes
# a task pay on its way out.
CHARGES: Final = functions(
    "try_charge try_charge_memcg mem_cgroup_try_charge* __mem_cgroup_charge mem_cgroup_charge*"
    " charge_memcg mem_cgroup_swapin_charge_* obj_cgroup_charge* __memcg_kmem_charge*"
    " memcg_kmem_charge* memcg_slab_pre_alloc_hook __memcg_slab_post_alloc_hook"
    " mem_cgroup_handle_over_high __mem_cgroup_handle_over_high reclaim_high high_work_func"
)
SIGNATURE: Final = Signature(
    RECLAIM,
    "reclaim for a cgroup's own limit",
    inside=CHARGES,
    least=Threshold(0.1, "half of what confirms: a cgroup near its limit reclaims now and then"),
    confirmed=Threshold(0.2, "a fifth of the core goes into making room for the next page"),
)
LIMITS: Final = Thresholds(
    stalled=Threshold(0.1, "tasks stall for memory a tenth of the time, where PSI is recorded"),
    asleep_s=Threshold(3.0, "asleep at the limit in all: memory.high alone makes a task pay 2 s"),
)
_NAMED: Final = 3


def assess(case: Case) -> Assessment | None:
    waits = case.waits_for(MEMORY_LIMIT)
    if waits:
        return _of_waits(case, waits)
    found = SIGNATURE.match(case)
    if found is None:
        return None
    hit = _limit_hit(case, found.culprit)
    free = case.counters.level("memory", "available_bytes")
    where = hit[0] if hit else (found.culprit.cgroup if found.culprit else None)
    evidence = []
    if hit is not None:
        text = f"cgroup {hit[0]} hit its memory limit {hit[1]:,.0f} times"
        evidence.append(case.evidence(text, "cgroups"))
        killed = _count_oom_kills(case, hit[0])
        if killed:
            text = f"the limit of {hit[0]} killed {killed:,.0f} of its tasks (OOM)"
            evidence.append(case.evidence(text, "cgroups"))
    if free is not None:
        text = f"the machine has {free / (1 << 30):.1f} GiB available meanwhile"
        evidence.append(case.evidence(text, "memory"))
    own = cgroup_or_process(found.culprit) if found.culprit else None
    return found.assessment(
        summary=(
            f"{found.who} is at the memory limit of {where or 'its cgroup'}, and reclaim is"
            f" {found.share:.0%} of what {case.place} does"
        ),
        origin=Origin("cgroup", hit[0]) if hit else own,
        evidence=evidence,
        fix=(f"raise the memory limit of {where}, or run less in it",) if where else (),
        is_confirmed=hit is not None or _is_felt(case),
    )


def _of_waits(case: Case, waits: Sequence[TaskWait]) -> Assessment:
    """Tasks that the limit of their own cgroup put to sleep. Who waits is who wants the memory."""
    worst = sorted(waits, key=lambda wait: -wait.seconds)
    longest, task = worst[0], worst[0].task
    culprit = Culprit(
        task.comm,
        task.pid,
        task.cgroup,
        container=container_of(task.cgroup, case.node),
        path=longest.stack[::-1],
    )
    where = task.cgroup or "its cgroup"
    others = f" and {count - 1} more" if (count := len({w.task.tid for w in waits})) > 1 else ""
    texts = [*dict.fromkeys(wait.words() for wait in worst[:_NAMED])]
    hit = _limit_hit(case, culprit)
    if hit is not None:
        texts.append(f"cgroup {hit[0]} hit its memory limit {hit[1]:,.0f} times")
    total_s = sum(wait.seconds for wait in waits)
    return Assessment(
        explains=0.9,
        is_confirmed=total_s >= case.limits.asleep_s,
        evidence=[*(case.evidence(text, "waits") for text in texts), *suffering(case)],
        summary=(
            f"{task.comm}{others} waited up to {longest.seconds:.1f} s {longest.channel.words}:"
            f" {where} is at its limit"
        ),
        culprit=culprit,
        origin=cgroup_or_process(culprit),
        fix=(
            (
                f"raise the memory limit of {where}, end one of its tasks, or let the kernel do so:"
                " echo 0 > memory.oom_control"
                if "OOM" in longest.channel.words
                else f"raise memory.high of {where}, or run less in it"
            ),
        ),
    )


def _is_felt(case: Case) -> bool:
    """Whether work stalls for memory; where neither that nor hits of limits are recorded, the
    samples alone tell.
    """
    stalled = case.counters.pressure("memory")
    if stalled is not None:
        return stalled >= case.limits.stalled
    rows = case.counters.rows_of("cgroups", [case.window])
    return not len(rows) or not np.isfinite(rows["memory_max_events"]).any()


def _limit_hit(case: Case, culprit: Culprit | None) -> tuple[str, float] | None:
    """The cgroup whose limit was hit most and how often: the culprit's own, one above it or below
    it.

    Any other only where nothing is known of the culprit's: the limits of many cgroups are read in
    turn, and the one that had its turn may be another tenant's.
    """
    rows = case.counters.rows_of("cgroups", [case.window])
    counts: Counter[str] = Counter()
    if len(rows):
        hits = np.nan_to_num(rows["memory_max_events"]) + np.nan_to_num(rows["memory_high_events"])
        for path, count in zip(rows["path"], hits, strict=True):
            counts[str(path)] += int(count) if path != "/" else 0
    own = culprit.cgroup if culprit and culprit.cgroup != "/" else None
    related = [(count, path) for path, count in counts.items() if count and _is_of(path, own)]
    count, path = max(related, key=lambda pair: pair[0], default=(0, ""))
    return (path, float(count)) if count else None


def _count_oom_kills(case: Case, cgroup: str) -> float:
    """How many tasks were killed for lack of memory below this limit."""
    rows = case.counters.rows_of("cgroups", [case.window])
    is_its = np.array([str(path) == cgroup for path in rows["path"]], bool)
    return float(np.nan_to_num(rows["oom_kills"])[is_its].sum())


def _is_of(path: str, own: str | None) -> bool:
    return own is None or f"{own}/".startswith(f"{path}/") or path.startswith(f"{own}/")


CAUSE = Cause(
    slug="memcg-limit-reclaim",
    title="a cgroup is at its memory limit: it reclaims its own pages, or its tasks wait",
    confirming=(
        "reclaim below the charge of a page in a fifth of the core's samples, with hits of the"
        " limit or stalls for memory; or tasks that their cgroup's limit puts to sleep"
    ),
    would_confirm=(
        "memory.events (max, high) or memory.failcnt of the task's cgroup rising, or PSI memory"
    ),
    assess=assess,
    signature=SIGNATURE,
    thresholds=LIMITS,
    ordinary_s=3.0,
    fix=(
        (
            "find what the cgroup holds: memory.stat of that cgroup (anon: the program's own; file:"
            " cache that comes back at once)"
        ),
        (
            "without swap private memory cannot be reclaimed: the limit must hold it and the"
            " files in use"
        ),
        (
            "fewer cgroups below one limit and fewer mounts: reclaim calls the shrinkers for each"
            " pair of them"
        ),
    ),
    verify=(
        (
            "memory.events (max) or memory.failcnt of the cgroup stops rising, and try_charge"
            " uses no core"
        ),
    ),
    will_not_help=(
        WillNotHelp(
            "more memory in the node", "the limit is the cgroup's own; the node has memory to spare"
        ),
        WillNotHelp(
            "drop_caches", "the cache of a cgroup at its limit is already as small as it can be"
        ),
        WillNotHelp("more CPU for the container", "it would reclaim faster, not less"),
    ),
)
