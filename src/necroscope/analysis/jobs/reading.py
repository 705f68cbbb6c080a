"""Jobs out of a recording: their members, how each stood, and what the node went through."""

from collections.abc import Iterable
from dataclasses import replace
from typing import Any, Final

import numpy as np

from necroscope.analysis.columns import ColumnArrays, read
from necroscope.analysis.jobs.core_holder import with_core_holder
from necroscope.analysis.jobs.member import JobNode, Member, NodeEvent, NodeIncident
from necroscope.analysis.jobs.network_loss import JOB_EVENTS
from necroscope.analysis.jobs.stops import (
    LOOK_BACK_NS,
    MemberWait,
    ProgressTick,
    Throttle,
    stop_of,
)
from necroscope.analysis.machine_episodes import throttled_rows
from necroscope.analysis.recording import Recording
from necroscope.analysis.report import Incident
from necroscope.analysis.task_waits import TaskWait, task_waits
from necroscope.model.span import Span
from necroscope.model.units import NS_PER_S

_EVENT: Final = ("kind", "message", "by_kernel", "pid", "cpu", "device")
# A wait that began before is in rows that come after.
_LATE_NS: Final = 120 * NS_PER_S
_QUOTA: Final = ("path", "visible", "throttled_ns", "nr_throttled")
_TICK: Final = ("time", "cpu", "state", "elapsed_ns", "cpu_ns", "delay_ns")


def newest_members(recording: Recording, span: Span, node: str | None = None) -> list[Member]:
    """Of each process its last row of the span."""
    rows = read(recording, "job_members", span)
    newest: dict[tuple[int, str], int] = {}
    for place in range(len(rows)):
        newest[int(rows["pid"][place]), str(rows["job"][place])] = place
    name = node or recording.info().node
    return [_member(rows, place, name) for place in newest.values()]


class Standing:
    """How members of a recording stood before a moment, from its ticks and waits in a span."""

    def __init__(self, recording: Recording, span: Span) -> None:
        self._recording = recording
        self._ticks, self._waits = _Ticks(recording, span), _Waits(recording, span)
        rows = read(recording, "cgroups", _waits_span(span), _QUOTA)
        self._throttled = list(throttled_rows(rows))

    def of(self, member: Member, last_ns: int) -> Member:
        """Before its end, or before `last_ns` if it lives."""
        until_ns = member.ended_ns if member.ended_ns is not None else last_ns
        own = self._ticks.of(member.pid, member.job)
        seen_ns = max([member.seen_ns, *(tick.time_ns for tick in own[-1:])])
        stop = stop_of(own, self._waits.of(member.pid), until_ns, self._throttles(member.cgroup))
        if stop is not None:
            stop = with_core_holder(self._recording, stop, member)
        return replace(member, stop=stop, seen_ns=seen_ns)

    def _throttles(self, cgroup: str | None) -> list[Throttle]:
        return [
            Throttle(int(to_ns - elapsed), int(to_ns), int(throttled), path)
            for path, rows, elapsed_ns, _ in self._throttled
            if f"{cgroup or '/'}/".startswith(f"{path.rstrip('/')}/")
            for to_ns, elapsed, throttled in zip(
                rows["time"], elapsed_ns, rows["throttled_ns"], strict=True
            )
        ]


def read_node(
    recording: Recording, span: Span, incidents: Iterable[Incident], node: str | None = None
) -> JobNode:
    """`incidents` are the verdicts of the span."""
    info = recording.info()
    rows = read(recording, "events", span, _EVENT)
    events = [
        NodeEvent(
            int(rows["time"][place]),
            str(rows["kind"][place]),
            str(rows["message"][place]),
            bool(rows["by_kernel"][place]),
            _to_integer(rows["pid"][place]),
            int(rows["cpu"][place]) if rows["cpu"][place] >= 0 else None,
            rows["device"][place],
        )
        for place in range(len(rows))
        if rows["kind"][place] in JOB_EVENTS
    ]
    recorded = Span(info.from_ns or span.from_ns, (info.to_ns or span.to_ns) + 1)
    found = tuple(node_incident(one) for one in incidents)
    return JobNode(node or info.node, recorded, None, tuple(events), found)


