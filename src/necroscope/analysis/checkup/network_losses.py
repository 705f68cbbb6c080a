"""Does the network lose packets: a watchdog that fired, an allowance that is used up, listeners and
connection tracking that drop right now?

What a device counts is since it came up, maybe months ago: told, and no problem by itself. What is
dropped in the second of the look is.
"""

import re
from typing import Final

from necroscope.analysis.checkup.finding import Finding, Level, NamedRow, NodeSnapshot, number

QUESTION: Final = "network-losses"
_SINCE_UP: Final = (
    (
        re.compile(r"tx-(\d+)/tx_timeout"),
        "its transmit watchdog fired on queue {queue}",
        "a core that polls the queue was held, or the device: {look}",
    ),
    (
        re.compile(r"suspected_poll_starvation"),
        "its driver was reset because a poll did not get a core",
        "find what holds the core: {look}",
    ),
    (
        re.compile(r"(\w+_allowance_exceeded)"),
        "{queue} was hit: the cloud shapes this instance",
        "a larger instance, or less traffic; no setting of this node helps",
    ),
)
# Of the second of the look: what is dropped, and at which count it is worth a word.
_NOW: Final = {
    "listen_drops": (1, "connections were dropped by listeners whose queue is full"),
    "conntrack_drops": (1, "packets were dropped: the table of tracked connections is full"),
    "conntrack_insert_failed": (3, "packets of new connections raced and were dropped"),
    "udp_receive_errors": (50, "datagrams found their socket full"),
}


def examine(node: NodeSnapshot) -> list[Finding]:
    rows = [row for row in node.newest("nics", "device", "counter") if row["driver"] != "veth"]
    look = node.closer_look("10m")
    counted = [finding for row in rows if (finding := _since_up(row, look)) is not None]
    return [*_now(node.rows("network"), look), *counted]


def _since_up(row: NamedRow, look: str) -> Finding | None:
    for form, words, hint in _SINCE_UP:
        found = form.fullmatch(str(row["counter"]))
        if found is not None and number(row["value"]):
            what = words.format(queue=found[1] if form.groups else "")
            title = f"{row['device']}: {what}, {number(row['value']):,} times since it came up"
            facts = (f"driver {row['driver']}, {row['firmware'] or 'version unknown'}",)
            return Finding(QUESTION, Level.NOTICE, title, facts, hint.format(look=look))
    return None


def _now(rows: list[NamedRow], look: str) -> list[Finding]:
    found = []
    for column, (least, words) in _NOW.items():
        count = sum(number(row[column]) for row in rows)
        if rows and count >= least * len(rows):
            entries = number(rows[-1]["conntrack_entries"])
            facts = (f"{entries:,} connections are tracked",) if "conntrack" in column else ()
            title = f"{count:,} {words} in {len(rows)} s"
            found.append(Finding(QUESTION, Level.PROBLEM, title, facts, look))
    return found
