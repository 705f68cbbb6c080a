"""How the story of a job is found: who stopped first, whom the others waited for, what happened on
that node and core in those seconds, and whether the machine is to blame.

A blame needs a chain: a member was held (it wanted a core, or slept in the kernel, and got nothing
done) while the others waited, and the node's own verdict, or one task that had the core, says by
what; or a member lost the others because its node lost the network. Without it the answer is what
the program did, or that nothing is known.
"""

from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from typing import Any, Final

from necroscope.analysis.jobs.ends import (
    KILLED,
    MEMORY_LIMIT,
    NO_WORDS,
    OWN_ENDS,
    PEER,
    STOPPED,
    End,
    end_of,
)
from necroscope.analysis.jobs.explanation import Explanation, explain
from necroscope.analysis.jobs.member import (
    HELD,
    WAITING,
    JobNode,
    Member,
    NodeIncident,
)
from necroscope.analysis.jobs.network_loss import NetworkLoss, find_network_loss
from necroscope.analysis.jobs.runs import SHARED_ROLES
from necroscope.analysis.jobs.story import LOST_NODE, MACHINE, UNKNOWN, WELL, JobStory, Step
from necroscope.model.span import Span
from necroscope.model.units import NS_PER_S

# What ends within this long of the first death may be its cause or its consequence.
_TOGETHER_NS: Final = 5 * NS_PER_S
# How long before a death a member may have been held: Ray needs 65 s to declare a node dead.
_BEFORE_NS: Final = 75 * NS_PER_S
_TICK_NS: Final = NS_PER_S
_SILENT_NS: Final = 15 * NS_PER_S


@dataclass(frozen=True, slots=True)
class _MemberStop:
    """A member, and why it stopped, at a time."""

    member: Member
    time_ns: int
    end: End | None = None
    cut_off: NetworkLoss | None = None

    @property
    def held_s(self) -> float:
        return self.member.stop.seconds if self.member.stop else 0.0

    @property
    def text(self) -> str:
        if self.end is not None:
            return self.end.text
        if self.cut_off is not None:
            return self.cut_off.text
        stop = self.member.stop
        assert stop is not None
        return f"was {stop.words} for {stop.seconds:.0f} s"


