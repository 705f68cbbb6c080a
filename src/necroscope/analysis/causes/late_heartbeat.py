"""A thread that keeps a rhythm, such as a daemon's heartbeat, came late, and its wait is known.

Signature: a thread that slept and ran at the same interval, look after look, misses beats. It waits
for a core among many others, or for something that is held, or its process was stopped or frozen.
The listener (a scheduler, a quorum, a watchdog) takes the node for dead although it works.
Confirming signal: at least two beats and a second late, and a wait of that thread, or a stop of its
process, that was most of it. A thread that is late without a wait worked, or ended its rhythm by
itself: that is not an incident. Where the mechanism that kept it waiting is known, that mechanism
is the cause, and this is only an alternative. A process of a terminal that is stopped is its user's
affair.
Source: Ray, health_check_timeout_ms and raylet deaths; etcd.io/docs, tuning (heartbeat interval:
`leader failed to send out heartbeat on time`); kubernetes node leases; corosync.conf(5), token.
"""

from typing import Final

from necroscope.analysis.attribution import container_of
from necroscope.analysis.case import Case
from necroscope.analysis.cause import Assessment, Cause
from necroscope.analysis.episodes import EpisodeKind, touches
from necroscope.analysis.evidence import suffering
from necroscope.analysis.late_beats import LateBeat
from necroscope.analysis.report import Culprit, Evidence, Origin, WillNotHelp
from necroscope.analysis.task_origin import cgroup_or_process, process_origin
from necroscope.analysis.task_waits import TaskWait, Waiter
from necroscope.analysis.thresholds import Threshold, Thresholds
from necroscope.analysis.wait_channels import STOPPED

LIMITS: Final = Thresholds(
    late_s=Threshold(1.0, "a listener allows for less than a second"),
    missed=Threshold(2.0, "beats: one that is late is jitter"),
)
_NAMED: Final = 3


def assess(case: Case) -> Assessment | None:
    beats = _beats(case)
    if not beats:
        return None
    worst = max(beats, key=lambda beat: beat.seconds)
    wait, limits = worst.wait, case.limits
    assert wait is not None
    is_late = worst.seconds >= limits.late_s and worst.missed >= limits.missed
    ahead = _ahead(case, wait)
    culprit = _culprit(case, worst, ahead)
    return Assessment(
        explains=0.9,
        is_confirmed=is_late,
        evidence=[
            *(case.evidence(beat.words(), "late_beats") for beat in beats[:_NAMED]),
            case.evidence(wait.words(), "waits"),
            *_in_the_way(case, wait, ahead),
            *suffering(case),
        ],
        summary=f"{worst.words()}: {_why(wait, ahead)}",
        culprit=culprit,
        origin=_origin(wait, culprit),
        fix=_fix(worst, wait),
    )


def _beats(case: Case) -> list[LateBeat]:
    """Those that the incident is about, the latest first."""
    case.node.asked.add("late_beats")
    own = [episode for episode in case.episodes if episode.kind is EpisodeKind.TASK_LATE]
    found = [
        beat
        for beat in case.node.late_beats
        if beat.wait is not None
        and touches(beat.span, case.window)
        and any(_is_of(beat.wait, episode.cpu, episode.subject) for episode in own)
    ]
    return sorted(found, key=lambda beat: -beat.seconds)


def _is_of(wait: TaskWait, cpu: int | None, subject: str | None) -> bool:
    return wait.cpu == cpu if wait.is_for_a_core else wait.subject == subject


def _ahead(case: Case, wait: TaskWait) -> Waiter | None:
    """Who was in its way, if one task was: on a core, the task that had it for most of the wait."""
    if not wait.is_for_a_core:
        return wait.given_by if wait.channel.kind != STOPPED else wait.held_by
    is_most = 2 * wait.by_ran_ns >= wait.span.length_ns
    if wait.by is not None and is_most:
        return wait.by
    most = next((task for task in case.samples.now.tasks() if task.pid), None)
    if most is None or case.core != wait.cpu or most.pid is None:
        return wait.by
    return Waiter(most.comm, most.pid, most.tid or most.pid, most.cgroup, None)


def _culprit(case: Case, beat: LateBeat, ahead: Waiter | None) -> Culprit:
    task = ahead or Waiter(beat.comm, beat.pid, beat.tid, beat.cgroup, None)
    container = container_of(task.cgroup, case.node)
    path = beat.wait.held_stack[::-1] if beat.wait is not None and ahead is not None else ()
    return Culprit(task.comm, task.pid, task.cgroup, None, container, path)


def _origin(wait: TaskWait, culprit: Culprit) -> Origin | None:
    if wait.channel.kind == STOPPED:
        return process_origin(culprit.comm)
    return cgroup_or_process(culprit)


def _why(wait: TaskWait, ahead: Waiter | None) -> str:
    whom = f"{ahead.comm}[{ahead.pid}]" if ahead is not None else None
    if wait.is_for_a_core:
        had = f", which {whom} and others used" if whom else ""
        return f"it waited {wait.seconds:.1f} s for core {wait.cpu}{had}"
    if wait.channel.kind == STOPPED:
        return f"its process was {wait.channel.words}{f', {whom}' if whom else ''}"
    held = f", which {whom} held" if whom else ""
    return f"it waited {wait.seconds:.1f} s {wait.channel.words}{held}"


def _in_the_way(case: Case, wait: TaskWait, ahead: Waiter | None) -> list[Evidence]:
    if wait.is_for_a_core or ahead is None or not wait.held_stack:
        return []
    where = " < ".join(wait.held_stack[:4])
    return [case.evidence(f"{ahead.comm}[{ahead.tid}] was found in {where}", "waits")]


def _fix(beat: LateBeat, wait: TaskWait) -> tuple[str, ...]:
    if wait.is_for_a_core:
        return (
            f"renice -n -10 -p {beat.pid}  # until it starts again",
            "for good: a larger cpu.weight for its cgroup, or a reserved core (systemReserved)",
        )
    return (wait.to_go_on,) if wait.channel.kind == STOPPED else ()


CAUSE = Cause(
    slug="late-heartbeat",
    title="a thread with a steady rhythm, such as a heartbeat, was late",
    confirming=(
        "a thread with a steady rhythm that was a second and two beats late, mostly because it"
        " waited or its process was stopped"
    ),
    would_confirm="its waits and stops (table `waits`, necroscope diagnose --victim NAME)",
    assess=assess,
    thresholds=LIMITS,
    fix=("let the listener wait longer than the longest pause usual here",),
    verify=("no more rows of that thread in table `late_beats`",),
    will_not_help=(
        WillNotHelp("restarting the daemon", "the new one keeps the same rhythm on the same node"),
        WillNotHelp("a faster network", "the beat was not sent"),
    ),
    yields_to=frozenset({"*"}),
)
