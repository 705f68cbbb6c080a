"""When to look closer: a core held in the kernel, a softirq that waits, a line in the kernel log.
Decisions without I/O.

Edge-triggered, at most once per core per minute. User time alone pins nothing, because busy nodes
have it all day. But a task that computes on one core without a pause is asked which cores it may
run on, and a task that stands still while work stalls for I/O is asked where it stands.
"""

from operator import itemgetter
from typing import Final, NamedTuple, cast

from necroscope.model.core_shares import MODE_PARTS
from necroscope.model.definitions import (
    BUSY_RATIO,
    FROZEN_NS,
    ORDINARY,
    SATURATED_RATIO,
    STALL_NS,
    STARVED_NS,
    STARVING_RATIO,
    USER_BUSY_RATIO,
    WHOLE_SECOND_NS,
)
from necroscope.model.reading import Row, Rows
from necroscope.model.tables import SOFTIRQ_VECTORS, TABLES
from necroscope.model.units import NS_PER_MS, NS_PER_S

QUIET_NS: Final = 60 * NS_PER_S
# How long a core must be full of user code before its task is captured.
USER_NS: Final = 4 * NS_PER_S
# This long some work must stall for I/O, this much of the time, before the recorder looks for who
# stands where.
IO_NS: Final = 4 * NS_PER_S
IO_RATIO: Final = 0.6
# And this long until they are asked once more: who has not run meanwhile stands still.
IO_HUNG_NS: Final = 10 * NS_PER_S
# Described, never pinned.
UNPINNED: Final = frozenset({"user_busy", "io_blocked", "io_hung"})
# Each has a quiet minute of its own: who computes or waits on a core is not a reason to miss that
# the kernel holds it.
_QUIET_APART: Final = UNPINNED | {"task_waits", "claim"}
# Rows of measured delays come every tick unless the probe rests; without them for this long the
# weaker signs count.
_DELAYS_FRESH_NS: Final = 3 * NS_PER_S
# The tables that `feed` looks at.
WATCHED: Final = frozenset({"cores", "softirq_delay", "softirqs", "runqueue", "pressure", "waits"})
# Log events that no core is named by share one place in the once-a-minute rule.
NO_CPU: Final = -1

_CORES: Final = TABLES["cores"].index_of
_CORE_ELAPSED: Final = _CORES("elapsed_ns")
_SYSTEM, _IRQ, _SOFTIRQ, _STEAL = map(_CORES, ("system_ns", "irq_ns", "softirq_ns", "steal_ns"))
_USER, _NICE, _GUEST = map(_CORES, MODE_PARTS["user"])
_DELAYS: Final = itemgetter(*map(TABLES["softirq_delay"].index_of, ("worst_ns", "pending_ns")))
_FIRST_VECTOR: Final = TABLES["softirqs"].index_of(SOFTIRQ_VECTORS[0])
_SOFTIRQS_ELAPSED: Final = TABLES["softirqs"].index_of("elapsed_ns")
_PRESSURE: Final = TABLES["pressure"].index_of
_PRESSED_RESOURCE: Final = _PRESSURE("resource")
_PRESSED_ELAPSED: Final = _PRESSURE("elapsed_ns")
_PRESSED_SOME: Final = _PRESSURE("some_ns")
_WAITED_NS: Final = itemgetter(TABLES["waits"].index_of("waited_ns"))
_STARVED: Final = itemgetter(
    *map(TABLES["waits"].index_of, ("kind", "cpu", "comm", "policy", "priority", "waited_ns"))
)
_RUN_STATE: Final = TABLES["runqueue"].index_of("state")
_RUN_COMM: Final = TABLES["runqueue"].index_of("comm")
_RUN_PID: Final = TABLES["runqueue"].index_of("pid")
_RUN_NS: Final = TABLES["runqueue"].index_of("run_ns")
_RUN_ELAPSED: Final = TABLES["runqueue"].index_of("elapsed_ns")
_RUN_DELAY: Final = TABLES["runqueue"].index_of("delay_ns")


class Trigger(NamedTuple):
    """To look closer at. `kind` is a value of `tasks.trigger`; `cpu` is NO_CPU if no core is
    known.
    """

    kind: str
    cpu: int
    detail: str


