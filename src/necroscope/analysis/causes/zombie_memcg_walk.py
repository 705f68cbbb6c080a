"""Dead memory cgroups are walked, one by one, in the kernel.

Signature: one core 100 % in system mode for a tenth of a second to many seconds, at the period of
what reads statistics or reclaims: kubelet, cadvisor, an agent. Its stacks are in a walk over all
memory cgroups; far more of them are dead than alive.
Confirming signal: the walk in the samples of that core, and a thousand dead memory cgroups or more,
more of them dead than alive. A count alone is not a cause: with 69,000 of them a read of root
memory.stat takes 0.1 ms on kernel 6.18, while memory.force_empty holds a core for 17 s.
Source: Pinterest 2026; GitHub 2019, "Debugging network stalls on Kubernetes"; cadvisor #1774;
commit dd8657b6c1cb (v5.8).
"""

from typing import Final

from necroscope.analysis.case import Case
from necroscope.analysis.cause import Assessment, Cause
from necroscope.analysis.evidence import in_samples, suffering, what_held_the_core
from necroscope.analysis.functions import functions
from necroscope.analysis.node import Node
from necroscope.analysis.origin import (
    DeadCgroups,
    Producer,
    dead_cgroups,
    leaks,
    loop_of,
    producer,
    restarts,
)
from necroscope.analysis.report import Evidence, WillNotHelp
from necroscope.analysis.thresholds import Threshold, Thresholds
from necroscope.analysis.walk_numbers import describe_walk
from necroscope.model.definitions import WALKABLE_DEAD_CGROUPS

# The step from one memory cgroup to the next, and what is done at each, over all versions from 4.4
# on.
WALK: Final = functions(
    "mem_cgroup_iter css_next_descendant_pre css_next_child mem_cgroup_nr_lru_pages"
    " mem_cgroup_node_nr_lru_pages memcg_sum_events tree_stat tree_events mem_cgroup_usage"
    " mem_cgroup_read_stat mem_cgroup_read_events"
)
# Reads of statistics that walked until 5.8: the walk is in their own loop.
READERS: Final = functions(
    "memcg_stat_show memcg_numa_stat_show memory_stat_show mem_cgroup_read_u64"
    " memory_numa_stat_show"
)
# Reclaim visits every memory cgroup below a root; a walk is its cost only where there is nothing to
# reclaim.
RECLAIMS: Final = functions(
    "shrink_node_memcgs shrink_node shrink_many shrink_one shrink_slab_memcg drop_slab"
    " drop_slab_node"
)
CHARGES: Final = functions(
    "try_charge try_charge_memcg mem_cgroup_charge __mem_cgroup_charge charge_memcg"
)
LIMITS: Final = Thresholds(
    least=Threshold(0.15, "a reader of statistics has a tenth of a core on a well node"),
    in_readers=Threshold(0.05, "the readers' own loop, where the walk is inlined (before 5.8)"),
    dead=Threshold(WALKABLE_DEAD_CGROUPS, "a walk over as many takes as long as a stall"),
    for_a_limit=Threshold(0.5, "most of the walk is below a charge: a cgroup at its own limit"),
)


def assess(case: Case) -> Assessment | None:
    now, limits = case.samples.now, case.limits
    walked, read = now.share(WALK), now.share(READERS)
    is_inlined = read >= limits.least and now.self_share(READERS) >= limits.in_readers
    if walked < limits.least and not is_inlined:
        return None
    whole = max(walked, read, now.share(RECLAIMS) if walked >= limits.least else 0.0)
    dead, made_by = dead_cgroups(case.node, case.window[1]), producer(case.node)
    culprit = case.culprit(WALK | READERS)
    against, doubt = _against(case, dead, walked)
    state, numbers = describe_walk(case, WALK | READERS, ("dead-cgroups",))
    return Assessment(
        walked=state,
        explains=whole,
        is_confirmed=_are_many(case, dead),
        evidence=[
            in_samples(case, WALK | READERS, "the walk over all memory cgroups"),
            *what_held_the_core(case)[:1],
            *_leak(case, dead, made_by),
            *numbers,
            *suffering(case),
        ],
        against=against,
        doubt=doubt,
        summary=(
            f"{culprit.comm if culprit else 'a task'} walked"
            f" {f'{dead.count:,} dead' if dead else 'all'} memory cgroups, {whole:.0%} of what"
            f" {case.place} did for {case.seconds:.1f} s{case.beat}"
        ),
        culprit=culprit,
        origin=made_by.origin if made_by else None,
        fix=_fix(case.node, made_by) if made_by else (),
    )


def _are_many(case: Case, dead: DeadCgroups | None) -> bool:
    if dead is None or dead.live is None:
        return False
    return dead.count >= case.limits.dead and dead.count > dead.live


