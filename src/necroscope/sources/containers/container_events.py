"""Rows of `events` for what happened to containers; a crash loop becomes a few rows and a count,
not a flood.
"""

from collections import Counter
from collections.abc import Iterable
from typing import Final

from necroscope.model.event import ERROR, NOTICE, WARNING
from necroscope.model.reading import Row
from necroscope.sources.containers.docker_api import ContainerEvent
from necroscope.sources.containers.kubernetes import LoggedContainer
from necroscope.sources.containers.maker_unit import ContainerMaker
from necroscope.sources.service_event import Fields, service_event

EACH_LIMIT: Final = 20
_VERBS: Final = {
    "container_die": "died",
    "container_start": "started",
    "container_oom": "ran out of memory",
}
_SEVERITIES: Final = {"container_die": WARNING, "container_start": NOTICE, "container_oom": ERROR}


def daemon_events(events: Iterable[ContainerEvent], runtime: str, ahead_ns: int) -> list[Row]:
    """At most `EACH_LIMIT` rows of a kind for each container; the last of them counts those left
    out.
    """
    ordered = sorted(events)
    total = Counter((event.container, event.kind) for event in ordered)
    written: Counter[tuple[str, str]] = Counter()
    rows = []
    for event in ordered:
        key = (event.container, event.kind)
        written[key] += 1
        if written[key] <= EACH_LIMIT:
            more = total[key] - EACH_LIMIT if written[key] == EACH_LIMIT else 0
            rows.append(_row(event, runtime, ahead_ns, more))
    return rows


def restart_event(
    before: LoggedContainer, after: LoggedContainer, now_ns: int, ahead_ns: int
) -> Row:
    """A container of Kubernetes whose log has a higher number than the last time."""
    count = after.restarts - before.restarts
    message = (
        f"container {after.name} of pod {after.namespace}/{after.pod} started again, restart"
        f" {after.restarts}"
    )
    fields = {
        "name": after.name,
        "namespace": after.namespace,
        "pod": after.pod,
        "pod_uid": after.pod_uid,
        "container": after.container,
        "restarts": after.restarts,
        "restarts_now": count,
    }
    return service_event(
        min(now_ns, after.restarted_ns + ahead_ns), "container_start", message, fields, WARNING
    )


def made_event(name: str, maker: ContainerMaker, now_ns: int) -> Row:
    """Which unit makes the containers of a name."""
    message = f"containers {name} are made by {maker.unit}: {maker.how}"
    fields: Fields = {"name": name, "unit": maker.unit, "how": maker.how}
    return service_event(now_ns, "container_made", message, fields, NOTICE)


def _row(event: ContainerEvent, runtime: str, ahead_ns: int, more: int) -> Row:
    code = f" with exit code {event.exit_code}" if event.exit_code is not None else ""
    rest = f", and {more} times more" if more else ""
    message = f"container {event.name} ({event.image}) {_VERBS[event.kind]}{code}{rest}"
    fields = {
        "container": event.container,
        "name": event.name,
        "image": event.image,
        "runtime": runtime,
        "exit_code": event.exit_code,
        "more": more or None,
    }
    return service_event(
        event.time_ns + ahead_ns, event.kind, message, fields, _SEVERITIES[event.kind]
    )
