"""A recording on disk of a drawn incident: a poll waits behind a kernel section, the device is
reset, and names are hostile.
"""

from pathlib import Path

from tests.drawn_node import NS, START_NS, DrawnNode, at, drawn_node

from necroscope.model.reading import Gap
from necroscope.model.tables import TABLES
from necroscope.segment.journal import JournalWriter, SegmentHeader
from necroscope.segment.recording import LIVE, Identity, make_recording, new_segment_path
from necroscope.segment.seal_writer import seal

HOSTILE = '<img src=x onerror="document.title=1">'
SECTION = (
    "main, read > do_syscall_64, ksys_read, vfs_read, seq_read_iter, timer_list_show, print_cpu"
)
PICTURE = f"""
    core 0:  {"." * 10}{"w" * 10}{"." * 40}
    core 1:  {"." * 15}{"k" * 6}{"." * 39}
    core 2:  {"h" * 60}
    core 3:  {"." * 60}
    k: system  collector[500]  /system.slice/collector.service  {SECTION}
    w: user  worker[600]  /user.slice/worker  main, compute, multiply
    h: user  {HOSTILE}[700]  /user.slice/evil  main, {HOSTILE}
"""
RESET = (
    "ena 0000:00:05.0 eth0: TX q 1 is paused for too long (threshold 5000000). napi scheduled: 1."
    " napi CPU: 1"
)


def drawn_incident() -> DrawnNode:
    node = drawn_node(PICTURE)
    for second in range(1, 60):
        is_waiting = 16 <= second <= 20
        values = {"state": "R" if is_waiting else "S", "run_ns": 0 if is_waiting else 1_000_000}
        node.add(
            "runqueue",
            second,
            cpu=1,
            pid=99,
            comm="napi/eth0-7",
            delay_ns=5 * NS if second == 21 else 0,
            **values,
        )
        node.delay(second, 1, 4.5 if second == 20 else 0.0001)
        faults, retransmits = (90_000, 700) if second == 20 else (50, 0)
        node.add("memory", second, elapsed_ns=NS, pgfault=faults)
        node.add("network", second, elapsed_ns=NS, tcp_retransmits=retransmits)
    for second in range(0, 60, 10):
        node.zombies(second, 60_000 + second * 10)
    node.event(20.5, "nic_reset", RESET, cpu=1, device="eth0", queue=1)
    node.event(40, "unit_restart", f"{HOSTILE}.service restarted", fields="{}")
    hot = {"cpu": 1, "trigger": "saturated"}
    stack = "print_cpu;timer_list_show;seq_read_iter;vfs_read;read;main"
    doing = {"syscall": "read", "file": "/proc/timer_list", "stack": stack}
    node.add(
        "tasks",
        17,
        pid=500,
        tid=500,
        comm="collector",
        samples=97,
        argv0="collector",
        **hot,
        **doing,
    )
    node.add(
        "tasks", 17, pid=700, tid=700, comm=HOSTILE, samples=1, argv0=HOSTILE, stack=HOSTILE, **hot
    )
    return node


def write(directory: Path, node: DrawnNode) -> Path:
    make_recording(directory, Identity("drawn-node", "boot-1", "drawn", {}))
    path = new_segment_path(directory, START_NS)
    writer = JournalWriter(
        path,
        SegmentHeader(
            path.name.removesuffix(LIVE), "drawn-node", "boot-1", START_NS, len(node.cores)
        ),
    )
    for table in TABLES:
        if rows := node._rows(table):
            writer.append(table, sorted(rows, key=lambda row: row[0]))
    writer.append("gaps", [Gap("*", at(45), at(48), "the recorder was stopped").row()])
    writer.close()
    seal(path)
    return directory