class Triggers:
    """Takes rows as they are read, returns what fires now."""

    def __init__(self) -> None:
        self._modes: dict[int, list[tuple[int, int]]] = {}
        self._active: set[tuple[str, int]] = set()
        self._quiet_until_ns: dict[tuple[int, str], int] = {}
        self._busy: set[int] = set()
        self._user_ns: dict[int, int] = {}
        self._io_ns = 0
        self._frozen_ns: dict[int, int] = {}
        self._frozen: set[int] = set()
        self._waiting: set[int] = set()
        self._is_starving = False
        self._delays_seen_ns = -_DELAYS_FRESH_NS

    def feed(self, table: str, rows: Rows, now_ns: int) -> list[Trigger]:
        match table:
            case "cores":
                # No column of `cores` is nullable or a text.
                cores = cast("list[tuple[int, ...]]", rows)
                found = self._find_saturated(cores)
                return self._edges(table, found, now_ns) + self._edges(
                    "user", self._full_of_user(cores, found), now_ns
                )
            case "softirq_delay":
                self._delays_seen_ns = now_ns
                found = self._find_stalled(rows)
            case "softirqs":
                found = self._softirqs_frozen(rows)
                if now_ns - self._delays_seen_ns < _DELAYS_FRESH_NS:
                    # measured delays are better evidence, and a nohz_full core runs no softirqs
                    # while it is well
                    found = {}
            case "runqueue":
                found = self._starving(rows)
                self._is_starving = bool(found)
            case "waits":
                found = _find_starved(rows)
            case "pressure":
                self._follow_io(rows)
                if not self._io_ns and not self._active:
                    return []
                return [
                    *self._edges("io_blocked", self._stalled_for_io("io_blocked", IO_NS), now_ns),
                    *self._edges("io_hung", self._stalled_for_io("io_hung", IO_HUNG_NS), now_ns),
                ]
            case _:
                return []
        return self._edges(table, found, now_ns)

    @property
    def sees_stall(self) -> bool:
        """Whether softirqs stood still, or their threads starved, in the last tick: by counters
        alone, and whatever fired.
        """
        return bool(self._frozen) or self._is_starving

    def alarm(
        self, kind: str, cpu: int | None, now_ns: int, *, by_kernel: bool = True
    ) -> list[Trigger]:
        """A kernel log line that says something broke; each is an edge of its own. What others
        than the kernel say has a quiet minute apart: any user can say it.
        """
        source = "kernel_log" if by_kernel else "claim"
        return self._admit(Trigger(source, NO_CPU if cpu is None else cpu, kind), now_ns)

    def _find_saturated(self, rows: list[tuple[int, ...]]) -> dict[int, Trigger]:
        found = {}
        self._busy.clear()
        for row in rows:
            cpu, total_ns = row[1], row[_CORE_ELAPSED]
            held_ns = row[_SYSTEM] + row[_IRQ] + row[_SOFTIRQ] + row[_STEAL]
            if held_ns + row[_USER] + row[_NICE] + row[_GUEST] >= BUSY_RATIO * total_ns:
                self._busy.add(cpu)
            if total_ns >= WHOLE_SECOND_NS:
                self._modes[cpu] = [(total_ns, held_ns)]
            else:
                total_ns, held_ns = self._window(cpu, total_ns, held_ns)
            if held_ns >= SATURATED_RATIO * total_ns and total_ns >= WHOLE_SECOND_NS:
                found[cpu] = Trigger(
                    "saturated",
                    cpu,
                    f"{100 * held_ns // total_ns} % of {total_ns / NS_PER_S:.1f} s in the kernel",
                )
        return found

    def _window(self, cpu: int, elapsed_ns: int, kernel_ns: int) -> tuple[int, int]:
        """Of short ticks as many together as make a second: all time, and that in the kernel."""
        window = self._modes.setdefault(cpu, [])
        window.append((elapsed_ns, kernel_ns))
        while len(window) > 1 and sum(part for part, _ in window) - window[0][0] >= WHOLE_SECOND_NS:
            del window[0]
        return sum(part for part, _ in window), sum(part for _, part in window)

    def _full_of_user(
        self, rows: list[tuple[int, ...]], held: dict[int, Trigger]
    ) -> dict[int, Trigger]:
        """Only described, never pinned. Many such cores are a busy node, not a thread to ask
        about.
        """
        full_ns = {}
        for row in rows:
            if row[_USER] + row[_NICE] + row[_GUEST] >= USER_BUSY_RATIO * row[_CORE_ELAPSED]:
                full_ns[row[1]] = self._user_ns.get(row[1], 0) + row[_CORE_ELAPSED]
        self._user_ns = full_ns
        if not full_ns:
            return {}
        found = {
            cpu for cpu, stood_ns in full_ns.items() if stood_ns >= USER_NS and cpu not in held
        }
        if 2 * len(found) > len(rows):
            return {}
        return {
            cpu: Trigger("user_busy", cpu, f"full of user code for {full_ns[cpu] // NS_PER_S} s")
            for cpu in found
        }

    def _find_stalled(self, rows: Rows) -> dict[int, Trigger]:
        found: dict[int, Trigger] = {}
        if max(map(max, map(_DELAYS, rows)), default=0) < STALL_NS:
            return found
        for row in rows:
            wait_ns = max(_DELAYS(row))
            if wait_ns >= STALL_NS:
                cpu = _int(row[1])
                found[cpu] = Trigger(
                    "softirq_stall",
                    cpu,
                    f"{row[2]} waited {wait_ns // NS_PER_MS} ms for its handler",
                )
        return found

    def _softirqs_frozen(self, rows: Rows) -> dict[int, Trigger]:
        """A busy core takes timer interrupts, and these raise softirqs: none in a second means they
        are held back.

        A short tick proves nothing: a core that only computes was seen to run two in 100 ms.
        """
        frozen_ns = {}
        for row in rows:
            if row[1] in self._busy and not any(row[_FIRST_VECTOR:]):
                cpu = _int(row[1])
                frozen_ns[cpu] = self._frozen_ns.get(cpu, 0) + _int(row[_SOFTIRQS_ELAPSED])
        self._frozen_ns = frozen_ns
        self._frozen = {cpu for cpu, stood_ns in frozen_ns.items() if stood_ns >= FROZEN_NS}
        return {
            cpu: Trigger("softirq_stall", cpu, "no softirq ran on a busy core")
            for cpu in self._frozen
        }

    def _starving(self, rows: Rows) -> dict[int, Trigger]:
        """Runnable with unchanged run time. Of ksoftirqd that is a stall only if softirqs do not
        run without it (before 6.5).
        """
        waiting = [
            row for row in rows if (row[_RUN_STATE] == "R" or row[_RUN_DELAY]) and _is_waiting(row)
        ]
        # Seen once it may have been woken a moment ago.
        before, self._waiting = self._waiting, {_int(row[_RUN_PID]) for row in waiting}
        found = {}
        for row in waiting:
            cpu, comm = _int(row[1]), str(row[_RUN_COMM])
            if row[_RUN_PID] in before and (
                cpu in self._frozen or not comm.startswith("ksoftirqd/")
            ):
                found[cpu] = Trigger("softirq_stall", cpu, f"{comm} is runnable and gets no time")
        return found

    def _follow_io(self, rows: Rows) -> None:
        for row in rows:
            if row[_PRESSED_RESOURCE] == "io" and row[_PRESSED_SOME] is not None:
                is_stalled = _int(row[_PRESSED_SOME]) >= IO_RATIO * _int(row[_PRESSED_ELAPSED])
                self._io_ns = self._io_ns + _int(row[_PRESSED_ELAPSED]) if is_stalled else 0

    def _stalled_for_io(self, kind: str, least_ns: int) -> dict[int, Trigger]:
        if self._io_ns < least_ns:
            return {}
        return {
            NO_CPU: Trigger(kind, NO_CPU, f"work stalled for I/O for {self._io_ns // NS_PER_S} s")
        }

    def _edges(self, table: str, found: dict[int, Trigger], now_ns: int) -> list[Trigger]:
        """What has gone may come again as an edge; what the quiet minute held back fires when that
        is over, if it still lasts.
        """
        if not found and not self._active:
            return []
        self._active -= {
            (name, cpu) for name, cpu in self._active if name == table and cpu not in found
        }
        fired = []
        for cpu, trigger in found.items():
            if (table, cpu) not in self._active and self._admit(trigger, now_ns):
                self._active.add((table, cpu))
                fired.append(trigger)
        return fired

    def _admit(self, trigger: Trigger, now_ns: int) -> list[Trigger]:
        quiet = trigger.cpu, trigger.kind if trigger.kind in _QUIET_APART else ""
        if now_ns < self._quiet_until_ns.get(quiet, now_ns):
            return []
        self._quiet_until_ns[quiet] = now_ns + QUIET_NS
        return [trigger]


