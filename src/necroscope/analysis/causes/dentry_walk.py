"""Remembered names, most of them of files that do not exist, are walked or freed by the million.

Signature: a core in system mode in shrink_dcache_parent, d_walk, shrink_dentry_list,
prune_dcache_sb, __dentry_kill: below rmdir, umount, reclaim or drop_caches; before it dentries
grow, mostly negative ones, by a program's lookups that fail.
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
from necroscope.analysis.populations import all_populations
from necroscope.analysis.report import Evidence, Origin, WillNotHelp
from necroscope.analysis.stacks import TaskShare
from necroscope.analysis.state_maker import busiest_while_it_grew
from necroscope.analysis.task_origin import cgroup_or_process, origin_of
from necroscope.analysis.thresholds import Threshold, Thresholds
from necroscope.analysis.waits import SPINS
from necroscope.analysis.walk_numbers import describe_walk
from necroscope.model.span import Span
from necroscope.model.units import NS_PER_S

WALKS: Final = functions(
    "shrink_dcache_parent shrink_dcache_sb shrink_dcache_for_umount do_one_tree umount_check d_walk"
    " select_collect* shrink_dentry_list prune_dcache_sb dentry_lru_isolate* __dentry_kill"
    " dentry_kill d_invalidate detach_and_collect dcache_readdir next_positive scan_positives"
)
MAKES: Final = functions("d_alloc __d_alloc d_alloc_parallel lookup_slow __lookup_slow lookup_open")
# Below the death of one dentry: its file and all its pages go.
FREES: Final = functions("evict shmem_evict_inode shmem_undo_range truncate_inode_pages*")
LIMITS: Final = Thresholds(
    least=Threshold(0.12, "half of what confirms: rm -r of a source tree stays below it"),
    confirmed=Threshold(0.2, "a fifth of the core walks, frees or makes names"),
    swing=Threshold(100_000.0, "this many names came or went around it: a tree, not a directory"),
    many=Threshold(1_000_000.0, "walked for a second and more (LWN 894098)"),
    around_s=Threshold(
        3.0, "names go after the walk has begun, and the table has one row per second"
    ),
    prober=Threshold(0.4, "one program makes most of the names"),
    prober_samples=Threshold(10.0, "a tenth of a second of one core; fewer may be chance"),
)


def assess(case: Case) -> Assessment | None:
    # A wait for another task's walk is not the walk, and a file's pages are not names.
    own = case.samples.now.without(SPINS | FREES)
    of_all = own.total / case.samples.now.total if case.samples.now.total else 0.0
    walked, made = own.share(WALKS) * of_all, own.share(MAKES) * of_all
    limits = case.limits
    negative = _swing(case, "dentries_negative") or 0.0
    is_made = made >= limits.confirmed and negative >= limits.swing
    if walked < limits.least and not is_made:
        return None
    group = WALKS if walked >= made else MAKES | WALKS
    culprit, prober = case.culprit(group), _prober(case)
    work = in_samples(case, group, "walking, making and freeing dentries")
    state, numbers = describe_walk(case, group, ("dentries",))
    return Assessment(
        walked=state,
        explains=own.share(group) * of_all,
        is_confirmed=(walked >= limits.confirmed and _are_many(case)) or is_made,
        evidence=[work, *what_held_the_core(case), *_counts(case), *numbers, *suffering(case)],
        summary=(
            f"{culprit.comm if culprit else 'a task'} walked cached file names (dentries):"
            f" {max(walked, made):.0%} of what {case.place} did in {case.seconds:.1f} s{case.beat}"
        ),
        culprit=culprit,
        origin=prober or origin_of(culprit),
        # Who frees them now did not ask for them, which may be hours ago.
        fix=(
            (f"stop {prober.name} looking up names that do not exist",)
            if prober and negative >= limits.swing
            else ()
        ),
    )


def _are_many(case: Case) -> bool:
    swing, level = _swing(case, "dentries"), case.counters.level("memory", "dentries")
    return (swing or 0.0) >= case.limits.swing or (level or 0.0) >= case.limits.many


def _counts(case: Case) -> list[Evidence]:
    swing, level = _swing(case, "dentries"), case.counters.level("memory", "dentries")
    negative = _swing(case, "dentries_negative")
    texts = (
        swing is not None
        and level is not None
        and f"the number of dentries changed by {swing:,.0f} meanwhile; {level:,.0f} at the end",
        negative and f"negative dentries (names that do not exist) changed by {negative:,.0f}",
    )
    return [case.evidence(text, "memory") for text in texts if text]


def _swing(case: Case, column: str) -> float | None:
    """By how much a count changed around the incident; None if it was not recorded."""
    around_ns = round(case.limits.around_s * NS_PER_S)
    rows = case.counters.columns("memory").within(
        [Span(case.window[0] - around_ns, case.window[1] + around_ns)]
    )
    values = rows[column][np.isfinite(rows[column])] if len(rows) else np.zeros(0)
    return float(values.max() - values.min()) if len(values) else None


def _prober(case: Case) -> Origin | None:
    """Who makes the dentries, in the incident, before it, or whenever they became more, on any
    core: the minutes before a walk may be busy as well, and no quiet time.
    """
    for stacks in (case.samples.machine, case.samples.machine_before):
        found = _most(case, next(iter(stacks.tasks(MAKES)), None))
        if found is not None:
            return found
    population = all_populations(case.node, case.node.span).get("dentries")
    if population is None:
        return None
    grew = busiest_while_it_grew(case, population, lambda stacks: stacks.of(MAKES))
    return _most(case, grew[0]) if grew is not None else None


def _most(case: Case, task: TaskShare | None) -> Origin | None:
    is_one = task is not None and task.share >= case.limits.prober
    is_seen = task is not None and task.weight >= case.limits.prober_samples
    return cgroup_or_process(task) if task is not None and is_one and is_seen else None


CAUSE = Cause(
    slug="dentry-walk",
    title="cached names (dentries) are walked and freed by the million",
    confirming=(
        "the walk over dentries in a fifth of the core's samples, with dentries in numbers"
        " (dentry-state)"
    ),
    would_confirm=(
        "the first and fifth number of /proc/sys/fs/dentry-state: dentries, and negative ones"
    ),
    assess=assess,
    thresholds=LIMITS,
    fix=(
        (
            "find the process whose lookups fail: `strace -f -e trace=%file -Z -p PID`, or perf"
            " trace"
        ),
        "give it a directory of its own, and remove that before it holds millions of names",
        "set a memory limit on its cgroup: the dentries it leaves behind are charged to it",
        "limits on negative dentries (fs.dentry-negative and similar), where the kernel has them",
    ),
    verify=("the fifth number of /proc/sys/fs/dentry-state stays below a few hundred thousand",),
    will_not_help=(
        WillNotHelp("adding memory", "it delays the walk and makes it longer"),
        WillNotHelp("drop_caches from cron", "it is the same walk, on purpose"),
    ),
)
