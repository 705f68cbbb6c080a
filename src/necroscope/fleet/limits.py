"""What a collector accepts of one node, so that no node can fill its memory, its lake or its
time.
"""

from dataclasses import dataclass

_MIB = 1 << 20


@dataclass(frozen=True, slots=True)
class Limits:
    """Defaults fit a node of 96 cores that sends a batch of 15 to 30 KiB per minute, with room for
    its days without a collector.
    """

    body_bytes: int = 2 * _MIB
    inflated_bytes: int = 16 * _MIB
    # Commas and brackets of the JSON: parsing holds the interpreter, and takes a second per few
    # million of them.
    marks: int = 400_000
    bundle_bytes: int = 2 * _MIB
    labels: int = 64
    label_bytes: int = 128
    # Names of labels among the facts: a recording may know of more than its node tells.
    label_facts: int = 256
    # Reports are up to 256 KiB each, and lists of incidents are made of all.
    incidents: int = 256
    rows: int = 20_000
    # Every day of a batch is a file of its own in every table it has.
    days: int = 64
    # Of batches on their way from the socket to the lake, over all nodes: what the process may
    # hold.
    queued_bytes: int = 64 * _MIB
    queued_requests: int = 1000
    # Of one node with a token of its own, which sends one after the other: a slow body holds its
    # place for half a minute.
    node_requests: int = 8
    node_batches_per_s: float = 4.0
    node_burst: int = 240
    cluster_batches_per_s: float = 1000.0
    cluster_burst: int = 5000
    # Of one node in a day, batches and bundles together: forty times what a busy one sends.
    node_bytes_per_day: int = 2048 * _MIB
    # Days of tables that are neither of today nor of yesterday: each becomes a file. A recording of
    # half a year fits in.
    node_old_days_per_day: int = 2000
    # What one cluster may take in a day of the space that was left in the lake when it began.
    cluster_share: float = 0.5


DEFAULT_LIMITS = Limits()
