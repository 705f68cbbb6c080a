"""Tasks of one cgroup wait for a core that another cgroup's tasks have nearly all the time.

Signature: ordinary tasks of one container or unit are runnable and wait, again and again, for tens
or hundreds of milliseconds; the core is full with another's work of the same class, which has far
more of it than the waiters.
Confirming signal: the tasks of one cgroup waited for the core: a fifth of a second or more at the
longest, and a second in all. Meanwhile samples show another cgroup on that core for most of the
time, and the waiters themselves hardly at all. Within one cgroup it is its own crowd; behind a
real-time task it is that task.
Source: Netflix, noisy neighbour detection with eBPF (2024);
Documentation/scheduler/sched-eevdf.rst.
"""

from typing import Final

from necroscope.analysis.attribution import container_of
from necroscope.analysis.case import Case
from necroscope.analysis.cause import Assessment, Cause
from necroscope.analysis.core_queue import CoreQueue, core_queue
from necroscope.analysis.episodes import was_throttled
from necroscope.analysis.evidence import suffering, what_held_the_core
from necroscope.analysis.report import Culprit, WillNotHelp
from necroscope.analysis.task_origin import cgroup_or_process
from necroscope.analysis.thresholds import Threshold, Thresholds

LIMITS: Final = Thresholds(
    longest_s=Threshold(0.2, "shorter waits are the turns of a fair scheduler"),
    total_s=Threshold(1.0, "less is a moment of a busy node"),
    had=Threshold(0.6, "of the core's samples: it is the neighbour's work that fills the core"),
    full=Threshold(0.1, "of all cores idle: with less the machine is overloaded"),
    clearly=Threshold(0.8, "of the core's samples: then it is one cgroup, however full the rest"),
    own=Threshold(0.2, "of the core's samples: those who wait do not fill it themselves"),
)


def assess(case: Case) -> Assessment | None:
    queue = core_queue(case)
    if queue is None:
        return None
    # Those who fill the core wait for each other too; a victim is who hardly had it.
    shares = {cgroup: _share(queue, cgroup) for cgroup in queue.waited_s}
    victim = next((one for one, share in shares.items() if share <= case.limits.own), None)
    noisy = next((one for one in queue.had if victim and not _is_within(one, victim)), None)
    if victim is None or noisy is None:
        return None
    own, queue = shares[victim], queue.of(victim)
    had, waited_s = queue.had[noisy], queue.waited_s[victim]
    culprit = _culprit(case, noisy)
    who = ", ".join(queue.programs[:3])
    waited = f"tasks of {victim} ({who}) waited {waited_s:.1f} s in all for core {case.core}"
    fill = (
        f"tasks of {noisy} used {had:.0%} of core {case.core} meanwhile, those of {victim}"
        f" {own:.0%}"
    )
    return Assessment(
        explains=had,
        is_confirmed=_is_felt(case, queue, victim) and had >= _least(case),
        evidence=[
            case.evidence(f"{waited}, the longest {queue.longest_s:.2f} s", "waits", case.core),
            case.evidence(fill, "samples", case.core),
            *what_held_the_core(case)[:1],
            *suffering(case),
        ],
        summary=(
            f"{culprit.comm} of {noisy} filled core {case.core}, and {queue.programs[0]} of"
            f" {victim} waited up to {queue.longest_s:.1f} s for it"
        ),
        culprit=culprit,
        origin=cgroup_or_process(culprit),
    )


def _least(case: Case) -> float:
    """On an overloaded machine everyone waits: only who has the core nearly alone is to blame."""
    idle, limits = case.counters.machine_share("idle"), case.limits
    return limits.clearly if idle is not None and idle < limits.full else limits.had


def _is_felt(case: Case, queue: CoreQueue, victim: str) -> bool:
    """Waits that are long and many, of a cgroup of its own that has quota left."""
    is_throttled = was_throttled(case.node.episodes, victim, case.window)
    is_long = queue.longest_s >= case.limits.longest_s
    is_much = queue.waited_s[victim] >= case.limits.total_s
    return is_long and is_much and victim != "/" and not is_throttled


def _culprit(case: Case, cgroup: str) -> Culprit:
    task = next(task for task in case.samples.now.tasks() if (task.cgroup or "/") == cgroup)
    container = container_of(task.cgroup, case.node)
    path = case.samples.now.path()
    return Culprit(task.comm, task.pid, task.cgroup, None, container, path)


def _share(queue: CoreQueue, cgroup: str) -> float:
    return sum(share for other, share in queue.had.items() if _is_within(other, cgroup))


def _is_within(cgroup: str, other: str) -> bool:
    return cgroup == other or (cgroup.startswith(f"{other.rstrip('/')}/") and other != "/")


CAUSE = Cause(
    slug="noisy-neighbour",
    title="tasks of one cgroup wait for a core that another cgroup fills",
    confirming=(
        "long waits for the core by one cgroup, while another cgroup's tasks have most of its"
        " samples"
    ),
    would_confirm="waits of ordinary tasks (setting `waits`) and samples of the same seconds",
    assess=assess,
    thresholds=LIMITS,
    fix=(
        "give the victim a larger weight (cpu.weight, requests) or cores of its own (cpuset)",
        "limit the neighbour: cpu.max, or fewer workers than cores",
    ),
    verify=("the waits of the victim's cgroup stay short (table `waits`)",),
    will_not_help=(
        WillNotHelp("faster disks or network", "the victim waits for a core"),
        WillNotHelp("a limit for the victim", "it would only wait longer"),
    ),
    yields_to=frozenset({"rt-hog", "userspace-hog", "cpu-quota-throttle"}),
)
