"""A queue is its interrupt, and the interrupt the core that takes it: moved, shared, or not to be
told.
"""

import pytest
from tests.drawn_node import DrawnNode, at, drawn_node
from tests.logged_events import event_rows
from tests.reset_node import ENA, NODE, node_with, only_incident

from necroscope.analysis.engine import diagnose
from necroscope.analysis.event_cores import BY_DEVICE, BY_EPISODE, BY_QUEUE
from necroscope.analysis.report import ReportedEvent
from necroscope.sources.kernel_log.line import LogLine


def test_a_swapped_line_alone_is_put_right_by_the_interrupts() -> None:
    node = node_with().event(
        19,
        "nic_tx_timeout",
        "[2/2] qid: 3, napi CPU: 5",
        pattern="ena.lost_tx_2",
        device="eth0",
        cpu=5,
        queue=3,
    )
    incident = only_incident(node)
    assert (incident.core, incident.events[0].queue) == (3, 5)
    assert "each other's place" in str(incident.events[0].joined_by)


def test_the_core_that_took_the_interrupts_goes_before_those_that_might() -> None:
    node = node_with(
        ENA
        + "TX q 7 is paused for too long (threshold 5000000). Time since last napi 6596000 usec."
        " napi scheduled: 1"
    )
    for cpu, count in ((0, 0), (1, 4), (2, 0), (3, 800)):
        node.add(
            "interrupts",
            10,
            cpu=cpu,
            irq="37",
            action="eth0-Tx-Rx-7",
            device="eth0",
            queue=7,
            affinity="0-3",
            count=count,
        )
    assert only_incident(node).events[0].core == 3


def test_a_queue_that_several_cores_might_take_is_not_guessed() -> None:
    node = drawn_node(
        "core 0: ..............................\ncore 1: .............................."
    )
    for cpu in (0, 1):
        node.add(
            "interrupts",
            10,
            cpu=cpu,
            irq="37",
            action="eth0-Tx-Rx-7",
            device="eth0",
            queue=7,
            affinity="0-1",
            count=0,
        )
    incident = only_incident(
        node.event(20, "nic_tx_timeout", "TX q 7 is paused", device="eth0", queue=7)
    )
    assert incident.core is None


def test_the_only_interrupt_of_a_device_serves_all_its_queues() -> None:
    node = drawn_node(NODE)
    node.add(
        "interrupts",
        10,
        cpu=3,
        irq="27",
        action="eth0",
        device="eth0",
        queue=None,
        affinity="3",
        count=900,
    )
    node.add(
        "interrupts",
        10,
        cpu=1,
        irq="28",
        action="eth1-Tx-Rx-0",
        device="eth1",
        queue=0,
        affinity="1",
        count=900,
    )
    event = only_incident(
        node.event(19, "nic_tx_timeout", "transmit queue 0 timed out", device="eth0", queue=0)
    ).events[0]
    assert (event.core, event.joined_by) == (3, BY_QUEUE)


QUIET = "core 0: {0}\ncore 1: {0}\ncore 2: {0}\ncore 3: {0}".format("." * 110)


def took(
    node: DrawnNode,
    second: float,
    cpu: int,
    count: int,
    affinity: str | None = None,
    **values: object,
) -> None:
    """Interrupts of queue 5 of eth0, unless said otherwise."""
    given = {
        "irq": "35",
        "action": "eth0-Tx-Rx-5",
        "device": "eth0",
        "queue": 5,
        "affinity": affinity,
    } | values
    node.add("interrupts", second, cpu=cpu, count=count, **given)


def timed_out(node: DrawnNode, second: float = 100) -> ReportedEvent:
    event = node.event(
        second, "nic_tx_timeout", "transmit queue 5 timed out", device="eth0", queue=5
    )
    return only_incident(event).events[0]


@pytest.mark.parametrize(
    "affinities", [("1", "3"), ("0-3", "0-3")], ids=["effective affinity", "as it may go"]
)
def test_a_queue_whose_interrupt_was_moved_is_joined_to_the_new_core(
    affinities: tuple[str, str],
) -> None:
    node = drawn_node(QUIET)
    for second in range(10, 50, 10):
        took(node, second, 1, 90_000, affinities[0])
    # In the read after the move some are still the old core's.
    took(node, 50, 1, 80_000, affinities[1])
    for second in range(50, 100, 10):
        took(node, second, 3, 900, affinities[1])
    event = timed_out(node)
    assert (event.core, event.joined_by) == (3, BY_QUEUE)


def test_an_interrupt_that_was_moved_and_has_not_come_since_is_the_new_cores() -> None:
    node = drawn_node(QUIET)
    took(node, 80, 1, 90_000, "1")
    took(node, 90, 3, 0, "3")
    assert timed_out(node).core == 3


