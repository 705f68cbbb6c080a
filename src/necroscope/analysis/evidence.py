"""What several causes say: how the core was held, what suffered from it, where to look."""

from typing import Final

from necroscope.analysis.case import Case
from necroscope.analysis.episodes import SUFFERING, EpisodeKind
from necroscope.analysis.event_cores import JoinedEvent
from necroscope.analysis.functions import Functions
from necroscope.analysis.report import Culprit, Evidence
from necroscope.model.span import Span

LIMIT_OF_IO: Final = (
    "see whether a limit makes it wait: io.max, or blkio.throttle.* (v1), of the cgroups in"
    " /proc/PID/cgroup; if none does, see how busy the device is: iostat -x 1"
)


def what_held_the_core(case: Case) -> list[Evidence]:
    """The mode of the core compared with its usual one."""
    return [
        case.evidence(episode.text, episode.table, episode.cpu, episode.span)
        for episode in case.episodes
        if episode.kind in (EpisodeKind.SATURATED, EpisodeKind.ELEVATED, EpisodeKind.USER_BUSY)
        and episode.cpu in (case.core, None)
    ][:2]


def suffering(case: Case) -> list[Evidence]:
    """What waited that should not wait, and what the log says of it."""
    found = [
        case.evidence(episode.text, episode.table, episode.cpu, episode.span)
        for episode in case.episodes
        if episode.kind in SUFFERING
        or episode.kind
        in (
            EpisodeKind.MEMORY_STALLED,
            EpisodeKind.IO_BLOCKED,
            EpisodeKind.THROTTLED,
            EpisodeKind.TASK_BLOCKED,
        )
        or (
            episode.kind in (EpisodeKind.TASK_DELAYED, EpisodeKind.TASK_LATE)
            and episode.cpu == case.core
        )
    ]
    return [*found[:4], *(of_event(case, event) for event in case.events[:3])]


def of_event(case: Case, event: JoinedEvent) -> Evidence:
    """What the log said, and how it is known which core it is of."""
    how = f" (core {event.core}: {event.joined_by})" if event.joined_by else ""
    return case.evidence(
        f"{event.happening.message}{how}",
        "events",
        event.core,
        Span(event.time_ns, event.time_ns + 1),
    )


def in_samples(
    case: Case, group: Functions, what: str, inside: Functions | None = None
) -> Evidence:
    """`what` with its share of the core's samples in the incident and in quiet time: `the walk over
    memory cgroups`.
    """
    now, before = (
        case.samples.now.share(group, inside),
        case.samples.before.time_share(group, inside),
    )
    place = "the machine's" if case.core is None else f"core {case.core}'s"
    return case.evidence(
        f"{what}: {now:.0%} of {place} samples, {before:.1%} of its time before",
        "samples",
        case.core,
    )


def file_of(case: Case, culprit: Culprit | None) -> list[Evidence]:
    """The file that the culprit's system call was about, as captured on the core; anybody's where
    there is no culprit.
    """
    files = [
        row["file"]
        for row in case.tasks
        if row["file"] and (culprit is None or row["comm"] == culprit.comm)
    ]
    return [case.evidence(f"the file is {files[0]}", "tasks", case.core)] if files else []
