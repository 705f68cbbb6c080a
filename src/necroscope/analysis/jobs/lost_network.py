"""A member that lost another because its own node lost the network: the driver reset the device,
and the node's own verdict says what kept its queues from being served.

The member itself was neither starved nor blocked: it waited for an answer, like any member whose
peer is gone. So it takes all of these: the member's words are those of one that lost another, the
kernel reported the device on its node, and an incident with a named cause holds that report and
began before the member gave up.
"""

from collections.abc import Collection
from dataclasses import dataclass
from typing import Final

from necroscope.analysis.jobs.member import JobNode, Member, NodeEvent, NodeIncident
from necroscope.analysis.report import UNKNOWN
from necroscope.model.span import Span
from necroscope.model.units import NS_PER_S

NETWORK_EVENTS: Final = frozenset({"nic_reset", "nic_tx_timeout", "nic_reset_failed"})
# How long a member may wait for its peer after the network is back: TCP doubles its time-out up to
# the length of what it lived through, and Ray needs 65 s.
_PATIENCE_NS: Final = 75 * NS_PER_S
_EDGE_NS: Final = 5 * NS_PER_S
_SURE: Final = 0.5


@dataclass(frozen=True, slots=True)
class LostNetwork:
    incident: NodeIncident
    event: NodeEvent

    @property
    def text(self) -> str:
        return f"lost the network of its node: {self.event.message}"


def lost_network(
    member: Member, node: JobNode | None, own_pids: Collection[int | None]
) -> LostNetwork | None:
    """The latest before its end; a verdict that blames a member of the job blames no machine."""
    if node is None or member.ended_ns is None:
        return None
    for incident in sorted(node.incidents, key=lambda one: -one.from_ns):
        is_named = incident.cause != UNKNOWN and incident.confidence >= _SURE
        is_before = incident.from_ns <= member.ended_ns <= incident.to_ns + _PATIENCE_NS
        if not is_named or not is_before or incident.culprit_pid in own_pids:
            continue
        around = Span(incident.from_ns - _EDGE_NS, incident.to_ns + _EDGE_NS)
        for event in node.events:
            is_within = around.contains(event.time_ns)
            if event.kind in NETWORK_EVENTS and event.by_kernel and is_within:
                return LostNetwork(incident, event)
    return None
