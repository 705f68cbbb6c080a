"""Remembered names, most of them of files that do not exist, are walked or freed by the million.

Signature: a core in system mode in shrink_dcache_parent, d_walk, shrink_dentry_list,
prune_dcache_sb, __dentry_kill: below rmdir, umount, reclaim or drop_caches; before it dentries
grow, mostly negative ones, by somebody's lookups that fail.
Confirming signal: the walk (or the making of negative dentries) in a fifth of the core's samples,
and dentries in numbers: a hundred thousand come or gone with it, or a million there. The last close
of a large deleted file passes through __dentry_kill too, but what takes the time there is the
freeing of its pages.
Source: LWN 894098; druid #7508; Sysdig "Container isolation gone wrong"; fs/dcache.c.
"""

from typing import Final

import numpy as np

from necroscope.analysis.case import Case
from necroscope.analysis.cause import Assessment, Cause
from necroscope.analysis.evidence import in_samples, suffering, what_held_the_core
from necroscope.analysis.functions import functions
from necroscope.analysis.report import Origin, WillNotHelp
from necroscope.analysis.task_origin import cgroup_or_process, origin_of
from necroscope.analysis.waits import SPINS
from necroscope.model.units import NS_PER_S

WALKS: Final = functions(
    "shrink_dcache_parent shrink_dcache_sb shrink_dcache_for_umount do_one_tree umount_check d_walk"
    " select_collect* shrink_dentry_list prune_dcache_sb dentry_lru_isolate* __dentry_kill"
    " dentry_kill d_invalidate detach_and_collect dcache_readdir next_positive scan_positives"
)
MAKES: Final = functions("d_alloc __d_alloc d_alloc_parallel lookup_slow __lookup_slow lookup_open")
# Below the death of one dentry: its file and all its pages go.
FREES: Final = functions("evict shmem_evict_inode shmem_undo_range truncate_inode_pages*")
_LEAST: Final = 0.12
_CONFIRMED: Final = 0.2
_MANY: Final = 1_000_000
_SWING: Final = 100_000
_AROUND_NS: Final = 3 * NS_PER_S


def assess(case: Case) -> Assessment | None:
    # A wait for somebody else's walk is not the walk, and a file's pages are not names.
    own = case.samples.now.without(SPINS).without(FREES)
    of_all = own.total / case.samples.now.total if case.samples.now.total else 0.0
    walked, made = own.share(WALKS) * of_all, own.share(MAKES) * of_all
    negative = _swing(case, "dentries_negative")
    is_made = made >= _CONFIRMED and negative is not None and negative >= _SWING
    if walked < _LEAST and not is_made:
        return None
    group = WALKS if walked >= made else MAKES | WALKS
    swing, level = _swing(case, "dentries"), case.counters.level("memory", "dentries")
    is_many = (swing or 0.0) >= _SWING or (level or 0.0) >= _MANY
    culprit = case.culprit(group)
    who = culprit.comm if culprit else "a task"
    evidence = [
        in_samples(case, group, "walking, making and freeing dentries"),
        *what_held_the_core(case),
    ]
    if swing is not None and level is not None:
        evidence.append(
            case.seen(
                f"dentries changed by {swing:,.0f} meanwhile; {level:,.0f} at the end", "memory"
            )
        )
    if negative:
        evidence.append(
            case.seen(
                f"negative ones, of names that do not exist, changed by {negative:,.0f}", "memory"
            )
        )
    prober = _prober(case)
    return Assessment(
        explains=own.share(group) * of_all,
        is_confirmed=(walked >= _CONFIRMED and is_many) or is_made,
        evidence=[*evidence, *suffering(case)],
        would_confirm=(
            "the first and fifth number of /proc/sys/fs/dentry-state: dentries, and negative ones"
        ),
        summary=(
            f"{who} walks remembered names for {max(walked, made):.0%} of what {case.place} does in"
            f" {case.seconds:.1f} s{case.beat}"
        ),
        culprit=culprit,
        origin=prober or origin_of(culprit),
        # Who frees them now did not ask for them, which may be hours ago.
        fix=(
            (f"stop {prober.name} from asking for names that do not exist",)
            if prober and (negative or 0.0) >= _SWING
            else ()
        ),
    )


def _swing(case: Case, column: str) -> float | None:
    """By how much a count changed around the incident; None if it was not recorded."""
    rows = case.counters.columns("memory").within(
        [(case.window[0] - _AROUND_NS, case.window[1] + _AROUND_NS)]
    )
    values = rows[column][np.isfinite(rows[column])] if len(rows) else np.zeros(0)
    return float(values.max() - values.min()) if len(values) else None


def _prober(case: Case) -> Origin | None:
    """Who makes the dentries, in the incident or before it, on any core."""
    for stacks in (case.samples.machine, case.samples.machine_before):
        tasks = stacks.tasks(MAKES)
        if tasks and tasks[0].share >= 0.4 and tasks[0].weight >= 10:
            return cgroup_or_process(tasks[0])
    return None


CAUSE = Cause(
    slug="dentry-walk",
    title="remembered names are walked and freed by the million",
    confirming=(
        "the walk over dentries in a fifth of the core's samples, with dentries in numbers"
        " (dentry-state)"
    ),
    assess=assess,
    fix=(
        (
            "find who makes failed lookups: `strace -f -e trace=%file -Z -p PID`, or the same calls"
            " by perf trace"
        ),
        "give the prober a directory of its own that is removed often, before there are millions",
        (
            "a memory limit on the prober's cgroup bounds what it leaves behind (dentries are"
            " charged to it)"
        ),
        "fs.dentry-negative and its like where the kernel offers them",
    ),
    verify=("the fifth number of /proc/sys/fs/dentry-state stays below a few hundred thousand",),
    will_not_help=(
        WillNotHelp("adding memory", "it delays the walk and makes it longer"),
        WillNotHelp("drop_caches from cron", "it is the same walk, on purpose"),
    ),
)
