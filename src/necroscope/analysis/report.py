"""The typed answer that every view shows: incidents, each with its verdict. `as_json` is what
`diagnose --json` promises.
"""

from dataclasses import dataclass, field
from typing import Any, Final

from necroscope.analysis.task_names import is_name
from necroscope.model.reading import Gap
from necroscope.model.units import format_moment

UNKNOWN: Final = "unknown"


@dataclass(frozen=True, slots=True)
class Evidence:
    """One thing that was seen, in words, and the place in the recording it speaks of, so that a
    view can lead there.
    """

    text: str
    from_ns: int
    to_ns: int
    cpu: int | None = None
    table: str | None = None

    def as_json(self) -> dict[str, Any]:
        window = {"from": format_moment(self.from_ns), "to": format_moment(self.to_ns)}
        return {"text": self.text, **window, "core": self.cpu, "table": self.table}


@dataclass(frozen=True, slots=True)
class Culprit:
    """The task that was on the core, and the path it was in, outermost function first. What is not
    known is None.
    """

    comm: str | None = None
    pid: int | None = None
    cgroup: str | None = None
    unit: str | None = None
    container: str | None = None
    path: tuple[str, ...] = ()

    def as_json(self) -> dict[str, Any]:
        task = {
            "comm": self.comm if is_name(self.comm) else None,
            "pid": self.pid,
            "cgroup": self.cgroup,
        }
        return {**task, "unit": self.unit, "container": self.container, "path": list(self.path)}


@dataclass(frozen=True, slots=True)
class Origin:
    """The object to act on, which is often not the culprit.

    `kind` is unit, container, cgroup, process, setting, device, directory, kernel or host. `chain`
    is what leads to it, as kind and name, the nearest first: the unit that makes a container, its
    package, the image.
    """

    kind: str
    name: str
    chain: tuple[tuple[str, str], ...] = ()

    def as_json(self) -> dict[str, Any]:
        found: dict[str, Any] = {"kind": self.kind, "name": self.name}
        if self.chain:
            found["chain"] = [{"kind": kind, "name": name} for kind, name in self.chain]
        return found


@dataclass(frozen=True, slots=True)
class WalkedState:
    """The section of the kernel that held the core, by its outermost function, and the population
    it walks: a kind of `populations`. `competes` is another kind that grew alike;
    `one_second_at_ns` is when a turn takes a second if it goes on growing. What is not known is
    None.
    """

    function: str
    population: str | None = None
    count: int | None = None
    per_object_ns: float | None = None
    competes: str | None = None
    one_second_at_ns: int | None = None

    def as_json(self) -> dict[str, Any]:
        at_ns, per_object_ns = self.one_second_at_ns, self.per_object_ns
        return {
            "function": self.function,
            "population": self.population,
            "count": self.count,
            "per_object_ns": None if per_object_ns is None else round(per_object_ns, 1),
            "competes": self.competes,
            "one_second_at": None if at_ns is None else format_moment(at_ns),
        }


@dataclass(frozen=True, slots=True)
class WillNotHelp:
    """A textbook mitigation that does not help here, and why."""

    what: str
    why: str

    def as_json(self) -> dict[str, Any]:
        return {"what": self.what, "why": self.why}


@dataclass(frozen=True, slots=True)
class Verdict:
    """What did it. `cause` is a slug; `confidence` from 0.5 on means that the cause is named."""

    cause: str
    title: str
    confidence: float
    summary: str
    culprit: Culprit | None = None
    origin: Origin | None = None
    evidence: tuple[Evidence, ...] = ()
    against: tuple[Evidence, ...] = ()
    fix: tuple[str, ...] = ()
    verify: tuple[str, ...] = ()
    will_not_help: tuple[WillNotHelp, ...] = ()
    walked: WalkedState | None = None

    @property
    def answer(self) -> str:
        """What a reader acts on: cause, origin and how it came to be. With another one there is
        news, with other evidence for the same there is none.
        """
        origin = self.origin
        chain = [] if origin is None else [(origin.kind, origin.name), *origin.chain]
        return "; ".join([self.cause, *(f"{kind} {name}" for kind, name in chain)])

    def as_json(self) -> dict[str, Any]:
        return {
            "cause": self.cause,
            "confidence": round(self.confidence, 2),
            "summary": self.summary,
            "culprit": self.culprit.as_json() if self.culprit else None,
            "origin": self.origin.as_json() if self.origin else None,
            "evidence": [item.as_json() for item in self.evidence],
            "against": [item.as_json() for item in self.against],
            "fix": list(self.fix),
            "verify": list(self.verify),
            "will_not_help": [item.as_json() for item in self.will_not_help],
            "walked": self.walked.as_json() if self.walked else None,
        }


