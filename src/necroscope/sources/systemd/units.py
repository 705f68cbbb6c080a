"""The `units` table: systemd's services and timers, and all that failed, by its D-Bus interface
every 10 s.

Why a D-Bus client of our own, in a thread: the recorder may import nothing but the standard
library, a child with a library would cost 20 MB for the life of the recorder, and the few calls
need little (`wire.py`, `bus.py`). Why no signals: a restart between two looks shows in the
restart counter and by the unit's invocation id, and its very moment by `cgroup_ledger`.

A round is one list of units, then one mark of each that may have been started meanwhile, then the
details of what changed.
"""

import time
from collections.abc import Callable
from dataclasses import dataclass, field
from pathlib import Path
from typing import Final

from necroscope.errors import NecroscopeError, SourceUnavailable
from necroscope.model.clocks import shift_ns
from necroscope.model.event import ERROR, WARNING
from necroscope.model.reading import Gap, Moment, Reading, Row, Source
from necroscope.sources.background import Background
from necroscope.sources.service_event import Fields, service_event
from necroscope.sources.systemd.bus import MANAGER, MANAGER_PATH, Bus, BusQuestion, runs_systemd
from necroscope.sources.systemd.unit_state import ListedUnit, UnitState, parse_unit, questions
from necroscope.sources.systemd.wire import MalformedMessage

# waitid(2): how the main process ended.
_EXITED = 1
_FAILED = "failed"


def unit_events(
    before: UnitState, after: UnitState, now_ns: int, *, is_new_start: bool
) -> list[Row]:
    """`is_new_start`: systemd gave it another invocation id."""
    events = []
    restarts = (after.restarts or 0) - (before.restarts or 0)
    # The counter is set back by a start that was requested; a restart of what ran is one all
    # the same.
    is_restarted_by_hand = (
        restarts <= 0 and is_new_start and before.active_state == after.active_state == "active"
    )
    if restarts > 0 or is_restarted_by_hand:
        count = max(restarts, 1)
        message = (
            f"{after.unit} restarted" + (f" {count} times" if count > 1 else "") + _ending(after)
        )
        fields = _fields(after) | {"restarts_now": count}
        events.append(
            service_event(
                _moment(after.started_ns, before, now_ns),
                "unit_restart",
                message,
                fields,
                WARNING,
                after.main_pid,
            )
        )
    if after.active_state == _FAILED != before.active_state:
        message = f"{after.unit} failed{_ending(after)}"
        events.append(
            service_event(
                _moment(after.changed_ns, before, now_ns),
                "unit_failed",
                message,
                _fields(after),
                ERROR,
            )
        )
    return events


def _moment(stamp_ns: int | None, before: UnitState, now_ns: int) -> int:
    """When systemd says it was; not later than now, and not what it said already the last time."""
    is_new = stamp_ns is not None and stamp_ns not in (before.started_ns, before.changed_ns)
    return min(stamp_ns, now_ns) if is_new and stamp_ns is not None else now_ns


def _ending(state: UnitState) -> str:
    if state.main_status is None or state.main_code is None or state.result in (None, "success"):
        return f": {state.result}" if state.result not in (None, "success") else ""
    how = "status" if state.main_code == _EXITED else "signal"
    return f": {state.result}, {how} {state.main_status}"


def _fields(state: UnitState) -> Fields:
    return {
        "unit": state.unit,
        "result": state.result,
        "restarts": state.restarts,
        "main_code": state.main_code,
        "main_status": state.main_status,
        "cgroup": state.cgroup,
        "file_state": state.file_state,
    }


UNIT_LIMIT: Final = 2_000
# A unit that does not change is asked about again after this many rounds, because its file may have
# been enabled or replaced.
_REFRESH_ROUNDS: Final = 60
_UNLOADED: Final = "unloaded"
_LIST_SERVICES: Final = BusQuestion(
    MANAGER_PATH, MANAGER, "ListUnitsByPatterns", ((), ("*.service", "*.timer"))
)
_LIST_FAILED: Final = BusQuestion(MANAGER_PATH, MANAGER, "ListUnitsByPatterns", (("failed",), ()))


@dataclass(slots=True)
class _Round:
    """What one round found: which units there are, a mark that differs after each start, and the
    details of what changed.
    """

    asked_at: Moment
    states: list[UnitState] = field(default_factory=list)
    marks: dict[str, bytes] = field(default_factory=dict)
    lists: tuple[bytes, ...] = ()
    listed: dict[str, ListedUnit] = field(default_factory=dict)
    left_out: int = 0