def _find_starved(rows: Rows) -> dict[int, Trigger]:
    """By core, the ordinary task that wanted it longest; a lower nice value asks for less."""
    found: dict[int, Trigger] = {}
    for row in sorted(rows, key=_WAITED_NS):
        kind, cpu, comm, policy, priority, waited_ns = _STARVED(row)
        if kind == "runnable" and waited_ns >= STARVED_NS and policy in ORDINARY and priority <= 0:
            text = f"{comm} waited {waited_ns / NS_PER_S:.1f} s for core {cpu}"
            found[cpu] = Trigger("task_waits", cpu, text)
    return found


def _is_waiting(row: Row) -> bool:
    """Runnable without any time, or, of a napi thread, with so little that most of it is
    waiting.
    """
    elapsed_ns, delay_ns = _int(row[_RUN_ELAPSED]), _int(row[_RUN_DELAY])
    if row[_RUN_STATE] == "R" and not row[_RUN_NS] and elapsed_ns >= STALL_NS:
        return True
    is_napi = not str(row[_RUN_COMM]).startswith("ksoftirqd/")
    return is_napi and delay_ns >= STALL_NS and delay_ns >= STARVING_RATIO * elapsed_ns


def _int(value: object) -> int:
    assert isinstance(value, int)
    return value
