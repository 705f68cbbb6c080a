"""Too many packets is a storm; packets that take too long, and packets that all arrive, are not."""

from tests.drawn_node import DrawnNode, drawn_node

from necroscope.analysis.engine import diagnose

RECEIVE = (
    "run_ksoftirqd, handle_softirqs, net_rx_action, __napi_poll, process_backlog,"
    " __netif_receive_skb_one_core"
)
STORM = f"""
    core 0:  ....................ssssssssss..........
    core 1:  ....................rrrrrrrrrr..........
    s: user+system  telegraph[311]  /  main, sendmmsg > __sys_sendmmsg, packet_sendmsg, packet_direct_xmit, veth_xmit
    r: softirq  ksoftirqd/1[17]  /  > {RECEIVE}, ip_rcv
    r: softirq  ksoftirqd/1[17]  /  > {RECEIVE}, udp_queue_rcv_one_skb
    r: softirq  ksoftirqd/1[17]  /  > {RECEIVE}, skb_clone
"""


def stormy(
    dropped: int = 5000, squeezed: int = 40, processed: int = 90_000, picture: str = STORM
) -> DrawnNode:
    node = drawn_node(picture)
    for second in range(1, 40):
        is_now = 21 <= second <= 30
        counts = (
            {"processed": processed, "dropped": dropped, "time_squeeze": squeezed}
            if is_now
            else {"processed": 50, "dropped": 0}
        )
        node.add("softnet", second, cpu=1, **counts).add(
            "softnet", second, cpu=0, processed=20, dropped=0, time_squeeze=0
        )
    return node


def test_more_packets_than_the_core_can_take_are_a_storm_with_its_sender() -> None:
    (incident,) = diagnose(stormy()).incidents
    assert (incident.core, incident.mode, incident.verdict.cause) == (1, "softirq", "softirq-storm")
    assert incident.verdict.culprit is not None
    assert incident.verdict.culprit.comm == "ksoftirqd/1"
    assert incident.verdict.origin is not None
    assert incident.verdict.origin.name == "telegraph"


def test_a_budget_exceeded_again_and_again_confirms_it_where_nothing_is_dropped() -> None:
    (incident,) = diagnose(stormy(dropped=0)).incidents
    assert incident.verdict.cause == "softirq-storm"


def test_a_core_without_time_left_is_a_storm_although_nothing_is_dropped_yet() -> None:
    (incident,) = diagnose(stormy(dropped=0, squeezed=0)).incidents
    assert incident.verdict.cause == "softirq-storm"
    (incident,) = diagnose(stormy().forget("softnet")).incidents
    assert incident.verdict.cause == "softirq-storm"


def test_most_of_a_core_in_receiving_is_a_storm_although_its_tasks_get_the_rest() -> None:
    app = drawn_node("core 0:  r\nr: user  app[90]  /  main, work").works["r"]
    node = stormy(dropped=0, squeezed=0).forget("cores")
    node.works["r"] = [*(node.works["r"] * 3)[:7], *app]
    incident = next(one for one in diagnose(node).incidents if one.core == 1)
    assert incident.verdict.cause == "softirq-storm"


def test_packets_that_are_all_taken_in_time_are_not_named() -> None:
    assert not diagnose(stormy(dropped=0, squeezed=0, picture=DOWNLOAD)).incidents


def test_few_packets_are_no_storm() -> None:
    (incident,) = diagnose(stormy(processed=900)).incidents
    assert incident.verdict.cause == "unknown"


def test_the_device_whose_interrupts_the_core_takes_is_the_origin_of_packets_from_outside() -> None:
    node = stormy(picture=STORM.replace("process_backlog", "ena_io_poll"))
    for second in (10, 20, 30):
        node.add(
            "interrupts",
            second,
            cpu=1,
            irq="30",
            action="ens5-Tx-Rx-1",
            device="ens5",
            queue=1,
            count=9000,
        )
    (incident,) = diagnose(node).incidents
    assert incident.verdict.origin is not None
    assert (incident.verdict.origin.kind, incident.verdict.origin.name) == (
        "device",
        "ens5",
    )


def test_a_device_that_also_interrupts_the_core_is_not_blamed_for_packets_of_the_backlog() -> None:
    node = stormy(picture=STORM.replace("packet_direct_xmit, veth_xmit", "tcp_sendmsg"))
    node.add(
        "interrupts", 30, cpu=1, irq="30", action="ens5-Tx-Rx-1", device="ens5", queue=1, count=9000
    )
    (incident,) = diagnose(node).incidents
    assert incident.verdict.cause == "softirq-storm"
    assert incident.verdict.origin is None


def test_one_slow_function_is_reported_against_it() -> None:
    slow = "\n".join(
        line for line in STORM.splitlines() if "skb_clone" not in line and "ip_rcv" not in line
    )
    (incident,) = diagnose(stormy(picture=slow)).incidents
    assert incident.verdict.cause == "unknown"


def test_other_cores_with_as_many_packets_speak_against_one_queue() -> None:
    node = stormy()
    others = {row[0]: row for row in node.added["softnet"] if row[1] == 0}
    processed = 3
    node.added["softnet"] = [
        (*row[:processed], 88_000, *row[processed + 1 :]) if row in others.values() else row
        for row in node.added["softnet"]
    ]
    (incident,) = diagnose(node).incidents
    assert any("88,000" in item.text for item in incident.verdict.against)
    assert not any("88,000" in item.text for item in incident.verdict.evidence)
    assert any(
        "no other core took more than 20" in item.text
        for item in diagnose(stormy()).incidents[0].verdict.evidence
    )


DOWNLOAD = STORM.replace("r: softirq ", "r: softirq+idle ").replace("ssssssssss", "..........")


def test_a_budget_exceeded_on_a_core_that_has_time_is_a_download() -> None:
    assert not diagnose(stormy(dropped=0, picture=DOWNLOAD)).incidents


def test_packets_dropped_are_a_storm_though_the_core_has_time_between() -> None:
    (incident,) = diagnose(stormy(picture=DOWNLOAD)).incidents
    assert incident.verdict.cause == "softirq-storm"


def test_a_budget_exceeded_while_a_softirq_waits_is_a_storm() -> None:
    node = stormy(dropped=0, picture=DOWNLOAD)
    for second in range(21, 31):
        node.delay(second, 1, 0.15)
    (incident,) = diagnose(node).incidents
    assert incident.verdict.cause == "softirq-storm"
