"""Events that matter here, from the log, the node's daemons and Ray: how bad each kind is, and how
far back it began.
"""

import json
from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass, field
from typing import Any, Final

import numpy as np

from necroscope.analysis.columns import ColumnArrays
from necroscope.analysis.device_counters import CounterKind, CounterRise
from necroscope.model.units import NS_PER_MS, NS_PER_S, NS_PER_US

# Seconds between the start of the trouble and the line that reports it. A NIC's transmit watchdog
# waits 5 s, or twice that while NAPI is scheduled; soft lockups need 20 s, RCU stalls 21 to 60,
# workqueues 30, hung tasks 120, calls of NFS over TCP 180; Ray declares a node dead after 65 s, and
# an object lost after ten minutes.
_LOOK_BACK_S: Final = {
    "nic_reset": 12,
    "nic_reset_done": 12,
    "nic_reset_failed": 12,
    "nic_tx_timeout": 12,
    "nic_tx_hang": 12,
    "nic_tx_late": 8,
    "nic_napi_starved": 12,
    "nic_keepalive_timeout": 8,
    "nic_admin_queue_stopped": 8,
    "nic_lost_interrupt": 8,
    "nic_health": 8,
    "soft_lockup": 25,
    "hard_lockup": 15,
    "rcu_stall": 65,
    "kthread_starved": 65,
    "timer_late": 25,
    "workqueue_lockup": 40,
    "hung_task": 130,
    "nfs_server_silent": 190,
    "nvme_timeout": 35,
    "nvme_reset": 35,
    "conntrack_full": 5,
    "neighbour_overflow": 5,
    "gpu_xid": 10,
    "gpu_lost": 10,
    "kernel_panic": 0,
    "boot_ended": 0,
    "ray_node_dead": 75,
    "ray_actor_died": 75,
    "ray_job_failed": 75,
    "ray_job_hang": 75,
    "ray_fetch_timeout": 660,
    "ray_object_lost": 660,
}
# These belong to an incident they fall into, and are none alone.
_MINOR_S: Final = {
    "softirq_pending": 2,
    "rt_throttled": 3,
    "clocksource_unstable": 5,
    "hrtimer_slow": 2,
    "workqueue_hog": 5,
    "oom_kill": 10,
    "oom_invoked": 10,
    "page_allocation_failure": 5,
    "nfs_server_answers": 2,
    "container_die": 3,
    "container_oom": 10,
    "unit_failed": 3,
    "unit_restart": 3,
    "perf_slow": 2,
}
# A line that is read again has the same key in its boot, and nearly the same time: the clocks are
# measured again.
_AGAIN_NS: Final = 10 * NS_PER_S
NIC_KINDS: Final = frozenset(kind for kind in _LOOK_BACK_S if kind.startswith("nic_"))
# Tables of the network that are full: of the node's traffic, and of no core.
TRAFFIC_KINDS: Final = frozenset({"conntrack_full", "neighbour_overflow"})
GPU_KINDS: Final = frozenset({"gpu_xid", "gpu_lost"})
# The end of the boot before: told when the next one begins.
ENDED_KINDS: Final = frozenset({"kernel_panic", "boot_ended"})
_SCOPES: Final = {"traffic": TRAFFIC_KINDS, "gpu": GPU_KINDS, "end": ENDED_KINDS}
_OF_NO_CORE: Final = TRAFFIC_KINDS | GPU_KINDS | ENDED_KINDS
# The transmit watchdog's hits that the log does not tell: up to 5.15 it tells the first of a boot
# only. The log's own line is this near to the read that counts it.
_LOGGED_WITHIN_NS: Final = 15 * NS_PER_S
# The line says how long the task has stood, which is a setting (hung_task_timeout_secs).
_SAYS_ITS_AGE: Final = frozenset({"hung_task"})
_SWAPS_CORE_AND_QUEUE: Final = frozenset({"ena.lost_tx", "ena.lost_tx_2"})
# Fields of a pattern that say how long it had lasted, by their unit.
_AGES: Final = {
    "napi_us": NS_PER_US,
    "napi_ms": NS_PER_MS,
    "pending_ms": NS_PER_MS,
    "stuck_s": NS_PER_S,
    "blocked_s": NS_PER_S,
}