class _Teller:
    def __init__(self, members: Sequence[Member], nodes: Iterable[JobNode]) -> None:
        self.members = members
        self.nodes = {node.node: node for node in nodes}
        self.ends = {
            id(member): end_of(member, self._node(member).events if self._node(member) else ())
            for member in members
        }
        died = [one.ended_ns for one in members if one.ended_ns is not None and self.end(one)]
        self.death_ns = min(died) if died else None

    def _node(self, member: Member) -> Any:
        return self.nodes.get(member.node)

    def end(self, member: Member) -> End | None:
        return self.ends[id(member)]

    def error_ns(self, node: str) -> int:
        seen = self.nodes.get(node)
        return (seen.error_ns if seen else NS_PER_S) + _TICK_NS

    def held(self) -> list[_MemberStop]:
        """Members that something held when it began, the earliest first. Raylets live for many
        jobs: what held one before this job began is not its story.
        """
        until_ns = self.death_ns
        own = [one.started_ns for one in self.members if one.role not in SHARED_ROLES]
        began_ns = min(own, default=0)
        found = []
        for member in self.members:
            stop = member.stop
            if stop is None or stop.how not in HELD or stop.to_ns <= began_ns:
                continue
            if until_ns is None or (
                stop.from_ns <= until_ns + _TOGETHER_NS and stop.to_ns >= until_ns - _BEFORE_NS
            ):
                found.append(_MemberStop(member, stop.from_ns))
        return sorted(found, key=lambda one: one.time_ns)

    def cut_off(self) -> list[_MemberStop]:
        """Members, one per node, whose node lost its network before others missed them."""
        found: dict[str, _MemberStop] = {}
        lost_others = [one for one in self.members if (end := self.end(one)) and end.kind == PEER]
        if self.death_ns is None or not lost_others:
            return []
        for member in [*lost_others, *self.members]:
            end_ns = member.ended_ns if member in lost_others else self.death_ns
            life = Span(member.started_ns, end_ns or self.death_ns)
            lost = find_network_loss(self._node(member), life, self._own_pids(member.node))
            if lost is not None and member.node not in found:
                found[member.node] = _MemberStop(member, lost.from_ns, cut_off=lost)
        return sorted(found.values(), key=lambda one: one.time_ns)

    def own_ends(self) -> list[_MemberStop]:
        """Members that ended for a reason of their own among the first to end, those whose reason
        explains most first.
        """
        found = []
        for member in self.members:
            end = self.end(member)
            if end is None or end.kind not in OWN_ENDS or member.ended_ns is None:
                continue
            # The kernel's word stands: a driver may hear of a death and end in the same tick.
            if end.kind != MEMORY_LIMIT and self._is_ended_with_driver(member):
                continue
            tolerance_ns = _TOGETHER_NS + self.error_ns(member.node)
            if member.ended_ns <= (self.death_ns or 0) + tolerance_ns:
                found.append(_MemberStop(member, member.ended_ns, end))
        order = {kind: place for place, kind in enumerate(OWN_ENDS)}
        return sorted(found, key=lambda one: (order[one.end.kind if one.end else ""], one.time_ns))

    def _is_ended_with_driver(self, member: Member) -> bool:
        """Ray ends the workers of a job whose driver has ended."""
        drivers = [one.ended_ns for one in self.members if one.role == "driver" and one.ended_ns]
        tolerance_ns = _TICK_NS + self.error_ns(member.node)
        return member.role == "worker" and any(
            (member.ended_ns or 0) >= ended_ns - tolerance_ns for ended_ns in drivers
        )

    def waited(self, first: Member) -> tuple[Member, ...]:
        return tuple(
            one
            for one in self.members
            if one is not first
            and (
                (one.stop is not None and one.stop.how == WAITING)
                or ((end := self.end(one)) is not None and end.kind == PEER)
            )
        )

    def explanation(self, member: Member) -> Explanation | None:
        return explain(member, self._node(member), self._own_pids(member.node))

    def _own_pids(self, node: str) -> set[int]:
        return {one.pid for one in self.members if one.node == node}


def find_story(job: str, members: Sequence[Member], nodes: Iterable[JobNode]) -> JobStory:
    """Members and nodes on one clock. `members` are all of one run, and not empty."""
    ordered = tuple(
        sorted(members, key=lambda one: (one.rank is None, one.rank or 0, one.node, one.pid))
    )
    teller = _Teller(ordered, nodes)
    outcome = _outcome(teller)
    kind = members[0].kind
    notes = tuple(_notes(teller))
    if outcome in ("succeeded", "running"):
        return JobStory(job, kind, outcome, WELL, _well(outcome), ordered, notes=notes)
    held, own = teller.held(), teller.own_ends()
    silent = _silent(teller)
    culpable = [one for one in _longest(held) if teller.explanation(one.member) is not None]
    # A kill may be what a watchdog did to a member that was held: then that is what explains it.
    weak = own and own[0].end is not None and own[0].end.kind in (KILLED, STOPPED)
    if own and not (weak and _is_held_to_the_end(own[0], culpable)):
        return _of_end(teller, job, kind, outcome, ordered, own, notes)
    if culpable := culpable or teller.cut_off():
        return _of_machine(teller, job, kind, outcome, ordered, culpable, notes)
    if silent is not None:
        answer = (
            f"{silent.name} on {silent.node} has no end, and {silent.node} went silent before the"
            " others ended: the node was lost, rebooted or cut off"
        )
        return JobStory(
            job, kind, outcome, LOST_NODE, answer, ordered, silent,
            waited=teller.waited(silent), steps=_steps(teller, silent, None), notes=notes,
        )  # fmt: skip
    return _of_nothing(teller, job, kind, outcome, ordered, held, notes)


