"""Where the packets come from that a core receives: a program of this machine, or a device."""

from typing import Final

from necroscope.analysis.case import Case
from necroscope.analysis.functions import functions
from necroscope.analysis.report import Origin
from necroscope.analysis.task_origin import process_origin

RECEIVE: Final = functions(
    "net_rx_action __napi_poll napi_poll process_backlog __netif_receive_skb* netif_receive_skb*"
    " napi_gro_*"
)
_BACKLOG: Final = functions("process_backlog")
# Devices whose packets come from this very machine: who sends them can be seen.
LOCAL_SENDS: Final = functions(
    "veth_xmit loopback_xmit br_dev_xmit tun_net_xmit ipvlan_start_xmit macvlan_start_xmit"
)
# Of the packets: most come from the backlog, so from this machine, or steered.
_MOSTLY: Final = 0.5
_SENDS: Final = LOCAL_SENDS | functions("packet_sendmsg udp_sendmsg tcp_sendmsg* raw_sendmsg")
# Of what is sent to this machine: others hardly count. Fewer samples may be chance.
_ONE_SENDER: Final = 0.6
_SENDER_SAMPLES: Final = 4


def packet_source(case: Case) -> Origin | None:
    """Packets of the backlog come from this machine or were steered: who sends them. Else the
    device that the core polls.
    """
    if case.samples.now.share(_BACKLOG) >= _MOSTLY * case.samples.now.share(RECEIVE):
        return _sender(case)
    counts: dict[str, float] = {}
    rows = case.counters.rows_of("interrupts", case.times.spans).of_core(case.core)
    for device, count in zip(rows["device"], rows["count"], strict=True) if len(rows) else ():
        if device:
            counts[device] = counts.get(device, 0.0) + count
    return (
        Origin("device", max(counts, key=lambda name: counts[name]))
        if any(counts.values())
        else None
    )


def _sender(case: Case) -> Origin | None:
    """One program that sends most of what this machine sends to itself, on another core."""
    most = next(iter(case.samples.elsewhere.tasks(LOCAL_SENDS)), None)
    if most is None or most.share < _ONE_SENDER:
        return None
    sent = case.samples.elsewhere.of_task(most.comm, most.cgroup, most.pid).of(_SENDS).total
    return process_origin(most.comm) if sent >= _SENDER_SAMPLES else None
