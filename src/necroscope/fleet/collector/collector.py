"""The parts of a running collector, joined: what routes are handed."""

import time
from collections.abc import Callable
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass, field
from typing import Final, Protocol
from uuid import uuid4

from necroscope.fleet.collector.admission import DailyQuota, RequestBudget, TokenBuckets
from necroscope.fleet.collector.group_commit import GroupCommit
from necroscope.fleet.collector.job_deaths import JobDeaths
from necroscope.fleet.collector.metrics import Metrics, resident_memory_bytes
from necroscope.fleet.lake import Lake
from necroscope.fleet.lake_tables import DAY_NS
from necroscope.fleet.limits import DEFAULT_LIMITS, Limits
from necroscope.fleet.tokens import Grant

COMMIT_EVERY_S: Final = 0.25
COMPACT_EVERY_S: Final = 10.0
# Parsing holds the interpreter: more threads would only take turns.
_DECODERS: Final = 2


class TokenSource(Protocol):
    """`tokens.Tokens`, or `tokens.TokenFile`, which follows its file."""

    def grant_of(self, token: str) -> Grant | None: ...
    def refresh(self) -> bool: ...


@dataclass(slots=True)
class Collector:
    """Nothing in it outlives it: the state of a collector is its lake, so several may work on
    one.
    """

    lake: Lake
    tokens: TokenSource
    limits: Limits = DEFAULT_LIMITS
    commit_every_s: float = COMMIT_EVERY_S
    compact_every_s: float = COMPACT_EVERY_S
    free_floor_bytes: int = 0
    # None: forever.
    keep_ns: int | None = None
    say: Callable[[str], None] = lambda _: None
    clock_ns: Callable[[], int] = time.time_ns
    # This process among the collectors of a lake.
    name: str = field(default_factory=lambda: uuid4().hex)
    metrics: Metrics = field(default_factory=Metrics)
    budget: RequestBudget = field(init=False)
    commits: GroupCommit = field(init=False)
    decoders: ThreadPoolExecutor = field(init=False)
    job_deaths: JobDeaths = field(init=False)
    _quota: DailyQuota = field(init=False)
    _space: tuple[int, int | None] = (-1, None)
    _node_rates: TokenBuckets = field(init=False)
    _cluster_rates: TokenBuckets = field(init=False)

    def __post_init__(self) -> None:
        limits = self.limits
        self.budget = RequestBudget(
            limits.queued_bytes, limits.queued_requests, limits.node_requests
        )
        self.commits = GroupCommit(
            self.lake,
            self.name,
            self.metrics,
            every_s=self.commit_every_s,
            free_floor_bytes=self.free_floor_bytes,
            clock_ns=self.clock_ns,
        )
        self.job_deaths = JobDeaths(self.lake, self.clock_ns)
        self._quota = DailyQuota(self.clock_ns)
        self.decoders = ThreadPoolExecutor(_DECODERS, "decode")
        self._node_rates = TokenBuckets(
            limits.node_batches_per_s, limits.node_burst, time.monotonic
        )
        self._cluster_rates = TokenBuckets(
            limits.cluster_batches_per_s, limits.cluster_burst, time.monotonic
        )

    def wait_s(self, cluster: str, node: str | None = None) -> int:
        """Seconds that a cluster, or one of its nodes, has to wait; 0: it may come."""
        return (
            self._cluster_rates.wait_s(cluster)
            if node is None
            else self._node_rates.wait_s(cluster, node)
        )

    def take_quota(self, cluster: str, node: str, size_bytes: int, old_days: int = 0) -> None:
        """Refusal once a node, or all of a cluster, has brought what it may in a day."""
        limits, take = self.limits, self._quota.take
        take(old_days, limits.node_old_days_per_day, "old days", cluster, node)
        take(size_bytes, limits.node_bytes_per_day, "bytes", cluster, node)
        day = self.clock_ns() // DAY_NS
        if self._space[0] != day:
            space = self.lake.space_bytes()
            self._space = day, None if space is None else space[0]
        if self._space[1] is not None:
            most = int(max(0, self._space[1] - self.free_floor_bytes) * limits.cluster_share)
            take(size_bytes, most, "share of the lake", cluster)

    def metrics_text(self) -> str:
        return self.metrics.text(
            {
                "queue_bytes": self.budget.used_bytes,
                "queue_requests": self.budget.requests,
                "lake_writable": int(self.commits.failure is None),
                "resident_memory_bytes": resident_memory_bytes(),
            }
        )
