"""One handler that holds a core inside interrupts is named with what feeds it; many short packets,
and a core that has time, are not.
"""

import pytest
from tests.drawn_node import DrawnNode, drawn_node

from necroscope.analysis.engine import diagnose
from necroscope.analysis.report import Incident

TIMER = "run_ksoftirqd, handle_softirqs, run_timer_softirq, __run_timers, call_timer_fn"
RECEIVE = "run_ksoftirqd, handle_softirqs, net_rx_action, __napi_poll"
BACKLOG = f"{RECEIVE}, process_backlog, __netif_receive_skb_one_core"
CORE = "....................hhhhhhhhhhhh............"


def held(path: str, core: str = CORE, mode: str = "softirq", beside: str = "") -> DrawnNode:
    quiet = beside or "." * len(core)
    return drawn_node(
        f"core 0:  {quiet}\ncore 1:  {core}\nh: {mode}  ksoftirqd/1[17]  /  > {path}\n"
        "m: system  addr-sync[70]  /system.slice/addr-sync.service  main > rtnl_newneigh, neigh_add"
    )


def with_packets(node: DrawnNode, per_s: int) -> DrawnNode:
    for second in range(1, 44):
        processed = per_s if 21 <= second <= 32 else 50
        node.add("softnet", second, cpu=1, processed=processed, dropped=0, time_squeeze=0)
    return node


def only(node: DrawnNode) -> Incident:
    (incident,) = diagnose(node).incidents
    return incident


def test_a_timer_that_walks_a_list_is_named_by_its_function_and_where_it_spends_its_time() -> None:
    incident = only(held(f"{TIMER}, estimation_timer, ip_vs_read_cpu_stats"))
    verdict = incident.verdict
    assert (incident.core, incident.mode, verdict.cause) == (1, "softirq", "interrupt-handler")
    assert "estimation_timer, mostly in ip_vs_read_cpu_stats, held core 1" in verdict.summary
    assert "softirqs (timers)" in verdict.summary


def test_the_handler_is_found_behind_the_doors_of_an_arm64_kernel() -> None:
    """As 6.1 for arm64 shows them when a timer runs at the exit of an interrupt."""
    entered = (
        "el1h_64_irq, el1h_64_irq_handler, el1_interrupt, irq_exit_rcu, __irq_exit_rcu,"
        " do_softirq_own_stack, call_on_irq_stack, ____do_softirq, __do_softirq, handle_softirqs"
    )
    timer = "run_timer_softirq, __run_timers, call_timer_fn, estimation_timer"
    verdict = only(held(f"{entered}, {timer}, arch_local_irq_restore")).verdict
    assert verdict.cause == "interrupt-handler"
    assert "estimation_timer held core 1" in verdict.summary


def test_what_it_walks_is_reported_with_who_made_it() -> None:
    node = held(f"{TIMER}, neigh_timer_handler, arp_solicit", beside="." * 8 + "mmmm" + "." * 32)
    for second, count in ((0, 20), (8, 20), (12, 40_000), (40, 40_000)):
        node.add("populations", second, kind="neighbours", count=count)
    verdict = next(
        one.verdict for one in diagnose(node).incidents if one.verdict.cause == "interrupt-handler"
    )
    assert verdict.walked is not None
    assert (verdict.walked.function, verdict.walked.population) == (
        "neigh_timer_handler",
        "neighbours",
    )
    assert "over 40,000 neighbours" in verdict.summary
    assert verdict.origin is not None
    assert verdict.origin.name == "addr-sync.service"


@pytest.mark.parametrize(
    ("path", "handler"),
    [
        (
            f"{BACKLOG}, tcp_v4_rcv, tcp_rcv_established, tcp_prune_queue, tcp_collapse",
            "tcp_v4_rcv",
        ),
        (f"{RECEIVE}, mlx5e_napi_poll", "mlx5e_napi_poll"),
    ],
    ids=("tcp_collapse", "a poll that does not end"),
)
def test_a_few_packets_that_fill_a_core_are_slow_and_not_a_storm(path: str, handler: str) -> None:
    verdict = only(with_packets(held(path), 400)).verdict
    assert verdict.cause == "interrupt-handler"
    assert verdict.walked is not None
    assert verdict.walked.function == handler
    assert any("us each; 10 us is usual" in item.text for item in verdict.evidence)


def test_many_packets_that_fill_a_core_are_a_storm() -> None:
    verdict = only(with_packets(held(f"{BACKLOG}, tcp_v4_rcv"), 90_000)).verdict
    assert verdict.cause != "interrupt-handler"


def test_a_core_whose_tasks_have_most_of_it_is_not_held_by_its_packets() -> None:
    app = "\nh: user  app[90]  /  main, work"
    node = held(f"{BACKLOG}, tcp_v4_rcv", mode="user+softirq")
    node.works["h"] += 2 * drawn_node(f"core 0:  h{app}").works["h"]
    assert not diagnose(with_packets(node, 3_000)).incidents


def test_softirqs_of_several_handlers_are_no_handlers_doing() -> None:
    picture = "\n".join(
        f"h: softirq  ksoftirqd/1[17]  /  > {path}"
        for path in (
            f"{TIMER}, tcp_delack_timer",
            "run_ksoftirqd, handle_softirqs, rcu_core, rcu_do_batch, file_free_rcu",
            "run_ksoftirqd, handle_softirqs, tasklet_action, tasklet_action_common, frob_tasklet",
        )
    )
    node = drawn_node(f"core 0:  {'.' * 44}\ncore 1:  {CORE}\n{picture}")
    assert only(node).verdict.cause == "unknown"


def test_a_hard_interrupt_that_does_not_return_is_named() -> None:
    path = "asm_common_interrupt, common_interrupt, handle_edge_irq, handle_irq_event, frob_isr"
    incident = only(held(path, mode="irq"))
    assert incident.verdict.cause == "interrupt-handler"
    assert "frob_isr held core 1 inside interrupts" in incident.verdict.summary


def test_a_walk_over_firewall_rules_keeps_its_own_name() -> None:
    node = held(f"{BACKLOG}, ip_rcv, nf_hook_slow, ipt_do_table")
    assert only(with_packets(node, 4_000)).verdict.cause == "netfilter-rules"


def test_a_task_that_merely_was_interrupted_is_not_named() -> None:
    timer = "asm_sysvec_apic_timer_interrupt, irq_exit_rcu, " + TIMER.removeprefix(
        "run_ksoftirqd, "
    )
    node = held(f"{timer}, estimation_timer")
    node.works["h"] = drawn_node(
        f"core 0:  h\nh: softirq  nginx[90]  /pods/web  main, parse > {timer}, estimation_timer"
    ).works["h"]
    verdict = only(node).verdict
    assert verdict.cause == "interrupt-handler"
    assert verdict.culprit is not None
    assert verdict.culprit.comm is None
    assert verdict.culprit.path[-1] == "estimation_timer"


def test_a_task_whose_own_call_runs_the_handler_is_named() -> None:
    send = "__sys_sendto, udp_sendmsg, __local_bh_enable_ip, do_softirq, handle_softirqs"
    path = f"{send}, net_rx_action, __napi_poll, process_backlog, ip_rcv, frob_deliver"
    node = with_packets(held(path), 400)
    node.works["h"] = drawn_node(
        f"core 0:  h\nh: softirq  chatter[90]  /pods/a  main, send > {path}"
    ).works["h"]
    verdict = only(node).verdict
    assert verdict.cause == "interrupt-handler"
    assert verdict.culprit is not None
    assert verdict.culprit.comm == "chatter"