def test_where_a_reset_sends_the_interrupt_is_not_where_it_went() -> None:
    node = drawn_node(QUIET)
    took(node, 90, 3, 900, "3")
    took(node, 101, 1, 90_000, "1")
    assert timed_out(node).core == 3


def test_of_several_interrupts_without_a_number_none_is_taken_for_the_queues() -> None:
    node = drawn_node(QUIET)
    for number in range(4):
        took(
            node,
            90,
            number,
            900 + number,
            str(number),
            irq=str(30 + number),
            action="mana_intr",
            queue=None,
        )
    event = timed_out(node)
    assert (event.core, event.joined_by) == (None, None)


def test_an_interrupt_of_configuration_is_no_queues() -> None:
    node = drawn_node(QUIET)
    took(node, 80, 2, 900, "2", irq="31", action="virtio0-virtqueues", queue=None)
    took(node, 90, 1, 0, "1", irq="30", action="virtio0-config", queue=None)
    assert timed_out(node).core == 2


def test_a_bus_address_is_the_device_whose_interrupts_name_it() -> None:
    node = drawn_node(QUIET)
    took(node, 90, 1, 900, "1", irq="31")
    took(node, 90, 2, 900, "2", irq="32", action="mlx5_comp5@pci:0000:3b:00.0", device="eth1")
    event = node.event(
        100, "nic_tx_timeout", "transmit queue 5 timed out", device="0000:3b:00.0", queue=5
    )
    assert only_incident(event).events[0].core == 2


def test_a_queue_of_a_disk_is_none_of_the_only_network_device() -> None:
    node = drawn_node(QUIET)
    took(node, 90, 1, 900, "1", queue=2)
    node.event(
        100,
        "nvme_timeout",
        "nvme nvme0: I/O 897 QID 2 timeout, completion polled",
        device="nvme0",
        queue=2,
    )
    event = only_incident(node).events[0]
    assert (event.core, event.joined_by) == (None, None)


def test_a_queue_of_a_disk_is_joined_by_its_own_interrupt() -> None:
    node = drawn_node(QUIET)
    took(node, 90, 1, 900, "1", queue=2)
    # The affinity of what is no network device is from the first read.
    took(node, 90, 3, 900, "0", irq="50", action="nvme0q2", device=None, queue=None)
    node.event(
        100,
        "nvme_timeout",
        "nvme nvme0: I/O 897 QID 2 timeout, completion polled",
        device="nvme0",
        queue=2,
    )
    event = only_incident(node).events[0]
    assert (event.core, event.joined_by) == (3, BY_QUEUE)


HEALTH = (
    "mlx5_core 0000:3b:00.0: poll_health:800:(pid 0): device's health compromised - reached miss"
    " count"
)


def node_beside(*held: int) -> DrawnNode:
    """mlx5 tells that its firmware hangs while a task holds these cores. Cores 0 and 1 take its
    interrupts, core 0 idle ones.
    """
    calm, busy = "." * 30, "." * 14 + "kkk" + "." * 13
    picture = "".join(f"core {cpu}: {busy if cpu in held else calm}\n" for cpu in range(4))
    node = drawn_node(picture + "k: system  tar[1872]  /  Read > ksys_read, vfs_read, some_walk")
    took(node, 5, 0, 0, "0", irq="31", action="mlx5_comp0@pci:0000:3b:00.0", queue=0)
    took(node, 10, 1, 900, "1", irq="32", action="mlx5_comp1@pci:0000:3b:00.0", queue=1)
    took(node, 10, 2, 900, "2", irq="33", device="eth1")
    node.added["events"] = event_rows([LogLine(at(18), 1, 3, 0, True, HEALTH)])
    return node


def test_a_line_of_the_device_is_not_joined_to_a_core_that_takes_none_of_its_interrupts() -> None:
    incidents = [incident for incident in diagnose(node_beside(3)).incidents if incident.events]
    assert [(incident.core, incident.verdict.cause) for incident in incidents] == [
        (None, "nic-device-fault")
    ]
    assert incidents[0].events[0].joined_by is None


@pytest.mark.parametrize(
    ("held", "joined_by"), [((0,), BY_EPISODE), ((1,), BY_EPISODE), ((1, 3), BY_DEVICE)]
)
def test_a_line_of_the_device_is_joined_to_the_only_held_core_that_takes_its_interrupts(
    held: tuple[int, ...], joined_by: str
) -> None:
    incidents = [incident for incident in diagnose(node_beside(*held)).incidents if incident.events]
    assert [(incident.core, incident.events[0].joined_by) for incident in incidents] == [
        (held[0], joined_by)
    ]


def test_where_no_interrupt_of_the_device_is_recorded_the_only_held_core_is_its() -> None:
    incident = only_incident(node_beside(3).forget("interrupts"))
    assert (incident.core, incident.events[0].joined_by) == (3, BY_EPISODE)
