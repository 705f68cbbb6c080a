"""Members of jobs as rows of the lake: once per hour of their life, and with how they stood when
they end, when their job stands still, or when it dies on another node.
"""

import json
from collections.abc import Iterator, Mapping
from typing import Any, Final

from necroscope.analysis.jobs.member import Member
from necroscope.analysis.jobs.reading import Standing, newest_members
from necroscope.analysis.jobs.stops import LOOK_BACK_NS
from necroscope.model.span import Span
from necroscope.model.units import NS_PER_S
from necroscope.segment.reader import SegmentReader
from necroscope.store.query import Store

HOUR_NS: Final = 3600 * NS_PER_S
_STALLED: Final = "job_stalled"


def member_rows(
    store: Store, reader: SegmentReader, deaths: Mapping[str, int], now_ns: int
) -> Iterator[dict[str, Any]]:
    """Of a segment. `deaths` are jobs that died elsewhere, and when by this node's clock; `now_ns`
    becomes `analysed_ns`, which is not part of a row's identity.
    """
    first_ns, last_ns = reader.span
    segment = Span(first_ns, last_ns + 1)
    members = newest_members(store, segment)
    if not members:
        return
    moments = _stalls(reader)
    moments |= {job: at_ns for job, at_ns in deaths.items() if segment.contains(at_ns)}
    standing: Standing | None = None
    for member in members:
        is_asked = member.ended_ns is None and member.job in moments
        if is_asked or member.has_failed or (member.ended_ns is not None and member.words):
            standing = standing or Standing(
                store, Span(max(0, first_ns - LOOK_BACK_NS), segment.to_ns)
            )
            member = standing.of(member, moments.get(member.job, last_ns))  # noqa: PLW2901
        time_ns = moments[member.job] if is_asked else _time_ns(member)
        yield _row(member, time_ns, now_ns)


def _time_ns(member: Member) -> int:
    """Its end; of one that lives the hour, so that its rows of twelve segments are one."""
    if member.ended_ns is not None:
        return member.ended_ns
    return max(member.started_ns, member.seen_ns // HOUR_NS * HOUR_NS)


def _stalls(reader: SegmentReader) -> dict[str, int]:
    """Jobs that stood still, and when that was noticed last."""
    found = {}
    rows = reader.read("events", -(1 << 63), (1 << 63) - 1, ("time", "kind", "fields")).to_pylist()
    for row in rows:
        if row["kind"] == _STALLED:
            try:
                found[str(json.loads(row["fields"])["job"])] = int(row["time"])
            except (ValueError, KeyError, TypeError):
                continue
    return found


def _row(member: Member, time_ns: int, now_ns: int) -> dict[str, Any]:
    stop = member.stop
    return {
        "time": time_ns,
        "job": member.job,
        "kind": member.kind,
        "role": member.role,
        "rank": member.rank,
        "world_size": member.world_size,
        "attempt": member.attempt,
        "pid": member.pid,
        "comm": member.comm,
        "cgroup": member.cgroup,
        "started_ns": member.started_ns,
        "leader": member.leader,
        "address": member.address,
        "cores": member.cores,
        "gpus": member.gpus,
        "ended_ns": member.ended_ns,
        "status": member.status,
        "words": member.words,
        "peer": member.peer,
        "stop_how": stop.how if stop else None,
        "stop_from": stop.from_ns if stop else None,
        "stop_to": stop.to_ns if stop else None,
        "stop_core": stop.core if stop else None,
        "stop_by": stop.by if stop else None,
        "stop_by_pid": stop.by_pid if stop else None,
        "stop_by_cgroup": stop.by_cgroup if stop else None,
        "analysed_ns": now_ns,
    }
