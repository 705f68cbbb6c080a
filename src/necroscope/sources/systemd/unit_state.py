"""What is asked about one unit, and what the answers mean (org.freedesktop.systemd1(5)): services
and timers.

Single properties are asked for, never all of a service's: among those are figures for which PID 1
reads cgroup files, on a node whose cgroups may be what is sick.
"""

from collections.abc import Callable
from typing import Any, Final, NamedTuple

from necroscope.model.names import clean
from necroscope.model.reading import Row
from necroscope.model.units import NS_PER_US
from necroscope.sources.systemd.bus import BusQuestion, get

_UNIT: Final = ("UnitFileState", "UnitFilePreset", "FragmentPath", "StateChangeTimestampMonotonic")
_SERVICE: Final = (
    "Result",
    "ControlGroup",
    "NRestarts",
    "ExecMainCode",
    "ExecMainStatus",
    "ExecMainStartTimestampMonotonic",
    "MainPID",
)
_TIMER: Final = (
    "Result",
    "Unit",
    "LastTriggerUSecMonotonic",
    "NextElapseUSecMonotonic",
    "NextElapseUSecRealtime",
    "TimersMonotonic",
    "TimersCalendar",
)
_NEVER_US: Final = (1 << 64) - 1
_REPEATS: Final = ("OnUnitActiveUSec", "OnUnitInactiveUSec")


class ListedUnit(NamedTuple):
    """A unit as ListUnits reports it."""

    name: str
    load_state: str
    active_state: str
    sub_state: str
    path: str

    @classmethod
    def of(cls, answer: tuple[Any, ...]) -> "ListedUnit":
        name, _description, load_state, active_state, sub_state, _following, path, *_job = answer
        return cls(clean(name), clean(load_state), clean(active_state), clean(sub_state), path)

    @property
    def is_service(self) -> bool:
        return self.name.endswith(".service")

    @property
    def is_timer(self) -> bool:
        return self.name.endswith(".timer")

    def mark(self) -> BusQuestion | None:
        """What to ask to see that it was started since, though it looks as before; None for a unit
        without a process.
        """
        if self.is_timer:
            return get(self.path, "Timer", "LastTriggerUSec")
        is_at_rest = self.active_state == "inactive" or self.sub_state == "exited"
        return (
            get(self.path, "Unit", "InvocationID") if self.is_service and not is_at_rest else None
        )

    @property
    def is_passing(self) -> bool:
        """A state that a crash loop is in again and again: between two looks everything may have
        happened.
        """
        return self.active_state in ("activating", "deactivating", "reloading")


class UnitState(NamedTuple):
    """All but `time` of a row of `units`; None is not known, or means nothing for this type of
    unit.
    """

    unit: str
    load_state: str
    active_state: str
    sub_state: str
    result: str | None = None
    restarts: int | None = None
    main_code: int | None = None
    main_status: int | None = None
    main_pid: int | None = None
    started_ns: int | None = None
    changed_ns: int | None = None
    file_state: str | None = None
    preset: str | None = None
    fragment: str | None = None
    cgroup: str | None = None
    starts: str | None = None
    schedule: str | None = None
    period_ns: int | None = None
    last_ns: int | None = None
    next_ns: int | None = None

    def row(self, time_ns: int) -> Row:
        return (
            *(
                time_ns,
                self.unit,
                self.load_state,
                self.active_state,
                self.sub_state,
                self.result,
                self.restarts,
            ),
            *(
                self.main_code,
                self.main_status,
                self.main_pid,
                self.started_ns,
                self.changed_ns,
                self.file_state,
                self.preset,
            ),
            *(
                self.fragment,
                self.cgroup,
                self.starts,
                self.schedule,
                self.period_ns,
                self.last_ns,
                self.next_ns,
            ),
        )


def questions(listed: ListedUnit) -> list[BusQuestion]:
    return [get(listed.path, interface, name) for interface, name in _wanted_properties(listed)]


def parse_unit(
    listed: ListedUnit,
    answers: list[tuple[Any, ...] | None],
    from_monotonic: Callable[[int], int],
    from_realtime: Callable[[int], int],
) -> UnitState:
    """`answers` to `questions(listed)`. A property that this systemd lacks is None."""
    found = {
        name: answer[0]
        for (_, name), answer in zip(_wanted_properties(listed), answers, strict=True)
        if answer
    }

    def text(name: str) -> str | None:
        return clean(str(found[name])) if found.get(name) else None

    def moment(name: str, convert: Callable[[int], int] = from_monotonic) -> int | None:
        usec = found.get(name)
        return convert(usec * NS_PER_US) if isinstance(usec, int) and 0 < usec < _NEVER_US else None

    last_ns = moment("LastTriggerUSecMonotonic")
    next_ns = moment("NextElapseUSecMonotonic") or moment("NextElapseUSecRealtime", from_realtime)
    started_ns = moment("ExecMainStartTimestampMonotonic")
    has_main = started_ns is not None
    return UnitState(
        *(listed.name, listed.load_state, listed.active_state, listed.sub_state),
        result=text("Result"),
        restarts=found.get("NRestarts"),
        main_code=found.get("ExecMainCode") if has_main else None,
        main_status=found.get("ExecMainStatus") if has_main else None,
        main_pid=found.get("MainPID") or None,
        started_ns=started_ns,
        changed_ns=moment("StateChangeTimestampMonotonic"),
        file_state=text("UnitFileState"),
        preset=text("UnitFilePreset"),
        fragment=text("FragmentPath"),
        cgroup=text("ControlGroup"),
        starts=text("Unit"),
        schedule=_schedule(found),
        period_ns=_period_ns(found, last_ns, next_ns),
        last_ns=last_ns,
        next_ns=next_ns,
    )


def _wanted_properties(listed: ListedUnit) -> list[tuple[str, str]]:
    wanted = [("Unit", name) for name in _UNIT]
    if listed.is_service:
        wanted += [("Service", name) for name in _SERVICE]
    elif listed.is_timer:
        wanted += [("Timer", name) for name in _TIMER]
    return wanted


def _schedule(found: dict[str, Any]) -> str | None:
    parts = [f"{base}={usec / 1e6:g}s" for base, usec, _next in found.get("TimersMonotonic", ())]
    parts += [
        f"{base}={specification}" for base, specification, _next in found.get("TimersCalendar", ())
    ]
    return clean(" ".join(parts)) or None


def _period_ns(found: dict[str, Any], last_ns: int | None, next_ns: int | None) -> int | None:
    """As the timer says; a calendar's is the time from the last to the next."""
    repeats = [usec for base, usec, _next in found.get("TimersMonotonic", ()) if base in _REPEATS]
    if repeats:
        return int(min(repeats)) * NS_PER_US
    return next_ns - last_ns if last_ns and next_ns and next_ns > last_ns else None
