"""Names for what the lab makes, chosen by its seed: believable, and never the same, so that no
diagnosis can learn them.
"""

from random import Random
from typing import Final

_WORDS: Final = {
    "agent": (
        "telemetry",
        "node",
        "metrics",
        "audit",
        "health",
        "inventory",
        "config",
        "event",
        "usage",
        "probe",
    ),
    "app": (
        "ranker",
        "trainer",
        "feature",
        "shard",
        "embed",
        "dataload",
        "reducer",
        "indexer",
        "batch",
        "stream",
    ),
    "tool": (
        "rotate",
        "report",
        "backup",
        "sync",
        "scan",
        "purge",
        "digest",
        "compact",
        "export",
        "check",
    ),
}
_TAILS: Final = {
    "agent": ("agent", "d", "collector", "exporter", "monitor", "proxy"),
    "app": ("worker", "svc", "server", "job", "main", "loop"),
    "tool": ("job", "task", "cron", "run", "sh", "step"),
}
# The kernel cuts a task's name (TASK_COMM_LEN with its end).
LONGEST_COMM: Final = 15


def invent(random: Random, kind: str) -> str:
    """A name of this kind (agent, app, tool) that fits into a comm: `audit-agent-x7`."""
    pairs = [
        pair
        for word in _WORDS[kind]
        for tail in _TAILS[kind]
        if len(pair := f"{word}-{tail}") <= LONGEST_COMM - 3
    ]
    mark = "".join(random.choice("abcdefghjkmnpqrstuvwxyz23456789") for _ in range(2))
    return f"{random.choice(pairs)}-{mark}"
