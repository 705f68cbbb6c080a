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
from necroscope.analysis.episodes import Episode, EpisodeKind
from necroscope.analysis.report import Culprit, Evidence, Origin, WillNotHelp
from necroscope.analysis.thresholds import Threshold, Thresholds
from necroscope.model.container_paths import parse_unit
from necroscope.model.span import Span

LIMITS: Final = Thresholds(
    confirmed=Threshold(0.15, "of the wall time: a seventh of it is felt as latency"),
    all_of_it=Threshold(0.4, "throttled this much of the time, the quota explains all of the wait"),
    of_periods=Threshold(0.25, "the limit of the Kubernetes alert CPUThrottlingHigh"),
    periods_per_s=Threshold(10.0, "a period is 100 ms unless the quota was set with another"),
    idle=Threshold(0.1, "cores that are idle meanwhile are worth saying"),
)


def assess(case: Case) -> Assessment | None:
    throttled = [
        episode
        for episode in case.episodes
        if episode.kind is EpisodeKind.THROTTLED and episode.subject
    ]
    if not throttled:
        return None
    confirmed = [episode for episode in throttled if _is_confirmed(case, episode)]
    worst = max(confirmed or throttled, key=lambda episode: episode.level * episode.seconds)
    path = worst.subject or "/"
    # A core that is held by something else is another story, which has only its time in common.
    held = next((episode for episode in case.episodes if episode.is_strong), None)
    culprit = _culprit(case, path)
    unit = parse_unit(path)
    return Assessment(
        explains=min(1.0, worst.level / case.limits.all_of_it),
        is_confirmed=bool(confirmed),
        evidence=[
            *(_evidence(case, episode) for episode in sorted(throttled, key=_by_level)[:3]),
            *_idle(case),
        ],
        against=[_evidence(case, held)] if held else (),
        doubt=0.6 if held else 0.0,
        summary=(
            f"{f'{culprit.comm} in {path}' if culprit.comm else path} is throttled by its CPU"
            f" quota: it loses {worst.level:.1f} s of thread time per second"
        ),
        culprit=culprit,
        origin=Origin("unit", unit) if unit and path.endswith(unit) else Origin("cgroup", path),
        fix=(
            (
                f"raise or remove the CPU limit of {path} (cpu.max, cpu.cfs_quota_us, limits.cpu),"
                " or allow bursts (cpu.max.burst)"
            ),
        ),
    )


def _by_level(episode: Episode) -> float:
    return -episode.level


def _evidence(case: Case, episode: Episode) -> Evidence:
    return case.evidence(episode.text, episode.table, episode.cpu, episode.span)


def _is_confirmed(case: Case, episode: Episode) -> bool:
    rows = case.counters.columns("cgroups").within([Span(episode.from_ns, episode.to_ns + 1)])
    times = rows.at(rows["path"] == episode.subject).total("nr_throttled") or 0.0
    of_periods = times / max(episode.seconds, 1.0) / case.limits.periods_per_s
    return episode.level >= case.limits.confirmed and of_periods >= case.limits.of_periods


def _idle(case: Case) -> list[Evidence]:
    idle = case.counters.machine_share("idle") or 0.0
    text = f"meanwhile the cores were {idle:.0%} idle"
    return [case.evidence(text, "cores")] if idle >= case.limits.idle else []


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
    title="a cgroup is throttled by its own CPU quota",
    confirming=(
        "cpu.stat shows one cgroup throttled in every fourth period, for a seventh of the wall time"
    ),
    would_confirm="nr_throttled and throttled time in cpu.stat of the cgroup",
    assess=assess,
    thresholds=LIMITS,
    fix=(
        (
            "run no more threads than the quota has cores (GOMAXPROCS, OMP_NUM_THREADS): more"
            " threads use it up early in each period"
        ),
        "for latency: CPU requests without a limit, or whole cores in a cpuset",
    ),
    verify=("nr_throttled in the cgroup's cpu.stat no longer grows",),
    will_not_help=(
        WillNotHelp("a bigger node", "the quota is the same there"),
        WillNotHelp(
            "a higher priority or nice value",
            "a throttled group does not run, even on an idle core",
        ),
    ),
)
