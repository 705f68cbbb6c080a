"""A node whose network device is reset while a core is held, with the lines that its driver
writes.
"""

from tests.drawn_node import DrawnNode, at, drawn_node
from tests.logged_events import event_rows

from necroscope.analysis.engine import diagnose
from necroscope.analysis.report import Incident
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