@dataclass(frozen=True, slots=True)
class Happening:
    """One event. `fields` is what its pattern caught; `core` is as the line names it; `by_kernel`:
    no other process wrote the line.

    `sequence` is the key of its first line in the log of one boot.
    """

    time_ns: int
    kind: str
    pattern: str | None
    core: int | None
    device: str | None
    queue: int | None
    pid: int | None
    comm: str | None
    message: str
    by_kernel: bool = True
    sequence: int | None = None
    fields: dict[str, Any] = field(default_factory=dict)

    @property
    def is_major(self) -> bool:
        return self.kind in _LOOK_BACK_S

    @property
    def is_of_a_core(self) -> bool:
        """Whether a core of this node may be behind it. Ray writes of any node of its cluster where
        its head runs: such a line says nothing of the node it was written on.
        """
        return not self.kind.startswith("ray_") and self.kind not in _OF_NO_CORE

    @property
    def scope(self) -> str:
        """Events of one scope may report the same trouble, those of two never do."""
        for scope, kinds in _SCOPES.items():
            if self.kind in kinds:
                return scope
        return "core" if self.is_of_a_core else "ray"

    @property
    def is_of_traffic(self) -> bool:
        return self.kind in TRAFFIC_KINDS

    @property
    def may_swap_core_and_queue(self) -> bool:
        """ENA 2.17.0 prints them in each other's place in these lines."""
        return self.pattern in _SWAPS_CORE_AND_QUEUE

    @property
    def is_of_the_device(self) -> bool:
        """The driver itself says that no core was starved: its poll was not waiting to run."""
        return self.kind.startswith("nic_") and self.fields.get("napi_scheduled") == 0

    @property
    def began_ns(self) -> int:
        """When the trouble may have begun, at the earliest: as the line says, else as long as such
        a line takes to come.
        """
        said_ns = [
            int(value * unit)
            for name, unit in _AGES.items()
            if isinstance(value := self.fields.get(name), int)
        ]
        known_ns = [age_ns + 2 * NS_PER_S for age_ns in said_ns if age_ns < 3600 * NS_PER_S]
        if self.kind in _SAYS_ITS_AGE and known_ns:
            return self.time_ns - max(known_ns)
        usual_ns = (_LOOK_BACK_S | _MINOR_S).get(self.kind, 5) * NS_PER_S
        return self.time_ns - max([usual_ns, *known_ns])


def happenings(events: ColumnArrays) -> list[Happening]:
    """Of the rows of `events` those that matter and that not just any process may have written.

    A line that looks like the kernel's is its own, or root wrote it to /dev/kmsg (it has a sequence
    number then, and what daemons forward there makes no events); in a syslog file it may be
    any process's. An event without a pattern is not a line: the recorder's, a daemon's, Ray's.

    A recorder that is started again reads the log again from its beginning: what two report of one
    line is one happening.
    """
    return _drop_repeats(
        [_happening(events, row) for row in range(len(events)) if _matters(events, row)]
    )


def counted_timeouts(
    rises: Iterable[CounterRise], logged: Sequence[Happening]
) -> Iterator[Happening]:
    """Hits of the transmit watchdog that the device counted and the log does not tell."""
    logged_ns = [one.time_ns for one in logged if one.kind in NIC_KINDS]
    for one in rises:
        is_logged = any(abs(time_ns - one.time_ns) <= _LOGGED_WITHIN_NS for time_ns in logged_ns)
        if one.kind is CounterKind.WATCHDOG and one.queue is not None and not is_logged:
            times = f"{one.rise} times" if one.rise > 1 else "once"
            yield Happening(
                one.time_ns,
                "nic_tx_timeout",
                None,
                None,
                one.device,
                one.queue,
                None,
                None,
                f"{one.device}: the transmit watchdog fired {times} on queue {one.queue}, by its"
                " counter; the log does not mention it",
            )


def _matters(events: ColumnArrays, row: int) -> bool:
    is_trusted = (
        bool(events["by_kernel"][row])
        or not events["pattern"][row]
        or np.isfinite(events["sequence"][row])
    )
    return bool(is_trusted) and (
        events["kind"][row] in _LOOK_BACK_S or events["kind"][row] in _MINOR_S
    )


def _drop_repeats(happenings: list[Happening]) -> list[Happening]:
    """Of two that begin with the same line the fuller one: a recorder that was stopped may have
    heard only its beginning.
    """
    found: list[Happening] = []
    places: dict[tuple[int | None, str | None, str], int] = {}
    for one in happenings:
        key = one.sequence, one.pattern, one.message
        place = places.get(key)
        if (
            one.sequence is not None
            and place is not None
            and one.time_ns - found[place].time_ns <= _AGAIN_NS
        ):
            found[place] = max(found[place], one, key=lambda event: len(event.fields))
        else:
            places[key] = len(found)
            found.append(one)
    return found


def _happening(events: ColumnArrays, row: int) -> Happening:
    cpu = int(events["cpu"][row])
    return Happening(
        time_ns=int(events["time"][row]),
        kind=str(events["kind"][row]),
        pattern=events["pattern"][row],
        core=cpu if cpu >= 0 else None,
        device=events["device"][row],
        queue=_to_integer(events["queue"][row]),
        pid=_to_integer(events["pid"][row]),
        comm=events["comm"][row],
        message=str(events["message"][row] or ""),
        by_kernel=bool(events["by_kernel"][row]) or not events["pattern"][row],
        sequence=_to_integer(events["sequence"][row]),
        fields=_fields(events["fields"][row]),
    )


def _to_integer(value: float) -> int | None:
    return None if value != value else int(value)  # noqa: PLR0124 - NaN is the one number that is not itself


def _fields(text: str | None) -> dict[str, Any]:
    """What a pattern caught; a damaged text is not a reason to lose the event."""
    try:
        found = json.loads(text) if text else {}
    except ValueError:
        return {}
    return found if isinstance(found, dict) else {}
