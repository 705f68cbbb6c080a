"""Ray as a source of events: node, actor and job deaths, lost objects, fetch time-outs, failed
health checks, hangs.

Files and dashboard are read in a thread every 5 s. The same death is reported by several files: the
first to tell it counts.
"""

import time
from collections.abc import Callable
from dataclasses import dataclass, field
from pathlib import Path
from typing import Final

from necroscope.errors import NecroscopeError
from necroscope.model.clocks import shift_ns
from necroscope.model.event import ERROR, INFO, WARNING
from necroscope.model.reading import Gap, Moment, Reading, Row, Source
from necroscope.model.units import NS_PER_S, format_bytes
from necroscope.sources.background import Background
from necroscope.sources.ray.dashboard import Dashboard
from necroscope.sources.ray.ray_event import RayEvent
from necroscope.sources.ray.session_logs import SessionLogs
from necroscope.sources.service_event import service_event

EVENT_LIMIT: Final = 200
_EVERY_NS: Final = 5 * NS_PER_S
# Looking for Ray in containers means looking at every process, and asking the dashboard makes it
# ask its cluster.
_SELDOM_NS: Final = 60 * NS_PER_S
_KNOWN_LIMIT: Final = 10_000
# Any user may write to these files: a stamp from long ago would make its segment reach there.
_OLDEST_NS: Final = 30 * 86_400 * NS_PER_S
_ERRORS: Final = ("ray_node_dead", "ray_job_failed", "ray_object_lost", "ray_fetch_timeout")


@dataclass(slots=True)
class _Round:
    asked_at: Moment
    realtime_ns: int
    is_seldom: bool
    events: list[RayEvent] = field(default_factory=list)
    skipped_bytes: int = 0
    trouble: NecroscopeError | None = None


class Ray(Source):
    """Rows of `events`."""

    name = "ray"
    tables: tuple[str, ...] = ("events",)

    def __init__(
        self,
        root: Path,
        directory: str,
        dashboard: Dashboard | None = None,
        realtime: Callable[[], int] = time.time_ns,
        root_of: Callable[[int], int] | None = None,
    ) -> None:
        self._logs = SessionLogs(root, directory, root_of)
        self._dashboard = dashboard
        self._realtime = realtime
        self._work: Background[_Round] = Background("ray")
        self._next_ns = 0
        self._next_seldom_ns = 0
        self._known: dict[tuple[str, str], None] = {}
        self._is_dashboard_known = False
        self._trouble: NecroscopeError | None = None

    def read(self, now: Moment) -> Reading:
        reading = Reading()
        try:
            finished = self._work.take()
        except NecroscopeError as error:
            finished, self._trouble = None, error
        if finished is not None:
            self._trouble = (
                finished.trouble if finished.is_seldom or finished.trouble else self._trouble
            )
            self._take(finished, reading)
        if self._work.is_idle and now.monotonic_ns >= self._next_ns:
            self._start(now)
        reading.trouble = self._work.trouble or self._trouble
        self.idle_until_ns = self._next_ns if self._work.is_idle else 0
        return reading

    def close(self) -> None:
        self._work.close()
        if self._work.is_idle:  # else the thread still uses them, and they end with the process
            self._logs.close()

    def _start(self, now: Moment) -> None:
        found = _Round(now, self._realtime(), is_seldom=now.monotonic_ns >= self._next_seldom_ns)
        self._next_ns = now.monotonic_ns + _EVERY_NS
        if found.is_seldom:
            self._next_seldom_ns = now.monotonic_ns + _SELDOM_NS
        self._work.start(lambda: self._round(found))

    def _round(self, found: _Round) -> _Round:
        """In the thread."""
        if found.is_seldom:
            self._logs.find_roots()
        found.events, found.skipped_bytes = self._logs.read(found.realtime_ns)
        if found.is_seldom and self._dashboard is not None:
            try:
                found.events += self._news(self._dashboard.read())
            except NecroscopeError as error:
                found.trouble = error
        return found

    def _news(self, events: list[RayEvent]) -> list[RayEvent]:
        """What was dead before we came is not an event of ours."""
        if self._is_dashboard_known:
            return events
        self._is_dashboard_known = True
        self._known |= {(event.kind, event.key): None for event in events if event.key is not None}
        return []

    def _take(self, found: _Round, reading: Reading) -> None:
        now_ns = found.asked_at.time_ns
        ahead_ns = shift_ns(now_ns, found.realtime_ns)
        news = [event for event in found.events if self._is_news(event)]
        reading.rows["events"] = [_row(event, found, ahead_ns) for event in news[:EVENT_LIMIT]]
        if len(news) > EVENT_LIMIT:
            cause = f"more than {EVENT_LIMIT} events of Ray at once"
            reading.gaps.append(Gap("events", now_ns, now_ns, cause, lost=len(news) - EVENT_LIMIT))
        if found.skipped_bytes:
            cause = f"Ray's logs grow too fast: {format_bytes(found.skipped_bytes)} were not read"
            reading.gaps.append(Gap("events", now_ns, now_ns, cause))

    def _is_news(self, event: RayEvent) -> bool:
        if event.key is None:
            return True
        key = (event.kind, event.key)
        is_news = key not in self._known
        self._known[key] = None
        if len(self._known) > _KNOWN_LIMIT:
            del self._known[next(iter(self._known))]
        return is_news


def _row(event: RayEvent, found: _Round, ahead_ns: int) -> Row:
    """A stamp that cannot be is not believed: then it happened when it was read."""
    time_ns = event.time_ns
    if time_ns is None or not found.realtime_ns - _OLDEST_NS < time_ns < found.realtime_ns:
        time_ns = found.realtime_ns
    severity = (
        ERROR if event.kind in _ERRORS else INFO if event.kind == "ray_job_succeeded" else WARNING
    )
    return service_event(time_ns + ahead_ns, event.kind, event.message, event.fields, severity)