def node_incident(incident: Incident) -> NodeIncident:
    verdict = incident.verdict
    culprit, origin = verdict.culprit, verdict.origin
    who = None
    if culprit is not None and culprit.comm:
        who = f"{culprit.comm}[{culprit.pid}]" if culprit.pid is not None else culprit.comm
    return NodeIncident(
        incident.id,
        incident.from_ns,
        incident.to_ns,
        incident.core,
        verdict.cause,
        verdict.confidence,
        verdict.title,
        who,
        culprit.pid if culprit else None,
        culprit.cgroup if culprit else None,
        f"{origin.kind} {origin.name}" if origin else None,
    )


def _member(rows: ColumnArrays, place: int, node: str) -> Member:
    row: dict[str, Any] = {name: values[place] for name, values in rows.values.items()}
    return Member(
        node=node,
        job=row["job"],
        kind=row["kind"],
        role=row["role"],
        pid=int(row["pid"]),
        comm=row["comm"],
        started_ns=int(row["started_ns"]),
        rank=_to_integer(row["rank"]),
        world_size=_to_integer(row["world_size"]),
        attempt=_to_integer(row["attempt"]),
        cgroup=row["cgroup"],
        leader=row["leader"],
        address=row["address"],
        cores=_to_integer(row["cores"]),
        gpus=_to_integer(row["gpus"]),
        ended_ns=_to_integer(row["ended_ns"]),
        status=_to_integer(row["status"]),
        words=row["words"],
        peer=row["peer"],
        seen_ns=int(row["time"]),
    )


class _Ticks:
    def __init__(self, recording: Recording, span: Span) -> None:
        self._rows = read(recording, "job_progress", span)
        self._places: dict[tuple[int, str], list[int]] = {}
        if len(self._rows):
            names = zip(self._rows["pid"].tolist(), self._rows["job"].tolist(), strict=True)
            for place, name in enumerate(names):
                self._places.setdefault(name, []).append(place)

    def of(self, pid: int, job: str) -> list[ProgressTick]:
        places = self._places.get((pid, job))
        if not places:
            return []
        own = self._rows.at(np.array(places))
        return [
            ProgressTick(
                int(time_ns), int(core), str(state), int(passed), int(worked), _to_integer(late)
            )
            for time_ns, core, state, passed, worked, late in zip(
                *(own[name].tolist() for name in _TICK), strict=True
            )
        ]


class _Waits:
    """Waits for a core, of all threads of a process together, and sleeps of its first thread for
    something that another task has.
    """

    def __init__(self, recording: Recording, span: Span) -> None:
        self._rows = read(recording, "waits", _waits_span(span))

    def of(self, pid: int) -> list[MemberWait]:
        if not len(self._rows):
            return []
        own = self._rows.at(self._rows["pid"] == pid)
        waits = task_waits(own, least_ns=0)
        return [_member_wait(one) for one in waits if one.is_for_a_core or one.task.tid == pid]


def _waits_span(span: Span) -> Span:
    return Span(max(0, span.from_ns - LOOK_BACK_NS), span.to_ns + _LATE_NS)


def _member_wait(wait: TaskWait) -> MemberWait:
    by = wait.by if wait.is_for_a_core else wait.given_by
    found = MemberWait(
        wait.from_ns, wait.to_ns, wait.cpu, None, None, None, is_asleep=not wait.is_for_a_core
    )
    if by is None:
        return found
    label = f"{by.comm}[{by.pid}]" + (f" ({by.policy})" if by.policy else "")
    ran_ns = wait.by_ran_ns or None if wait.is_for_a_core else None
    return found._replace(
        by=by.comm, by_pid=by.pid, by_cgroup=by.cgroup, by_label=label, by_ran_ns=ran_ns
    )


def _to_integer(value: float | None) -> int | None:
    return None if value is None or not np.isfinite(value) else int(value)
