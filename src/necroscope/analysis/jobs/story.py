"""The typed story of a job that every view shows; `as_json` is what `job --json` promises."""

from dataclasses import dataclass
from typing import Any, Final

from necroscope.analysis.jobs.ends import KILLED, MEMORY_LIMIT, PREEMPTED, PROGRAM, STOPPED
from necroscope.analysis.jobs.member import Member, NodeIncident, OfMembers
from necroscope.model.units import NS_PER_S, format_moment

MACHINE, UNKNOWN, LOST_NODE, WELL = "machine", "unknown", "node_silent", "none"
_BLAMES: Final = {
    MEMORY_LIMIT: "not the machine: killed by its memory limit",
    PROGRAM: "not the machine: the program raised this",
    KILLED: "not the machine: killed from outside",
    PREEMPTED: "not the machine: the scheduler ended it",
    STOPPED: "not the machine: it was asked to end from outside, as a scheduler or a person does",
    MACHINE: "the machine",
    LOST_NODE: "a node went silent",
    UNKNOWN: "not known",
    WELL: "nothing failed",
}


@dataclass(frozen=True, slots=True)
class Step:
    """`error_ns` is how far its time may be off against the other nodes'."""

    time_ns: int
    error_ns: int
    node: str
    core: int | None
    text: str

    def as_json(self) -> dict[str, Any]:
        return {
            "time": format_moment(self.time_ns),
            "error_ms": round(self.error_ns / 1e6),
            "node": self.node,
            "core": self.core,
            "text": self.text,
        }


@dataclass(frozen=True, slots=True)
class JobStory(OfMembers):
    """`blame` is machine, program, memory_limit, killed, preempted, stopped, node_silent, unknown
    or none; only with `machine` are `incident` or a culprit named. `submission` is the other id of
    a job that was submitted to Ray.
    """

    job: str
    kind: str
    outcome: str
    blame: str
    answer: str
    members: tuple[Member, ...]
    first: Member | None = None
    is_order_known: bool = True
    waited: tuple[Member, ...] = ()
    core: int | None = None
    culprit: str | None = None
    incident: NodeIncident | None = None
    steps: tuple[Step, ...] = ()
    notes: tuple[str, ...] = ()
    submission: str | None = None

    def as_json(self) -> dict[str, Any]:
        hours = max(0, self.to_ns - self.from_ns) / 3600 / NS_PER_S
        gpus = [one.gpus for one in self.members if one.gpus is not None]
        incident = self.incident
        return {
            "schema": 1,
            "job": self.job,
            "submission": self.submission,
            "kind": self.kind,
            "outcome": self.outcome,
            "from": format_moment(self.from_ns),
            "to": format_moment(self.to_ns),
            "nodes": self.nodes,
            "blame": self.blame,
            "blame_words": _BLAMES[self.blame],
            "answer": self.answer,
            "first": self.first.as_json() if self.first else None,
            "is_order_known": self.is_order_known,
            "waited": [f"{one.name} on {one.node}" for one in self.waited],
            "node": self.first.node if self.first else None,
            "core": self.core,
            "culprit": self.culprit,
            "cause": incident.cause if incident else None,
            "incident": incident.id if incident else None,
            "origin": incident.origin if incident else None,
            "chain": [step.as_json() for step in self.steps],
            "cost": {
                "node_hours": round(hours * len(self.nodes), 2),
                "gpu_hours": round(hours * sum(gpus), 2) if gpus else None,
            },
            "members": [member.as_json() for member in self.members],
            "notes": list(self.notes),
        }
