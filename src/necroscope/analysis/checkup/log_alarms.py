"""Does the kernel log report resets, lockups or stalls? Those of the last hour are a problem;
older ones are only reported.

A node condition made of it would otherwise stand for a day after one line.
"""

from collections import defaultdict
from typing import Final

from necroscope.analysis.checkup.finding import Finding, Level, NamedRow, NodeSnapshot, number
from necroscope.model.units import NS_PER_S, format_duration, format_moment

QUESTION: Final = "kernel-log"
RECENT_NS: Final = 3600 * NS_PER_S
_ALARMS: Final = {
    "nic_reset": "network device resets",
    "nic_reset_failed": "network device resets that failed",
    "nic_tx_timeout": "transmit timeouts of a network device",
    "nic_tx_hang": "transmit hangs of a network device",
    "nic_tx_late": "late transmit completions",
    "nic_napi_starved": "polls of a network device that were starved of a core",
    "nic_keepalive_timeout": "keep-alive timeouts of a network device",
    "nic_lost_interrupt": "lost interrupts of a network device",
    "nic_health": "health alarms of a network device",
    "soft_lockup": "soft lockups",
    "hard_lockup": "hard lockups",
    "rcu_stall": "RCU stalls",
    "kthread_starved": "kernel threads starved of a core",
    "workqueue_lockup": "workqueue lockups",
    "hung_task": "tasks hung in the kernel",
    "nfs_server_silent": "NFS servers that do not answer",
    "nvme_timeout": "disk timeouts",
    "nvme_reset": "disk resets",
    "rt_throttled": "throttled real-time tasks",
    "kernel_oops": "kernel oopses",
}
# The kernel keeps a real-time task from taking a whole core, as it should: by itself nothing is
# wrong.
_ONLY_NOTICED: Final = frozenset({"rt_throttled"})


def examine(node: NodeSnapshot) -> list[Finding]:
    by_kind: dict[str, list[NamedRow]] = defaultdict(list)
    for row in node.rows("events"):
        # A line that the kernel did not write itself may come from any process.
        if row["by_kernel"] and row["kind"] in _ALARMS:
            by_kind[str(row["kind"])].append(row)
    return [_finding(kind, rows, node) for kind, rows in by_kind.items()]


def _finding(kind: str, rows: list[NamedRow], node: NodeSnapshot) -> Finding:
    last = rows[-1]
    age_ns = max(node.now_ns - number(last["time"]), 0)
    level = Level.PROBLEM if age_ns <= RECENT_NS and kind not in _ONLY_NOTICED else Level.NOTICE
    hint = (
        f"if it ran then, the recorder explains it: necroscope diagnose {node.recording}"
        if node.recording is not None
        else "keep a recorder running, which explains the next one: necroscope record"
    )
    where = [f"core {last['cpu']}" if last["cpu"] is not None else "", str(last["device"] or "")]
    title = (
        f"{_ALARMS[kind]} in the kernel log: {len(rows)}, the last {format_duration(age_ns)} ago"
    )
    facts = (
        " ".join(filter(None, [format_moment(number(last["time"])), *where, str(last["message"])])),
    )
    return Finding(
        QUESTION,
        level,
        title,
        facts,
        hint,
    )
