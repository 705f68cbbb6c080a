"""Events between two looks at a unit: it failed, it was restarted."""

from necroscope.model.event import ERROR, WARNING
from necroscope.model.reading import Row
from necroscope.sources.service_event import Fields, service_event
from necroscope.sources.systemd.unit_state import UnitState

# waitid(2): how the main process ended.
_EXITED = 1
_FAILED = "failed"


def unit_events(
    before: UnitState, after: UnitState, now_ns: int, *, is_new_start: bool
) -> list[Row]:
    """`is_new_start`: systemd gave it another invocation id."""
    events = []
    restarts = (after.restarts or 0) - (before.restarts or 0)
    # The counter is set back by a start that somebody asked for; a restart of what ran is one all
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


def _moment(told_ns: int | None, before: UnitState, now_ns: int) -> int:
    """When systemd says it was; not later than now, and not what it said already the last time."""
    is_new = told_ns is not None and told_ns not in (before.started_ns, before.changed_ns)
    return min(told_ns, now_ns) if is_new and told_ns is not None else now_ns


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
