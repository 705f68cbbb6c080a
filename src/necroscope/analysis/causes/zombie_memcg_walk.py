"""Dead memory cgroups are walked, one by one, in the kernel.

Signature: one core 100 % in system mode for a tenth of a second to many seconds, at the period of
whoever reads statistics or reclaims: kubelet, cadvisor, an agent. Its stacks are in a walk over all
memory cgroups; far more of them are dead than alive.
Confirming signal: the walk in the samples of that core, and a thousand dead memory cgroups or more,
more of them dead than alive. A count alone is no cause: with 69,000 of them a read of root
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
from necroscope.analysis.origin import Dead, Producer, dead_cgroups, leaks, producer, restarts
from necroscope.analysis.report import Evidence, WillNotHelp

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
MANY: Final = 1_000
_LEAST: Final = 0.15


def assess(case: Case) -> Assessment | None:
    walked = case.samples.now.share(WALK)
    whole = max(
        walked,
        case.samples.now.share(READERS),
        case.samples.now.share(RECLAIMS) if walked >= _LEAST else 0.0,
    )
    if walked < _LEAST and not (
        case.samples.now.share(READERS) >= _LEAST and case.samples.now.self_share(READERS) >= 0.05
    ):
        return None
    dead = dead_cgroups(case.node, case.window[1])
    evidence = [
        in_samples(case, WALK | READERS, "the walk over all memory cgroups"),
        *what_held_the_core(case)[:1],
    ]
    against: list[Evidence] = []
    doubt = 0.0
    if dead is None:
        against.append(case.seen("how many memory cgroups are dead was not recorded", "cgroups"))
        doubt = 0.3
    elif not _is_many(dead):
        against.append(case.seen(f"only {_told(dead)}", "cgroups"))
        doubt = 0.6
    else:
        growth = dead.told_growth()
        evidence.append(case.seen(f"{_told(dead)}: {growth}" if growth else _told(dead), "cgroups"))
    if case.samples.now.share(WALK, inside=CHARGES) > 0.5 * walked:
        against.append(case.seen("the walk is for a cgroup at its own limit", "samples", case.core))
        doubt = max(doubt, 0.6)
    made_by = producer(case.node)
    if made_by:
        evidence.append(case.seen(made_by.told, made_by.table))
    culprit = case.culprit(WALK | READERS)
    who = culprit.comm if culprit else "a task"
    count = f"{dead.count:,} dead" if dead else "all"
    return Assessment(
        explains=whole,
        is_confirmed=dead is not None and _is_many(dead),
        evidence=[*evidence, *suffering(case)],
        against=against,
        doubt=doubt,
        would_confirm=(
            "as many dead memory cgroups as the walk needs (field 3 of /proc/cgroups against"
            " directories)"
        ),
        summary=(
            f"{who} walked {count} memory cgroups, {whole:.0%} of what {case.place} did for"
            f" {case.seconds:.1f} s{case.beat}"
        ),
        culprit=culprit,
        origin=made_by.origin if made_by else None,
        fix=_fix(case.node, made_by) if made_by else (),
    )


def _is_many(dead: Dead) -> bool:
    return dead.count >= MANY and dead.live is not None and dead.count > dead.live


def _told(dead: Dead) -> str:
    live = f", {dead.live:,} alive" if dead.live is not None else ""
    rate = f", {dead.per_hour:,.0f} more an hour" if dead.grown else ""
    return f"{dead.count:,} memory cgroups are dead{live}{rate}"


def _fix(node: Node, made_by: Producer) -> tuple[str, ...]:
    """A unit is stopped only where it is itself what dies and comes again: below one that lives
    others make the cgroups.
    """
    name = made_by.origin.name
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
    return (f"find what makes cgroups below {name}, and stop that: each leaves a dead one behind",)


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
        "the walk over memory cgroups in the core's samples, and a thousand of them dead or more,"
        " more than are alive"
    ),
    assess=assess,
    fix=(
        (
            "purge the dead without a reboot: sync; echo 1 > /proc/sys/vm/drop_caches, on a core"
            " without network queues"
        ),
        (
            "the risk of that: a cold cache and a burst of I/O for the whole node, and one more"
            " walk over them all"
        ),
        "if tmpfs or shared memory files pin them, delete those files: reclaim does not free them",
        "drain and reboot where that is not enough",
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
            "a larger receive ring", "it holds milliseconds of packets, the walk takes seconds"
        ),
    ),
)
