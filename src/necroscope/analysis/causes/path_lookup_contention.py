"""Many tasks look up the same path while one task holds a lock of one entry on it.

Signature: system time in many short system calls of several tasks, in a spin lock's slow path below
lockref_get_not_dead, legitimize_path, try_to_unlazy, dput or d_alloc_parallel; seconds long, often
periodic; no task is hot by itself.
Confirming signal: waits for a lock below path lookup in a sixth of the core's samples; or this
core's task holds such an entry (a walk over a directory's children) while other cores wait so.
Source: Alibaba SysOM, a case of stalls in lockref_get_not_dead; fs/namei.c, lib/lockref.c.
"""

from typing import Final

from necroscope.analysis.attribution import culprit_from
from necroscope.analysis.case import Case
from necroscope.analysis.cause import Assessment, Cause
from necroscope.analysis.evidence import in_samples, suffering, what_held_the_core
from necroscope.analysis.functions import functions
from necroscope.analysis.report import Culprit, Evidence, Origin, WillNotHelp
from necroscope.analysis.stacks import TaskShare
from necroscope.analysis.task_origin import process_origin
from necroscope.analysis.thresholds import Threshold, Thresholds
from necroscope.analysis.waits import SPINS

LOOKS_UP: Final = functions(
    "lockref_get lockref_get_not_dead lockref_get_not_zero lockref_put_or_lock lockref_put_return"
    " dput fast_dput dget_parent legitimize_path __legitimize_path legitimize_mnt __legitimize_mnt"
    " legitimize_links try_to_unlazy* unlazy_walk unlazy_child complete_walk d_alloc"
    " d_alloc_parallel d_lookup __d_lookup lookup_fast walk_component path_init path_get mntget"
)
# What goes through all children of a directory, its lock held.
HOLDS: Final = functions(
    "fsnotify_set_children_dentry_flags fsnotify_update_children_dentry_flags"
    " __fsnotify_update_child_dentry_flags d_walk select_collect* dcache_readdir next_positive"
    " scan_positives d_genocide* shrink_dcache_parent __d_move d_move"
)
LIMITS: Final = Thresholds(
    least=Threshold(0.08, "half of what confirms: below it lookups hardly meet"),
    confirmed=Threshold(0.15, "a sixth of a core only waits for the lock of one name"),
    holds=Threshold(0.3, "of the holder's core: the walk over the children is what it does"),
    holder=Threshold(0.3, "of such walks on all cores: one program does most of them"),
    holder_samples=Threshold(20.0, "a fifth of a second of one core; fewer may be chance"),
)


def assess(case: Case) -> Assessment | None:
    waited = case.samples.now.share(SPINS, inside=LOOKS_UP)
    waited_elsewhere = (
        case.samples.elsewhere.share(SPINS, inside=LOOKS_UP) if case.core is not None else 0.0
    )
    held = case.samples.now.share(HOLDS)
    is_holder = held >= case.limits.holds and waited_elsewhere >= case.limits.confirmed
    if waited < case.limits.least and not is_holder:
        return None
    holder = _holder(case)
    culprit = case.culprit(HOLDS) if is_holder else case.culprit(SPINS, inside=LOOKS_UP)
    return Assessment(
        explains=max(held, waited) if is_holder else case.samples.now.share(LOOKS_UP),
        is_confirmed=waited >= case.limits.confirmed or is_holder,
        evidence=[*_evidence(case, holder), *what_held_the_core(case), *suffering(case)],
        summary=_summary(culprit, max(waited, waited_elsewhere), holder),
        culprit=culprit,
        origin=_origin(case, holder, culprit),
        fix=(
            (f"have {holder.comm} walk the directory less often, or keep it smaller",)
            if holder
            else ()
        ),
    )


def _holder(case: Case) -> TaskShare | None:
    most = next(iter(case.samples.machine.without(SPINS).tasks(HOLDS)), None)
    is_one = most is not None and most.weight >= case.limits.holder_samples
    return most if most is not None and is_one and most.share >= case.limits.holder else None


def _evidence(case: Case, holder: TaskShare | None) -> list[Evidence]:
    machine = case.samples.machine
    texts = [
        f"{waiter.comm} has {waiter.share:.0%} of the waits on all cores"
        for waiter in machine.of(SPINS, LOOKS_UP).tasks()[:1]
    ]
    if holder:
        where = machine.without(SPINS).path(HOLDS)[-1]
        texts.append(f"{holder.comm} walks a directory's entries meanwhile, in {where}")
    waits = in_samples(case, SPINS, "waiting for a lock in path lookup")
    return [waits, *(case.evidence(text, "samples") for text in texts)]


def _summary(culprit: Culprit | None, waited: float, holder: TaskShare | None) -> str:
    who = culprit.comm if culprit else "tasks"
    held = f" that {holder.comm} holds" if holder else ""
    return (
        f"{who} and others contend for one directory entry{held}: {waited:.0%} of the samples"
        " only wait for its lock"
    )


def _origin(case: Case, holder: TaskShare | None, culprit: Culprit | None) -> Origin | None:
    task = culprit_from(holder, (), case.node) if holder else culprit
    if task is not None and task.container:
        return Origin("container", task.container)
    return process_origin(task.comm) if task is not None else None


CAUSE = Cause(
    slug="path-lookup-contention",
    title="tasks wait for the lock of one directory entry",
    confirming="waits for a lock below path lookup in a sixth of the samples of a core",
    would_confirm="which path they all look up (perf trace), and what walks its children",
    assess=assess,
    thresholds=LIMITS,
    fix=(
        (
            "open the directory once and use its descriptor (openat, fstat): no lookup, no"
            " reference to take"
        ),
        "spread the files over directories, or the lookups over time: what is shared is one entry",
        (
            "move inotify watches and directory scans away from directories with hundreds of"
            " thousands of names"
        ),
    ),
    verify=(
        "lockref_get_not_dead and try_to_unlazy are gone from the profile of the busy seconds",
    ),
    will_not_help=(
        WillNotHelp(
            "looking for the hot process in top",
            "each of them only waits; together they hold the cores",
        ),
        WillNotHelp("more cores", "each extra core is one more that waits"),
    ),
)
