"""Deaths of jobs on other nodes, as the collector reports them: those of jobs that have members
here make this node keep the minutes around them, and tell how its own members stood.
"""

from collections.abc import Mapping
from typing import Final

from necroscope.analysis.jobs.reading import newest_members
from necroscope.model.span import Span
from necroscope.model.units import NS_PER_S
from necroscope.store.query import Store

# What the recorder understands as a window to keep, see `recorder.requested_windows`.
CAUSE: Final = "job-died-elsewhere"
# A segment writes its members again, at the latest after this long.
_MEMBERS_NS: Final = 900 * NS_PER_S
# Members of one job die one after the other: that is one death.
_SAME_NS: Final = 60 * NS_PER_S
_KEPT_NS: Final = 3600 * NS_PER_S
_MOST: Final = 256
_RAY: Final = "ray/"


def new_deaths(store: Store, known: Mapping[str, int], deaths: Mapping[str, int]) -> dict[str, int]:
    """Of jobs with members here, that are not known yet. What a Ray cluster's jobs share is part of
    each.
    """
    found: dict[str, int] = {}
    for job, at_ns in deaths.items():
        names = {job, job.rpartition("/")[0]} if job.startswith(_RAY) else {job}
        if abs(known.get(job, 0) - at_ns) <= _SAME_NS:
            continue
        span = Span(max(0, at_ns - _MEMBERS_NS), max(1, at_ns + NS_PER_S))
        own = {member.job for member in newest_members(store, span)} & names
        found |= dict.fromkeys(own | {job}, at_ns) if own else {}
    return found


def noted(known: Mapping[str, int], new: Mapping[str, int]) -> dict[str, int]:
    """The newest of them, of the last hour."""
    every = {**known, **new}
    last_ns = max(every.values(), default=0)
    recent = [item for item in every.items() if last_ns - item[1] <= _KEPT_NS]
    return dict(sorted(recent, key=lambda item: item[1])[-_MOST:])


def window_line(at_ns: int) -> str:
    return f"{at_ns} {at_ns} {CAUSE}"
