"""A cgroup has used up its CPU quota and waits, while cores may be free.

Signature: nr_throttled and throttled time of one cgroup rise period by period (100 ms mostly); its tasks run in bursts and stand
still in between; no core is full, the node has nothing to complain of.
Confirming signal: throttled time of a third of the wall time and more in cpu.stat of that cgroup; or half of that, and it was
throttled in every fourth period and more (the limit of the alert CPUThrottlingHigh).
Source: kubernetes #67577; commit de53fd7aedb1 (v5.4, expiry of local slices); Documentation/scheduler/sched-bwc.rst.
"""

from typing import Final

from necroscope.analysis.case import Case
from necroscope.analysis.cause import Assessment, Cause
from necroscope.analysis.episodes import Episode, Kind
from necroscope.analysis.report import Culprit, Evidence, Origin, WillNotHelp
from necroscope.model.container_paths import parse_unit

_CONFIRMED: Final = 0.3
_ALL_OF_IT: Final = 0.4
# A period is 100 ms unless somebody chose another.
_PERIODS_PER_S: Final = 10.0
_OF_PERIODS: Final = 0.25
_IDLE: Final = 0.1


def assess(case: Case) -> Assessment | None:
    throttled = [episode for episode in case.episodes if episode.kind is Kind.THROTTLED and episode.subject]
    if not throttled:
        return None
    worst = max(throttled, key=lambda episode: episode.level * episode.seconds)
    path = worst.subject or "/"
    periods = _share_of_periods(case, worst)
    against, doubt = _against(case)
    culprit = _culprit(case, path)
    who = culprit.comm or path
    return Assessment(
        explains=min(1.0, worst.level / _ALL_OF_IT),
        is_confirmed=worst.level >= _CONFIRMED or (worst.level >= _CONFIRMED / 2 and periods >= _OF_PERIODS),
        evidence=[_seen(case, episode) for episode in sorted(throttled, key=lambda one: -one.level)[:3]] + _idle(case),
        against=against,
        doubt=doubt,
        would_confirm="nr_throttled and throttled time in cpu.stat of the cgroup",
        summary=f"{who} waits for its own CPU quota: {worst.level:.1f} s of its threads' time a second are throttled in {path}",
        culprit=culprit,
        origin=Origin("unit", unit) if (unit := parse_unit(path)) and path.endswith(unit) else Origin("cgroup", path),
        fix=(
            f"raise or remove the CPU limit of {path} (cpu.max, cpu.cfs_quota_us, limits.cpu), or allow bursts (cpu.max.burst)",
        ),
    )


def _seen(case: Case, episode: Episode) -> Evidence:
    return case.seen(episode.text, episode.table, None, episode.span)


def _share_of_periods(case: Case, worst: Episode) -> float:
    rows = case.columns("cgroups").within([(worst.from_ns, worst.to_ns + 1)])
    times = rows.at(rows["path"] == worst.subject).total("nr_throttled") or 0.0
    return times / max(worst.seconds, 1.0) / _PERIODS_PER_S


def _idle(case: Case) -> list[Evidence]:
    idle = case.machine_share("idle")
    return [case.seen(f"meanwhile the cores were {idle:.0%} idle", "cores")] if idle is not None and idle >= _IDLE else []


def _against(case: Case) -> tuple[list[Evidence], float]:
    """A core that is held by something else is another story, to which the throttling only belongs in time."""
    held = [episode for episode in case.episodes if episode.is_strong]
    if held:
        return [case.seen(held[0].text, held[0].table, held[0].cpu, held[0].span)], 0.6
    return [], 0.0


def _culprit(case: Case, path: str) -> Culprit:
    """The busiest program of the cgroup; samples name the memory cgroup, which has the same path on most nodes."""
    own = [task for task in case.machine.tasks() if task.cgroup and (task.cgroup == path or task.cgroup.startswith(f"{path}/"))]
    return Culprit(own[0].comm, own[0].pid, own[0].cgroup) if own else Culprit(cgroup=path)


CAUSE = Cause(
    slug="cpu-quota-throttle",
    title="a cgroup waits for its own CPU quota",
    confirming="throttled time of a third of the wall time in cpu.stat of one cgroup, or in every fourth period",
    assess=assess,
    fix=(
        "run no more threads than the quota has cores (GOMAXPROCS, OMP_NUM_THREADS): each period they use it up together",
        "for latency: requests without a limit, or whole cores by a cpuset",
    ),
    verify=("nr_throttled of the cgroup stands still",),
    will_not_help=(
        WillNotHelp("a bigger node", "the quota is the same there"),
        WillNotHelp("a higher priority or nice value", "a throttled group is off the core whoever else wants it"),
    ),
)
