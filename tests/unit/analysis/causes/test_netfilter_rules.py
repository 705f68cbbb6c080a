"""The loop over rules must have much of what is done with packets."""

import pytest
from tests.drawn_node import drawn_node

from necroscope.analysis.engine import diagnose

RECEIVE = (
    "run_ksoftirqd, __do_softirq, net_rx_action, process_backlog, __netif_receive_skb_one_core,"
    " ip_local_deliver, nf_hook_slow"
)


def node(*inner: str) -> str:
    lines = "\n".join(f"    r: softirq  ksoftirqd/1[17]  /  > {RECEIVE}, {name}" for name in inner)
    return (
        "core 0:  ..............................\n    core 1: "
        f" ...............rrrrrr.........\n{lines}"
    )


@pytest.mark.parametrize(
    ("loop", "name"), [("ipt_do_table", "iptables rules"), ("nft_do_chain", "nftables rules")]
)
def test_the_loop_over_rules_is_named_and_the_rules_are_the_origin(loop: str, name: str) -> None:
    (incident,) = diagnose(drawn_node(node(loop, loop, loop, "udp_rcv"))).incidents
    assert (incident.core, incident.mode, incident.verdict.cause) == (
        1,
        "softirq",
        "netfilter-rules",
    )
    assert incident.verdict.origin is not None
    assert (incident.verdict.origin.kind, incident.verdict.origin.name) == (
        "setting",
        name,
    )


def test_a_few_rules_that_every_packet_passes_are_not_named() -> None:
    (incident,) = diagnose(drawn_node(node("nft_do_chain", *["udp_rcv"] * 4))).incidents
    assert incident.verdict.cause == "unknown"
    assert any(other.cause == "netfilter-rules" for other in incident.alternatives)


def test_it_goes_before_the_storm_it_looks_like() -> None:
    drawn = drawn_node(node("ipt_do_table", "ipt_do_table", "ipt_do_table", "udp_rcv"))
    for second in range(1, 30):
        is_now = 16 <= second <= 21
        drawn.add(
            "softnet",
            second,
            cpu=1,
            processed=8000 if is_now else 50,
            dropped=2000 if is_now else 0,
            time_squeeze=0,
        )
    (incident,) = diagnose(drawn).incidents
    assert incident.verdict.cause == "netfilter-rules"


def test_a_tool_that_replaces_the_tables_is_the_culprit() -> None:
    drawn = drawn_node("""
        core 0:  ..............................
        core 1:  ...............nnnnnn.........
        n: system  nft[911]  /  main > __sys_sendmsg, netlink_unicast, nfnetlink_rcv_batch, nf_tables_commit, __nft_set_trans_bind
    """)
    (incident,) = diagnose(drawn).incidents
    assert incident.verdict.cause == "netfilter-rules"
    assert incident.verdict.culprit is not None
    assert incident.verdict.culprit.comm == "nft"