@dataclass(frozen=True, slots=True)
class Alternative:
    """A cause that was weighed and lost."""

    cause: str
    confidence: float
    why_not: str

    def as_json(self) -> dict[str, Any]:
        return {
            "cause": self.cause,
            "confidence": round(self.confidence, 2),
            "why_not": self.why_not,
        }


@dataclass(frozen=True, slots=True)
class ReportedEpisode:
    """An interval with something abnormal and measured; `core` is None where it is of the whole
    machine.
    """

    kind: str
    core: int | None
    mode: str | None
    from_ns: int
    to_ns: int
    text: str
    table: str

    def as_json(self) -> dict[str, Any]:
        window = {"from": format_moment(self.from_ns), "to": format_moment(self.to_ns)}
        return {
            "kind": self.kind,
            "core": self.core,
            "mode": self.mode,
            **window,
            "text": self.text,
            "table": self.table,
        }


@dataclass(frozen=True, slots=True)
class ReportedEvent:
    """Something that happened at a moment; `core` is the core it was joined to, `joined_by` how
    that is known.
    """

    time_ns: int
    kind: str
    core: int | None
    device: str | None
    queue: int | None
    joined_by: str | None
    message: str

    def as_json(self) -> dict[str, Any]:
        place = {
            "core": self.core,
            "device": self.device,
            "queue": self.queue,
            "joined_by": self.joined_by,
        }
        return {
            "time": format_moment(self.time_ns),
            "kind": self.kind,
            **place,
            "message": self.message,
        }


@dataclass(frozen=True, slots=True)
class Incident:
    """Events and episodes that belong together, and what did it. `mode` is the mode the core was
    held in.

    `is_wrong` is False only for a moment that was asked about and at which nothing was wrong. Where
    tasks waited on no core in particular, `subject` is what they waited for: others may wait for
    something else at the same time.
    """

    id: str
    from_ns: int
    to_ns: int
    core: int | None
    mode: str | None
    events: tuple[ReportedEvent, ...]
    episodes: tuple[ReportedEpisode, ...]
    verdict: Verdict
    alternatives: tuple[Alternative, ...] = ()
    is_wrong: bool = True
    subject: str | None = None

    def as_json(self) -> dict[str, Any]:
        return {
            "id": self.id,
            "from": format_moment(self.from_ns),
            "to": format_moment(self.to_ns),
            "core": self.core,
            "mode": self.mode,
            "events": [event.as_json() for event in self.events],
            "episodes": [episode.as_json() for episode in self.episodes],
            "verdict": self.verdict.as_json(),
            "alternatives": [other.as_json() for other in self.alternatives],
        }


@dataclass(frozen=True, slots=True)
class Report:
    """A healthy recording has no incidents. `notes` say in words what could not be seen, and how to
    record it.

    `asked_ns` and `asked_core` are what the user asked about; then what was there is reported also
    if nothing was wrong.
    """

    schema: int
    node: str
    from_ns: int | None
    to_ns: int | None
    incidents: tuple[Incident, ...]
    gaps: tuple[Gap, ...] = ()
    notes: tuple[str, ...] = field(default=())
    asked_ns: int | None = None
    asked_core: int | None = None

    @property
    def wrong(self) -> tuple[Incident, ...]:
        return tuple(incident for incident in self.incidents if incident.is_wrong)

    def as_json(self) -> dict[str, Any]:
        return {
            "schema": self.schema,
            "node": self.node,
            "from": _moment(self.from_ns),
            "to": _moment(self.to_ns),
            "asked": self._question(),
            "incidents": [incident.as_json() for incident in self.incidents],
            "gaps": [_gap_as_json(gap) for gap in self.gaps],
            "notes": list(self.notes),
        }

    def _question(self) -> dict[str, Any] | None:
        if self.asked_ns is None and self.asked_core is None:
            return None
        return {"at": _moment(self.asked_ns), "core": self.asked_core, "is_wrong": bool(self.wrong)}


def _moment(time_ns: int | None) -> str | None:
    return None if time_ns is None else format_moment(time_ns)


def _gap_as_json(gap: Gap) -> dict[str, Any]:
    window = {"from": format_moment(gap.from_ns), "to": format_moment(gap.to_ns)}
    return {"table": gap.table, **window, "cause": gap.cause}