def _longest(held: Sequence[_MemberStop]) -> list[_MemberStop]:
    """A member that was held for a moment is not why a job died in which another was held long."""
    most = max((one.held_s for one in held), default=0.0)
    return [one for one in held if 2 * one.held_s >= most]


def outcome_of(members: Sequence[Member]) -> str:
    """As far as its members alone show it."""
    return _outcome(_Teller(members, ()))


def _outcome(teller: _Teller) -> str:
    if teller.death_ns is not None:
        return "failed"
    if all(one.ended_ns is not None for one in teller.members):
        known = all(one.status == 0 for one in teller.members)
        return "succeeded" if known else "ended"
    stalled = any(
        event.kind == "job_stalled" for node in teller.nodes.values() for event in node.events
    )
    return "stalled" if stalled else "running"


def _well(outcome: str) -> str:
    return "all its members ended well" if outcome == "succeeded" else "it runs"


def _is_held_to_the_end(last: _MemberStop, culpable: Sequence[_MemberStop]) -> bool:
    return any(
        one.member.stop is not None
        and one.member.stop.to_ns >= last.time_ns - _TOGETHER_NS
        and one.time_ns <= last.time_ns - _TOGETHER_NS
        for one in culpable
    )


def _of_machine(
    teller: _Teller,
    job: str,
    kind: str,
    outcome: str,
    ordered: tuple[Member, ...],
    culpable: Sequence[_MemberStop],
    notes: tuple[str, ...],
) -> JobStory:
    stopped, first = culpable[0], culpable[0].member
    incident, culprit, core = _by_what(teller, stopped)
    waited = teller.waited(first)
    why = f"{incident.cause}: {incident.summary}" if incident else _had(stopped, culprit)
    others = f"; {_names(waited)} waited for it" if waited else ""
    where = f" on core {core}" if core is not None and stopped.cut_off is None else ""
    answer = (
        f"{first.name} on {first.node} stopped first: it {stopped.text}{where}, because of"
        f" {culprit}{others}. {why}"
    )
    return JobStory(
        job, kind, outcome, MACHINE, answer, ordered, first, _is_order_known(teller, culpable),
        waited, core, culprit, incident, _steps(teller, first, incident), notes,
    )  # fmt: skip


def _had(stopped: _MemberStop, culprit: str) -> str:
    if stopped.cut_off is not None or stopped.member.stop is None:
        return "The device is all that is known"
    return f"{culprit} {stopped.member.stop.by_words}"


def _by_what(teller: _Teller, stopped: _MemberStop) -> tuple[NodeIncident | None, str, int | None]:
    """The node's verdict, who did it, and the core."""
    if stopped.cut_off is not None:
        return stopped.cut_off.incident, stopped.cut_off.culprit, stopped.cut_off.core
    found, stop = teller.explanation(stopped.member), stopped.member.stop
    assert found is not None and stop is not None  # noqa: PT018
    core = found.incident.core if stop.core is None and found.incident else stop.core
    return found.incident, found.culprit, core


def _of_end(
    teller: _Teller,
    job: str,
    kind: str,
    outcome: str,
    ordered: tuple[Member, ...],
    own: Sequence[_MemberStop],
    notes: tuple[str, ...],
) -> JobStory:
    ended = own[0]
    assert ended.end is not None
    first, blame = ended.member, ended.end.kind
    answer = f"{first.name} on {first.node}: {ended.text}"
    alike = [one for one in own if one.end is not None and one.end.kind == blame]
    if len(alike) > 1:
        answer += f" (and {len(alike) - 1} other members alike)"
    return JobStory(
        job, kind, outcome, blame, answer, ordered, first, _is_order_known(teller, alike),
        teller.waited(first), steps=_steps(teller, first, None), notes=notes,
    )  # fmt: skip


