"""From a case to an incident of the report: all causes are weighed, and it is reported only if it
matters.
"""

from collections.abc import Sequence
from typing import Final

from necroscope.analysis.case import Case
from necroscope.analysis.cause import Cause
from necroscope.analysis.causes import all_causes
from necroscope.analysis.episodes import HURT, Episode
from necroscope.analysis.event_cores import JoinedEvent
from necroscope.analysis.quality import shortcomings
from necroscope.analysis.report import UNKNOWN, Incident, ReportedEpisode, ReportedEvent
from necroscope.analysis.verdict import NAMED, Contender, decide, weigh

# A core held for a moment is not an incident unless something suffered; where it was not even full
# it must last longer.
_HELD_S: Final = 4.0
_NAMED_HELD_S: Final = 0.9
_NAMED_ELEVATED_S: Final = 2.0


def weigh_all(case: Case) -> list[Contender]:
    """Every cause that has something to say."""
    lacks = shortcomings(case)
    found = (weigh(case, cause, cause.limits, lacks) for cause in all_causes())
    return [one for one in found if one is not None]


def incident_of(case: Case, contenders: Sequence[Contender]) -> Incident | None:
    """None if it is not an incident: too short to matter, or weak and without a cause."""
    unknown = next(cause for cause in all_causes() if cause.slug == UNKNOWN)
    verdict, alternatives = decide(case, contenders, unknown, shortcomings(case))
    named = (
        next((cause for cause in all_causes() if cause.slug == verdict.cause), None)
        if verdict.confidence >= NAMED
        else None
    )
    matters = _matters(case, named)
    if not matters and not case.cluster.is_question:
        return None
    return Incident(
        id="",
        from_ns=case.window[0],
        to_ns=case.window[1],
        core=case.core,
        mode=case.mode,
        events=tuple(_report_event(event) for event in case.events),
        episodes=tuple(_report_episode(episode) for episode in case.episodes),
        verdict=verdict,
        alternatives=alternatives,
        is_wrong=matters,
        subject=case.cluster.subject,
    )


def _matters(case: Case, named: Cause | None) -> bool:
    """Whether something suffered, or a core was held long enough; what is weak needs a cause, or a
    victim on the same core.
    """
    is_strong = case.cluster.is_strong
    if named is None and not is_strong:
        return case.cluster.has_victim and case.seconds >= _NAMED_ELEVATED_S
    if any(event.happening.is_major for event in case.events):
        return True
    if any(episode.kind in HURT and (episode.is_strong or named) for episode in case.episodes):
        return True
    if named is None:
        return case.seconds >= _HELD_S
    return case.seconds >= max(_NAMED_HELD_S if is_strong else _NAMED_ELEVATED_S, named.ordinary_s)


def _report_event(event: JoinedEvent) -> ReportedEvent:
    what = event.happening
    return ReportedEvent(
        what.time_ns, what.kind, event.core, what.device, event.queue, event.joined_by, what.message
    )


def _report_episode(episode: Episode) -> ReportedEpisode:
    return ReportedEpisode(
        episode.kind.value,
        episode.cpu,
        episode.mode,
        episode.from_ns,
        episode.to_ns,
        episode.text,
        episode.table,
    )
