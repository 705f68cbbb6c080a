"""A cgroup has used up its CPU quota and waits, while cores may be free.

Signature: nr_throttled and throttled time of one cgroup rise period by period (100 ms mostly); its
tasks run in bursts and stand still in between; no core is full, the node has nothing to complain
of.
Confirming signal: that cgroup is throttled in every fourth period and more (the limit of the alert
CPUThrottlingHigh), for a seventh of the wall time and more. The time alone does not tell: the
kernel adds it up over cores, so that one burst of many threads is seconds of it.
Source: kubernetes #67577; commit de53fd7aedb1 (v5.4, expiry of local slices);
Documentation/scheduler/sched-bwc.rst.
"""

from typing import Final

from necroscope.analysis.case import Case
from necroscope.analysis.cause import Assessment, Cause
from necroscope.analysis.episodes import Episode, Kind
from necroscope.analysis.report import Culprit, Evidence, Origin, WillNotHelp
from necroscope.model.container_paths import parse_unit

_CONFIRMED: Final = 0.15
_ALL_OF_IT: Final = 0.4
# A period is 100 ms unless somebody chose another.
_PERIODS_PER_S: Final = 10.0
_OF_PERIODS: Final = 0.25
_IDLE: Final = 0.1


def assess(case: Case) -> Assessment | None:
    throttled = [
        episode for episode in case.episodes if episode.kind is Kind.THROTTLED and episode.subject
    ]
    if not throttled:
        return None
    confirmed = [episode for episode in throttled if _is_confirmed(case, episode)]
    worst = max(confirmed or throttled, key=lambda episode: episode.level * episode.seconds)
    path = worst.subject or "/"
    against, doubt = _against(case)
    culprit = _culprit(case, path)
    who = culprit.comm or path
    return Assessment(
        explains=min(1.0, worst.level / _ALL_OF_IT),
        is_confirmed=bool(confirmed),
        evidence=[
            _seen(case, episode) for episode in sorted(throttled, key=lambda one: -one.level)[:3]
        ]
        + _idle(case),
        against=against,
        doubt=doubt,
        would_confirm="nr_throttled and throttled time in cpu.stat of the cgroup",
        summary=(
            f"{who} waits for its own CPU quota: {worst.level:.1f} s of its threads' time a second"
            f" are throttled in {path}"
        ),
        culprit=culprit,
        origin=(
            Origin("unit", unit)
            if (unit := parse_unit(path)) and path.endswith(unit)
            else Origin("cgroup", path)
        ),
        fix=(
            (
                f"raise or remove the CPU limit of {path} (cpu.max, cpu.cfs_quota_us, limits.cpu),"
                " or allow bursts (cpu.max.burst)"
            ),
        ),
    )


def _seen(case: Case, episode: Episode) -> Evidence:
    return case.seen(episode.text, episode.table, None, episode.span)


def _is_confirmed(case: Case, episode: Episode) -> bool:
    return episode.level >= _CONFIRMED and _share_of_periods(case, episode) >= _OF_PERIODS


def _share_of_periods(case: Case, episode: Episode) -> float:
    rows = case.counters.columns("cgroups").within([(episode.from_ns, episode.to_ns + 1)])
    times = rows.at(rows["path"] == episode.subject).total("nr_throttled") or 0.0
    return times / max(episode.seconds, 1.0) / _PERIODS_PER_S


def _idle(case: Case) -> list[Evidence]:
    idle = case.counters.machine_share("idle")
    return (
        [case.seen(f"meanwhile the cores were {idle:.0%} idle", "cores")]
        if idle is not None and idle >= _IDLE
        else []
    )


def _against(case: Case) -> tuple[list[Evidence], float]:
    """A core that is held by something else is another story, to which the throttling only belongs
    in time.
    """
    held = [episode for episode in case.episodes if episode.is_strong]
    if held:
        return [case.seen(held[0].text, held[0].table, held[0].cpu, held[0].span)], 0.6
    return [], 0.0


def _culprit(case: Case, path: str) -> Culprit:
    """The busiest program of the cgroup; samples name the memory cgroup, which has the same path on
    most nodes.
    """
    own = [
        task
        for task in case.samples.machine.tasks()
        if task.cgroup and (task.cgroup == path or task.cgroup.startswith(f"{path}/"))
    ]
    return Culprit(own[0].comm, own[0].pid, own[0].cgroup) if own else Culprit(cgroup=path)


CAUSE = Cause(
    slug="cpu-quota-throttle",
    title="a cgroup waits for its own CPU quota",
    confirming=(
        "one cgroup throttled in every fourth period, and a seventh of the wall time, in its"
        " cpu.stat"
    ),
    assess=assess,
    fix=(
        (
            "run no more threads than the quota has cores (GOMAXPROCS, OMP_NUM_THREADS): each"
            " period they use it up together"
        ),
        "for latency: requests without a limit, or whole cores by a cpuset",
    ),
    verify=("nr_throttled of the cgroup stands still",),
    will_not_help=(
        WillNotHelp("a bigger node", "the quota is the same there"),
        WillNotHelp(
            "a higher priority or nice value",
            "a throttled group is off the core whoever else wants it",
        ),
    ),
)
