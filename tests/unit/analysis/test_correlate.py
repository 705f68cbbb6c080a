"""Resets joined to the core that polls the queue, for every text that ENA has had, and what belongs
together in time.
"""

import pytest
from tests.drawn_node import DrawnNode, at, drawn_node
from tests.logged_events import CAPTURES, captured, event_rows

from necroscope.analysis.correlate import BY_DEVICE, BY_DRIVER, BY_EPISODE, BY_QUEUE
from necroscope.analysis.engine import diagnose
from necroscope.analysis.report import EventSeen, Incident
from necroscope.sources.kernel_log.line import LogLine

# Core 3 is held; queue 5 of eth0 interrupts core 3, queue 3 interrupts core 1.
NODE = """
    core 0:  ..............................
    core 1:  ..............................
    core 2:  ..............................
    core 3:  ............kkkkkkk...........
    k: system  reader[1872]  /system.slice/agent.service  Read > ksys_read, vfs_read, some_walk
"""
ENA = "ena 0000:20:03.0 eth0: "
RESET = [
    ENA + "Trigger reset is on",
    ENA + "tx_timeout: 1",
    (
        "ena 0000:20:03.0: Device reset completed successfully, Driver info: Elastic Network"
        " Adapter (ENA) v2.11.0g"
    ),
]


def node_with(*lines: str, second: float = 19) -> DrawnNode:
    """The lines go through the recorder's own patterns."""
    node = drawn_node(NODE)
    for queue, cpu in ((5, 3), (3, 1)):
        node.add(
            "interrupts",
            10,
            cpu=cpu,
            irq=str(30 + queue),
            action=f"eth0-Tx-Rx-{queue}",
            device="eth0",
            queue=queue,
            count=900,
        )
    times = [at(second) + number * 1_000_000 for number in range(len(lines))]
    node.added["events"] = event_rows(
        LogLine(time_ns, number, 3, 0, True, text)
        for number, (time_ns, text) in enumerate(zip(times, lines, strict=True))
    )
    return node


def only_incident(node: DrawnNode) -> Incident:
    (incident,) = diagnose(node).incidents
    return incident


@pytest.mark.parametrize(
    ("lines", "joined_by"),
    [
        # 2.17.0 names the core itself.
        (
            [
                ENA + "TX q 5 is paused for too long (threshold 5000000). usecs since napi 6596000."
                " napi scheduled: 1. napi CPU: 3. msecs since interrupt: 6590",
                ENA + "napi handler hasn't been called for a long time but is scheduled",
            ],
            BY_DRIVER,
        ),
        # 2.7.2 to 2.16 and in-tree from 6.9 on: queue only.
        (
            [
                ENA
                + "TX q 5 is paused for too long (threshold 5000000). Time since last napi 6596000"
                " usec. napi scheduled: 1",
                ENA + "napi handler hasn't been called for a long time but is scheduled",
            ],
            BY_QUEUE,
        ),
        # 2.5 to 2.7.1: one line for each packet.
        (
            [
                ENA + "Found a Tx that wasn't completed on time, qid 5, index 0. 5756000 usecs have"
                " passed since last napi execution. Missing Tx timeout value 5000 msecs"
            ]
            * 5,
            BY_QUEUE,
        ),
        # 1.x: says nothing of queue or core.
        ([ENA + "Transmit time out"], BY_EPISODE),
        # Any driver with new kernels: the CPU there ran the watchdog's timer and is not the starved
        # one.
        (
            ["ena 0000:20:03.0 eth0: NETDEV WATCHDOG: CPU: 0: transmit queue 5 timed out 5340 ms"],
            BY_QUEUE,
        ),
    ],
    ids=["2.17", "2.11", "2.5", "1.x", "watchdog"],
)
def test_a_reset_is_joined_to_the_core_that_polls_the_queue(
    lines: list[str], joined_by: str
) -> None:
    incident = only_incident(node_with(*lines, *RESET))
    assert incident.core == 3
    assert [(event.kind, event.core, event.joined_by) for event in incident.events] == [
        ("nic_reset", 3, joined_by)
    ]


# What each capture names, the core that polls its queue, and how it is joined to that core.
JOINED = [
    ("ena_1.5.0_transmit_time_out.txt", "ens5", 3, 3, BY_QUEUE),
    ("ena_2.2.10_lost_completions.txt", "eth0", 0, 3, BY_QUEUE),
    ("ena_2.5.0_lost_completions.txt", "ens5", 2, 3, BY_QUEUE),
    ("ena_2.8.0_lost_completions.txt", "eth1", 4, 3, BY_QUEUE),
    ("ena_2.11.0_poll_starvation.txt", "eth0", 5, 3, BY_QUEUE),
    # The watchdog's line names core 56, where its timer ran.
    ("ena_2.13.1_poll_starvation.txt", "eth0", 11, 3, BY_QUEUE),
    ("ena_2.16.1_lost_completions.txt", "ens5", 9, 3, BY_QUEUE),
    ("ena_2.17.0_poll_starvation.txt", "ens5", 6, 22, BY_DRIVER),
    ("ena_2.17.0_lost_completions.txt", "ens5", 3, 17, BY_DRIVER),
    # A lost keep-alive is of no queue.
    ("ena_2.13.1_keepalive_failed.txt", "ens5", None, 3, BY_EPISODE),
]