def _of_nothing(
    teller: _Teller,
    job: str,
    kind: str,
    outcome: str,
    ordered: tuple[Member, ...],
    held: Sequence[_MemberStop],
    notes: tuple[str, ...],
) -> JobStory:
    """Who stopped first is said where it is known; no process is blamed."""
    if held:
        first: Member | None = held[0].member
        answer = f"{held[0].member.name} on {held[0].member.node} {held[0].text}; nothing that was"
        answer += " recorded explains it"
    else:
        first, answer = None, "no member stopped for a reason that was recorded"
        dead = [one for one in ordered if teller.end(one) is not None]
        if dead:
            end = teller.end(min(dead, key=lambda one: one.ended_ns or 0))
            assert end is not None
            said = "its words" if end.kind != NO_WORDS else "all that is known"
            answer += f"; {said}: {end.text}"
    steps = _steps(teller, first, None)
    return JobStory(
        job, kind, outcome, UNKNOWN, answer, ordered, first, _is_order_known(teller, held),
        teller.waited(first) if first else (), steps=steps, notes=notes,
    )  # fmt: skip


def _is_order_known(teller: _Teller, stops: Sequence[_MemberStop]) -> bool:
    """Whether the first of them is first for certain, as clocks go."""
    if len(stops) < 2:
        return True
    first, second = sorted(stops, key=lambda one: one.time_ns)[:2]
    if first.member.node == second.member.node:
        return second.time_ns - first.time_ns > _TICK_NS
    errors_ns = teller.error_ns(first.member.node) + teller.error_ns(second.member.node)
    return second.time_ns - first.time_ns > errors_ns


def _silent(teller: _Teller) -> Member | None:
    """A member without an end, of a node whose recording ends well before the others died."""
    if teller.death_ns is None:
        return None
    for member in teller.members:
        node = teller.nodes.get(member.node)
        is_over = node is not None and node.recorded.to_ns < teller.death_ns - _SILENT_NS
        if member.ended_ns is None and is_over:
            return member
    return None


def _steps(
    teller: _Teller, first: Member | None, incident: NodeIncident | None
) -> tuple[Step, ...]:
    found = []
    for member in teller.members:
        error_ns, stop = teller.error_ns(member.node), member.stop
        if stop is not None and stop.how in (*HELD, WAITING):
            by = f", {stop.by} {stop.by_words}" if stop.by else ""
            text = f"{member.name} is {stop.words} from here, for {stop.seconds:.0f} s{by}"
            core = stop.core if stop.how in HELD else None
            found.append(Step(stop.from_ns, error_ns, member.node, core, text))
        end = teller.end(member)
        if end is not None and member.ended_ns is not None:
            text = f"{member.name} ended: {end.text}"
            found.append(Step(member.ended_ns, error_ns, member.node, None, text))
    if incident is not None and first is not None:
        text = f"{incident.cause} on this node: {incident.summary}"
        error_ns = teller.error_ns(first.node)
        found.append(Step(incident.from_ns, error_ns, first.node, incident.core, text))
    return tuple(sorted(found, key=lambda step: step.time_ns))


def _notes(teller: _Teller) -> list[str]:
    notes = []
    sizes = {one.world_size for one in teller.members if one.world_size}
    ranks = {one.rank for one in teller.members if one.rank is not None}
    if sizes and len(ranks) < max(sizes):
        notes.append(
            f"{max(sizes) - len(ranks)} of {max(sizes)} ranks were seen by no recorder: who stopped"
            " first is known only of the others"
        )
    unseen = sorted({one.node for one in teller.members} - teller.nodes.keys())
    notes += [f"nothing but its members is known of {node}" for node in unseen]
    if len(teller.nodes) > 1 and any(node.clock_error_ns is None for node in teller.nodes.values()):
        notes.append("the clocks of the nodes were not compared: times may be off by a second")
    return notes


def _names(members: Sequence[Member]) -> str:
    names = [f"{one.name} on {one.node}" for one in members[:4]]
    rest = len(members) - len(names)
    return ", ".join(names) + (f" and {rest} more" if rest else "")
