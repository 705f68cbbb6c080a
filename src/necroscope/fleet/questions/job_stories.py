"""Stories of jobs over a lake: runs of `job_members` joined with what their nodes went through, and
told by the engine that also tells them over recordings.
"""

from collections.abc import Iterable, Sequence
from dataclasses import replace
from typing import Any, Final, NamedTuple

import pyarrow as pa

from necroscope.analysis.jobs.blame import find_story
from necroscope.analysis.jobs.member import JobNode, NodeEvent, NodeIncident
from necroscope.analysis.jobs.network_loss import JOB_EVENTS
from necroscope.analysis.jobs.runs import JobRun
from necroscope.analysis.jobs.story import UNKNOWN, JobStory
from necroscope.fleet.ask import LakeQuestions, View
from necroscope.fleet.lake_tables import NodeKey
from necroscope.fleet.questions.job_members import ClusterRuns, NodeClock
from necroscope.fleet.questions.newest_incidents import NEWEST_INCIDENTS
from necroscope.model.span import Span
from necroscope.model.units import NS_PER_S

# Verdicts are filed under their start; they may reach into the span.
_LONG_NS: Final = 3600 * NS_PER_S
# Batches come each minute: whether a node has gone silent is known only after some of them.
_SILENCE_KNOWN_NS: Final = 180 * NS_PER_S
# Pulses are many: they are read only where silence may explain what nothing else does.
_MOST_SILENCES: Final = 20
_EVENT: Final = ("kind", "message", "by_kernel", "pid", "cpu", "device")
_INCIDENT: Final = (
    "id", "end", "core", "cause", "confidence", "title", "culprit_comm", "culprit_pid",
    "culprit_cgroup", "origin_kind", "origin_name",
)  # fmt: skip
_NODES: Final = pa.schema([("cluster", pa.string()), ("node", pa.string())])
_EVENTS: Final = f"""
SELECT cluster, node, time, {", ".join(_EVENT)} FROM events SEMI JOIN chosen USING (cluster, node)
WHERE kind IN ({", ".join(f"'{kind}'" for kind in sorted(JOB_EVENTS))}) ORDER BY time
"""
_INCIDENTS: Final = f"""
SELECT cluster, node, time, {", ".join(f'"{name}"' for name in _INCIDENT)}
FROM ({NEWEST_INCIDENTS}) SEMI JOIN chosen USING (cluster, node) ORDER BY time
"""
_PULSES: Final = """
SELECT cluster, node, min(span_from), max(span_to)
FROM pulses SEMI JOIN chosen USING (cluster, node) GROUP BY ALL
"""


class ClusterRun(NamedTuple):
    cluster: str
    run: JobRun
    clocks: dict[str, NodeClock]


def list_runs(clusters: Iterable[ClusterRuns]) -> list[ClusterRun]:
    """In order of their end, the newest last."""
    found = [ClusterRun(one.cluster, run, one.clocks) for one in clusters for run in one.runs]
    return sorted(found, key=lambda one: one.run.to_ns)


def find_job_stories(questions: LakeQuestions, found: Sequence[ClusterRun]) -> list[JobStory]:
    """One story per run, in their order; what their nodes went through is read once."""
    if not found:
        return []
    history = _History(questions, found)
    stories = [_story(one.run, history.nodes(one)) for one in found]
    silences = [place for place, story in enumerate(stories) if _may_be_silence(story)]
    for place in silences[-_MOST_SILENCES:]:
        one = found[place]
        heard = _find_pulse_spans(questions, one)
        stories[place] = _story(one.run, history.nodes(one, heard))
    return stories


def _story(run: JobRun, nodes: Iterable[JobNode]) -> JobStory:
    return replace(find_story(run.job, run.members, nodes), submission=run.submission)


def _may_be_silence(story: JobStory) -> bool:
    return story.blame == UNKNOWN and any(one.ended_ns is None for one in story.members)