def _against(case: Case, dead: DeadCgroups | None, walked: float) -> tuple[list[Evidence], float]:
    found, doubt = [], 0.0
    if dead is None:
        text = "how many memory cgroups are dead was not recorded"
        found, doubt = [case.evidence(text, "cgroups")], 0.3
    elif not _are_many(case, dead):
        found, doubt = [case.evidence(f"only {_describe(dead)}", "cgroups")], 0.6
    if case.samples.now.share(WALK, inside=CHARGES) > case.limits.for_a_limit * walked:
        text = "the walk is for a cgroup at its own limit"
        return [*found, case.evidence(text, "samples", case.core)], max(doubt, 0.6)
    return found, doubt


def _leak(case: Case, dead: DeadCgroups | None, made_by: Producer | None) -> list[Evidence]:
    """How many are dead and how fast they grow, and who leaves them behind."""
    found = []
    if dead is not None and _are_many(case, dead):
        growth = dead.describe_growth()
        text = _describe(dead)
        found.append(case.evidence(f"{text}: {growth}" if growth else text, "cgroups"))
    return [*found, *([case.evidence(made_by.words, made_by.table)] if made_by else [])]


def _describe(dead: DeadCgroups) -> str:
    live = f", {dead.live:,} alive" if dead.live is not None else ""
    rate = f", {dead.per_hour:,.0f} more per hour" if dead.grown else ""
    return f"{dead.count:,} memory cgroups are dead{live}{rate}"


def _fix(node: Node, made_by: Producer) -> tuple[str, ...]:
    """A unit is stopped only where it is itself what dies and comes again: below one that lives
    others make the cgroups.
    """
    name = made_by.origin.name
    loop = loop_of(made_by.origin, node)
    if loop is not None and loop.unit == name:
        text = f"it re-creates container {loop.title}, and each leaves a dead cgroup"
        return (f"systemctl disable --now {name}  # {text}; if it must run, fix why it dies",)
    left = [path for leak in leaks(node)[:1] for path in leak.paths]
    is_itself = (
        made_by.table == "units" or sum(path.endswith(f"/{name}") for path in left) > len(left) / 2
    )
    if made_by.origin.kind == "container":
        return (f"stop or fix container {name}: it leaves a dead cgroup at each start",)
    if is_itself and _restarts(node, name):
        return (
            (
                f"systemctl disable --now {name}  # stops the leak; if it must run, fix why it"
                " restarts"
            ),
        )
    if is_itself:
        return (
            (
                f"find what starts {name} again and again (systemctl status {name}): each start"
                " leaves a dead cgroup"
            ),
        )
    return (f"find what makes cgroups below {name}, and stop it: each leaves a dead one behind",)


def _restarts(node: Node, unit: str) -> bool:
    """Services that systemd starts again; a scope is made by others, and a user's manager comes and
    goes with its user.
    """
    is_service = unit.endswith(".service") and not unit.startswith("user@")
    return is_service and unit in dict(restarts(node, "units", "unit"))


CAUSE = Cause(
    slug="zombie-memcg-walk",
    title="dead memory cgroups are walked one by one",
    confirming=(
        "the walk over memory cgroups in the core's samples, and a thousand or more of them dead,"
        " more than are alive"
    ),
    would_confirm=(
        "as many dead memory cgroups as the walk needs (field 3 of /proc/cgroups against"
        " directories)"
    ),
    assess=assess,
    thresholds=LIMITS,
    fix=(
        (
            "purge the dead cgroups without a reboot: necroscope treat purge (shows the plan;"
            " --yes runs it)"
        ),
        (
            "if that is not possible: sync; echo 1 > /proc/sys/vm/drop_caches, on a core without"
            " network queues"
        ),
        (
            "the risk of drop_caches: the whole node has a cold cache and a burst of I/O, and the"
            " kernel walks all dead cgroups again"
        ),
        "if tmpfs or shared memory files pin them, delete those files: reclaim does not free them",
        "if that is not enough, drain the node and reboot it",
        (
            "a kernel from 5.8 on reads memory.numa_stat without the walk; from 7.2 on dead cgroups"
            " are not pinned by cache pages"
        ),
    ),
    verify=(
        (
            "the memory line of /proc/cgroups (third number) falls to the number of directories and"
            " does not grow again"
        ),
        (
            "the core has no more seconds at 100 % system: `necroscope diagnose` of the next hour"
            " is empty"
        ),
    ),
    will_not_help=(
        WillNotHelp(
            "huge pages or another allocator",
            "the time goes into cgroups, not into the application's memory",
        ),
        WillNotHelp(
            "taskset of the application, IRQ pinning",
            "the reader may run on any core, and before Linux 5.8 the walk does not even yield",
        ),
        WillNotHelp(
            "restarting the reader", "the dead cgroups stay, and the next read walks them again"
        ),
        WillNotHelp(
            "a larger receive ring", "it holds milliseconds of packets; the walk takes seconds"
        ),
    ),
)
