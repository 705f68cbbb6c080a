"""A job that lost a member because its node lost the network: the driver reset the device, or its
link went, and the node's own verdict may say what kept its queues from being served.

The member itself was neither starved nor blocked: it waited for an answer, like any member whose
peer is gone. So it takes the kernel's report of the device on its node before the job died and,
where that is a device that was reset, an incident with a named cause around it: devices are reset
for many reasons. A link that went is its own reason.
"""

from collections.abc import Collection
from dataclasses import dataclass
from typing import Final

from necroscope.analysis.jobs.member import EDGE_NS, JobNode, NodeEvent, NodeIncident
from necroscope.model.span import Span
from necroscope.model.units import NS_PER_S

_LINK_DOWN: Final = "nic_link_down"
_NETWORK_EVENTS: Final = frozenset({"nic_reset", "nic_tx_timeout", "nic_reset_failed", _LINK_DOWN})
# Kinds of events that a job's story asks for.
JOB_EVENTS: Final = _NETWORK_EVENTS | {
    "job_stalled",
    "job_member_died",
    "oom_kill",
    "container_oom",
    "clock_step",
}
# How long a member may wait for its peer after the network is back: TCP doubles its time-out up to
# the length of what it lived through, and Ray needs 65 s.
_PATIENCE_NS: Final = 75 * NS_PER_S


@dataclass(frozen=True, slots=True)
class NetworkLoss:
    event: NodeEvent
    incident: NodeIncident | None = None

    @property
    def text(self) -> str:
        return f"lost the network of its node: {self.event.message}"

    @property
    def from_ns(self) -> int:
        return self.incident.from_ns if self.incident else self.event.time_ns

    @property
    def core(self) -> int | None:
        return self.incident.core if self.incident else self.event.core

    @property
    def culprit(self) -> str:
        if self.incident is not None:
            return self.incident.culprit or self.incident.cause
        return self.event.device or self.event.kind


def find_network_loss(
    node: JobNode | None, life: Span, own_pids: Collection[int | None]
) -> NetworkLoss | None:
    """The latest in the life of a member, which ends with the job's death; those of a core first,
    because a queue is served by a core. A verdict that blames a member of the job blames no
    machine.
    """
    if node is None:
        return None
    death_ns = life.to_ns
    lost = [
        one
        for one in node.events
        if one.kind in _NETWORK_EVENTS and one.by_kernel and one.time_ns >= life.from_ns
    ]
    for incident in sorted(node.incidents, key=lambda one: (one.core is None, -one.from_ns)):
        is_before = incident.from_ns <= death_ns <= incident.to_ns + _PATIENCE_NS
        if not incident.is_sure or not is_before or incident.culprit_pid in own_pids:
            continue
        around = Span(incident.from_ns - EDGE_NS, incident.to_ns + EDGE_NS)
        for event in lost:
            if event.kind != _LINK_DOWN and around.contains(event.time_ns):
                return NetworkLoss(event, incident)
    for event in reversed(lost):
        is_before = event.time_ns - EDGE_NS <= death_ns <= event.time_ns + _PATIENCE_NS
        if event.kind == _LINK_DOWN and is_before:
            return NetworkLoss(event)
    return None