@pytest.mark.parametrize(
    ("capture", "device", "queue", "core", "joined_by"), JOINED, ids=[name for name, *_ in JOINED]
)
def test_every_text_of_the_driver_is_joined_to_its_core(
    capture: str, device: str, queue: int | None, core: int, joined_by: str
) -> None:
    node = drawn_node(NODE.replace("core 3:", f"core {core}:"))
    for number, cpu in ((queue or 0, core), ((queue or 0) + 1, 0)):
        values = {
            "irq": str(30 + number),
            "action": f"{device}-Tx-Rx-{number}",
            "device": device,
            "queue": number,
        }
        node.add("interrupts", 10, cpu=cpu, count=900, **values)
    node.added["events"] = event_rows(captured(capture, 19))
    incident = only_incident(node)
    assert incident.core == core
    assert [
        (event.kind, event.core, event.queue, event.joined_by) for event in incident.events
    ] == [("nic_reset", core, queue, joined_by)]


def test_no_capture_is_left_out() -> None:
    assert {name for name, *_ in JOINED} == {path.name for path in CAPTURES.glob("ena_*.txt")}


def test_numbers_that_the_driver_swapped_are_put_right() -> None:
    # ENA 2.17.0 prints (cpu, qid) into "qid: %d, napi CPU: %d".
    lines = [
        ENA + "[1/2] Lost TX completions are above threshold (156 > 128), completion timeout: 5000"
        " (msec), 6590 msecs since interrupt, 6596 msecs since napi, qid: 5",
        ENA + "[2/2] qid: 3, napi CPU: 5",
    ]
    incident = only_incident(node_with(*lines, *RESET))
    assert incident.core == 3
    assert incident.events[0].queue == 5


def test_a_forged_line_is_no_event() -> None:
    node = node_with(*RESET)
    node.added["events"] = [(*row[:9], False, None, *row[11:]) for row in node.added["events"]]
    assert not only_incident(node).events


def test_a_line_that_root_wrote_into_the_log_counts_less() -> None:
    node = node_with(*RESET)
    node.added["events"] = [(*row[:9], False, *row[10:]) for row in node.added["events"]]
    incident = only_incident(node)
    assert incident.events
    assert any("not written by the kernel itself" in item.text for item in incident.verdict.against)


def test_a_reset_with_no_held_core_is_an_incident_of_its_own() -> None:
    node = drawn_node(
        "core 0: ..............................\ncore 1: .............................."
    )
    node.event(20, "nic_reset", "Trigger reset is on", device="eth0")
    incident = only_incident(node)
    assert incident.core is None
    assert incident.events[0].joined_by is None


def test_a_reset_that_the_driver_blames_on_the_device_is_not_joined_to_a_core_held_by_chance() -> (
    None
):
    text = (
        "TX q 7 is paused for too long (threshold 5000000). Time since last napi 21000 usec. napi"
        " scheduled: 0"
    )
    incidents = diagnose(node_with(ENA + text, *RESET)).incidents
    events = {incident.core: [event.kind for event in incident.events] for incident in incidents}
    assert events == {3: [], None: ["nic_reset"]}


@pytest.mark.parametrize("kind", ["ray_node_dead", "ray_object_lost", "ray_fetch_timeout"])
def test_a_line_of_ray_accuses_no_core_of_the_node_it_was_written_on(kind: str) -> None:
    node = drawn_node("""
        core 0:  ..........................................................................................
        core 1:  ..........kkkkkkkk........................................................................
        k: system  reader[1872]  /  Read > ksys_read, some_walk
        """).event(
        40,
        kind,
        "Node is dead because the health check failed",
        pattern=None,
        by_kernel=False,
    )
    node.event(41, "nic_reset", "reset on core 0", cpu=0)
    incidents = diagnose(node).incidents
    assert [one.core for one in incidents if kind in [event.kind for event in one.events]] == [None]
    assert {one.core: len(one.events) for one in incidents} == {1: 0, None: 1, 0: 1}


def test_bursts_on_one_core_are_one_incident_and_their_beat_is_told() -> None:
    node = drawn_node("""
        core 0:  ............................................................
        core 1:  .....kk........kk........kk........kk........kk........kk...
        k: system  reader[1872]  /  Read > ksys_read, some_walk
        """)
    incident = only_incident(node)
    assert len([episode for episode in incident.episodes if episode.kind == "saturated"]) == 6
    assert "every 10 s" in incident.verdict.summary


def test_two_cores_held_at_different_times_are_two_incidents() -> None:
    node = drawn_node("""
        core 0:  ...kkkkk......................................
        core 1:  ...................................kkkkk......
        k: system  reader[1872]  /  Read > ksys_read, some_walk
        """)
    assert [incident.core for incident in diagnose(node).incidents] == [0, 1]


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


def timed_out(node: DrawnNode, second: float = 100) -> EventSeen:
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