class _History:
    def __init__(self, questions: LakeQuestions, found: Sequence[ClusterRun]) -> None:
        chosen = _table_of_nodes({(one.cluster, node) for one in found for node in one.run.nodes})
        off_ns = max(
            (abs(clock.offset_ns) for one in found for clock in one.clocks.values()), default=0
        )
        from_ns = min(one.run.end_span.from_ns for one in found) - off_ns
        to_ns = max(one.run.end_span.to_ns for one in found) + off_ns
        self._events: dict[NodeKey, list[NodeEvent]] = {}
        self._incidents: dict[NodeKey, list[NodeIncident]] = {}
        view = View(Span(max(0, from_ns), to_ns), ("boot_id", "source_sequence", *_EVENT))
        for cluster, node, *values in questions.rows(_EVENTS, {"events": view}, (), chosen):
            self._events.setdefault((cluster, node), []).append(_event(values))
        view = View(Span(max(0, from_ns - _LONG_NS), to_ns), ("analysed_ns", *_INCIDENT))
        for cluster, node, *values in questions.rows(_INCIDENTS, {"incidents": view}, (), chosen):
            self._incidents.setdefault((cluster, node), []).append(_incident(values))

    def nodes(self, found: ClusterRun, heard: dict[str, Span] | None = None) -> list[JobNode]:
        """On the collector's clock. Without `heard` no node is taken for silent."""
        span = found.run.end_span
        nodes = []
        for name in found.run.nodes:
            clock = found.clocks[name]
            own = Span(span.from_ns - clock.offset_ns, span.to_ns - clock.offset_ns)
            key = found.cluster, name
            events = [one for one in self._events.get(key, ()) if own.contains(one.time_ns)]
            incidents = [
                one
                for one in self._incidents.get(key, ())
                if one.from_ns < own.to_ns and own.from_ns <= one.to_ns
            ]
            recorded = own if heard is None else heard.get(name, Span(own.from_ns, own.from_ns))
            node = JobNode(name, recorded, clock.error_ns, tuple(events), tuple(incidents))
            nodes.append(node.shifted(clock.offset_ns) if clock.offset_ns else node)
        return nodes


def _find_pulse_spans(questions: LakeQuestions, found: ClusterRun) -> dict[str, Span] | None:
    """From when to when each node's recorder sent pulses, by the node's clock; None while it is
    too early to say.
    """
    span = found.run.end_span
    if questions.now_ns - span.to_ns < _SILENCE_KNOWN_NS:
        return None
    chosen = _table_of_nodes({(found.cluster, node) for node in found.run.nodes})
    off_ns = max(abs(found.clocks[node].offset_ns) for node in found.run.nodes)
    wide = Span(max(0, span.from_ns - off_ns), span.to_ns + off_ns + _SILENCE_KNOWN_NS)
    view = View(wide, ("span_from", "span_to"))
    rows = questions.rows(_PULSES, {"pulses": view}, (), chosen)
    return {node: Span(from_ns, max(from_ns, to_ns)) for _, node, from_ns, to_ns in rows}


def _table_of_nodes(nodes: Iterable[NodeKey]) -> dict[str, pa.Table]:
    names = sorted(nodes)
    columns = [pa.array([name[place] for name in names], pa.string()) for place in (0, 1)]
    return {"chosen": pa.table(columns, _NODES)}


def _event(values: Sequence[Any]) -> NodeEvent:
    time_ns, kind, message, by_kernel, pid, core, device = values
    return NodeEvent(time_ns, kind, message or "", bool(by_kernel), pid, core, device)


def _incident(values: Sequence[Any]) -> NodeIncident:
    from_ns, identity, to_ns, core, cause, confidence, title, comm, pid, cgroup, kind, name = values
    who = None if not comm else f"{comm}[{pid}]" if pid is not None else comm
    origin = f"{kind} {name}" if kind and name else None
    common = identity, from_ns, to_ns, core, cause, confidence, title or cause
    return NodeIncident(*common, who, pid, cgroup, origin)