class Units(Source):
    """A row for each unit that changed, and for all of them at the start of a segment."""

    name = "units"
    tables: tuple[str, ...] = ("units",)

    def __init__(
        self,
        root: Path,
        every_ns: int,
        from_monotonic: Callable[[int], int],
        realtime: Callable[[], int] = time.time_ns,
        open_bus: Callable[[Path], Bus] = Bus,
    ) -> None:
        self._root = root
        self._every_ns = every_ns
        self._from_monotonic = from_monotonic
        self._realtime = realtime
        self._open_bus = open_bus
        self._bus: Bus | None = None
        self._work: Background[_Round] = Background("units")
        self._next_ns = 0
        self._rounds = 0
        self._trouble: NecroscopeError | None = None
        self._last: _Round | None = None
        self._states: dict[str, UnitState] = {}
        self._is_rewritten = True

    def start_segment(self) -> None:
        """The next read writes every unit, so that the segment explains itself."""
        self._is_rewritten = True
        self.idle_until_ns = 0

    def read(self, now: Moment) -> Reading:
        reading = Reading()
        try:
            finished = self._work.take()
        except NecroscopeError as error:
            self._trouble = error
            finished = None
        if finished is not None:
            self._trouble = None
            self._take(finished, reading)
        if self._is_rewritten and self._states:
            self._is_rewritten = False
            gone = [row for row in reading.rows.get("units", []) if row[2] == _UNLOADED]
            reading.rows["units"] = [
                *gone,
                *(state.row(now.time_ns) for state in self._states.values()),
            ]
        if self._work.is_idle and now.monotonic_ns >= self._next_ns:
            self._next_ns = now.monotonic_ns + self._every_ns
            if self._is_wanted():
                ahead_ns = shift_ns(now.time_ns, self._realtime())
                self._work.start(lambda: self._round(now, ahead_ns))
        reading.trouble = self._work.trouble or self._trouble
        self.idle_until_ns = self._next_ns if self._work.is_idle else 0
        return reading

    def close(self) -> None:
        self._work.close()
        if self._bus is not None:
            self._bus.close()

    def _is_wanted(self) -> bool:
        """On a node without systemd there is nothing to miss."""
        return runs_systemd(self._root)

    def _round(self, now: Moment, ahead_ns: int) -> _Round:
        """In the thread. A connection on which something went wrong is not used again."""
        if self._bus is None:
            self._bus = self._open_bus(self._root)
        try:
            return self._ask(self._bus, now, ahead_ns)
        except BaseException:
            self._bus.close()
            self._bus = None
            raise

    def _ask(self, bus: Bus, now: Moment, ahead_ns: int) -> _Round:
        found = _Round(now)
        self._list(bus, found)
        marked = [
            (unit.name, mark) for unit in found.listed.values() if (mark := unit.mark()) is not None
        ]
        marks = bus.messages([question for _, question in marked])
        found.marks = {
            name: answer.raw for (name, _), answer in zip(marked, marks, strict=True) if answer
        }
        changed = [
            unit
            for place, unit in enumerate(found.listed.values())
            if self._is_changed(place, unit, found)
        ]
        wanted = [questions(unit) for unit in changed]
        answers = iter(bus.ask([question for unit in wanted for question in unit]))
        for unit, wanted_names in zip(changed, wanted, strict=True):
            got = [next(answers) for _ in wanted_names]
            found.states.append(
                parse_unit(unit, got, self._from_monotonic, lambda real_ns: real_ns + ahead_ns)
            )
        return found

    def _list(self, bus: Bus, found: _Round) -> None:
        """On a node at rest the lists are the same bytes as the last time."""
        answers = [
            answer for answer in bus.messages([_LIST_SERVICES, _LIST_FAILED]) if answer is not None
        ]
        if len(answers) < 2:
            raise SourceUnavailable("systemd does not list its units", "systemd 230 or later does")
        found.lists = tuple(answer.raw for answer in answers)
        if self._last is not None and found.lists == self._last.lists:
            found.listed, found.left_out = self._last.listed, self._last.left_out
            return
        try:
            listed = {
                unit.name: unit
                for answer in answers
                for unit in map(ListedUnit.of, answer.body()[0])
            }
        except (MalformedMessage, ValueError, LookupError) as error:
            raise SourceUnavailable(
                f"systemd lists its units in an unknown form: {error!r}"
            ) from None
        found.left_out = max(0, len(listed) - UNIT_LIMIT)
        found.listed = dict(list(listed.items())[:UNIT_LIMIT])

    def _is_changed(self, place: int, unit: ListedUnit, found: _Round) -> bool:
        if self._last is None or unit != self._last.listed.get(unit.name) or unit.is_passing:
            return True
        is_due = place % _REFRESH_ROUNDS == self._rounds % _REFRESH_ROUNDS
        return is_due or found.marks.get(unit.name) != self._last.marks.get(unit.name)

    def _take(self, found: _Round, reading: Reading) -> None:
        now_ns = found.asked_at.time_ns
        last_marks = self._last.marks if self._last is not None else {}
        rows: list[Row] = []
        events: list[Row] = []
        for state in found.states:
            before = self._states.get(state.unit)
            if state != before:
                rows.append(state.row(now_ns))
                self._states[state.unit] = state
            if before is not None:
                is_service = state.unit.endswith(
                    ".service"
                )  # a timer that elapsed is not a restart
                is_new_start = is_service and found.marks.get(state.unit) != last_marks.get(
                    state.unit
                )
                events += unit_events(before, state, now_ns, is_new_start=is_new_start)
        for name in self._states.keys() - found.listed.keys():
            gone = self._states.pop(name)
            rows.append(UnitState(gone.unit, _UNLOADED, "inactive", "dead").row(now_ns))
        if found.left_out and (self._last is None or not self._last.left_out):
            cause = f"{found.left_out} units beyond {UNIT_LIMIT} were not read"
            reading.gaps.append(Gap("units", now_ns, now_ns, cause))
        self._last = found
        self._rounds += 1
        reading.rows |= {"units": rows, "events": events}
