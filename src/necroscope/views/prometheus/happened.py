"""Events and gaps counted once each: rows come late, so a stretch is looked at again and what was
counted is remembered.
"""

from collections.abc import Hashable, Iterable, Iterator
from typing import Any, Final, TypeVar

from necroscope.model.reading import Gap
from necroscope.model.units import NS_PER_S
from necroscope.store.query import Store
from necroscope.views.prometheus.exposition import Counter, Metric

# Ray reports a lost object after ten minutes; a failing source's gap is written when it or its
# segment (an hour at most) ends.
_EVENT_BACK_NS: Final = 660 * NS_PER_S
_GAP_BACK_NS: Final = 3700 * NS_PER_S
# Without a series at 0 before the first one, `increase()` in Prometheus would miss it: the kinds
# that alerts ask for.
_ALERTED: Final = (
    "nic_reset nic_reset_failed nic_tx_timeout nic_tx_hang nic_napi_starved nic_lost_interrupt"
    " soft_lockup hard_lockup rcu_stall hung_task core_saturated softirq_stall oom_kill unit_failed"
    " unit_restart container_die ray_node_dead ray_actor_died ray_job_failed"
)

Key = TypeVar("Key", bound=Hashable)


class EventCounters:
    """`look` counts what is new up to the end of the recording, of what happened at `from_ns` or
    later.
    """

    def __init__(self, from_ns: int) -> None:
        self._from_ns = from_ns
        self._events = Counter("necroscope_events_total", "Events by kind.", ("kind",))
        self._gaps = Counter(
            "necroscope_gaps_total",
            "Stretches that were not recorded, by table (`*`: all).",
            ("table",),
        )
        self._gap_seconds = Counter(
            "necroscope_gap_seconds_total",
            "Length of the stretches that were not recorded.",
            ("table",),
        )
        self._lost = Counter("necroscope_lost_samples_total", "Stack samples that were lost.")
        self._seen_events: dict[Hashable, int] = {}
        self._seen_gaps: dict[Hashable, int] = {}
        for kind in _ALERTED.split():
            self._events.add(0, kind)
        for table in ("*", "cores", "samples", "events"):
            self._gaps.add(0, table)
            self._gap_seconds.add(0, table)

    def metrics(self) -> Iterator[Metric]:
        yield from (self._events, self._gaps, self._gap_seconds, self._lost)

    def look(self, store: Store, end_ns: int) -> None:
        since_ns = max(self._from_ns, end_ns - _EVENT_BACK_NS)
        rows = store.rows(
            "events", since_ns, end_ns + 1, columns=("time", "kind", "sequence", "message")
        )
        keyed = ((_key(row), row["time"]) for row in rows.to_pylist())
        for kind, *_ in _new(keyed, self._seen_events, since_ns):
            self._events.add(1, str(kind))
        since_ns = max(self._from_ns, end_ns - _GAP_BACK_NS)
        gaps = (gap for gap in store.gaps(since_ns, end_ns + 1) if gap.to_ns >= since_ns)
        for gap in _new(((gap, gap.to_ns) for gap in gaps), self._seen_gaps, since_ns):
            self._count_gap(gap)

    def _count_gap(self, gap: Gap) -> None:
        """One of no length says that a source begins to fail; the stretch itself follows when it
        ends.
        """
        self._gaps.add(1, gap.table)
        self._gap_seconds.add(
            max(0, gap.to_ns - max(gap.from_ns, self._from_ns)) / NS_PER_S, gap.table
        )
        if gap.table == "samples":
            self._lost.add(gap.lost or 0)


def _key(row: dict[str, Any]) -> tuple[Hashable, ...]:
    """A line that a restarted recorder reads again has the same number in the log, and nearly
    the same time.
    """
    place = ("time", row["time"]) if row["sequence"] is None else ("line", row["sequence"])
    return row["kind"], place, row["message"]


def _new(
    keyed: Iterable[tuple[Key, int]], seen: dict[Hashable, int], since_ns: int
) -> Iterator[Key]:
    """Those not seen before; what lies too far back to come again is forgotten."""
    for key in [key for key, time_ns in seen.items() if time_ns < since_ns]:
        del seen[key]
    for key, time_ns in keyed:
        if key not in seen:
            seen[key] = time_ns
            yield key
