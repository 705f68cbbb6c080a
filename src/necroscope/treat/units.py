"""Steps that stop a unit, or mask it so that nothing starts it again: by systemd's D-Bus interface
(org.freedesktop.systemd1(5)).
"""

import re
import time
from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path
from typing import Any, Final

from necroscope.errors import SourceUnavailable, UsageError
from necroscope.model.names import clean
from necroscope.sources.systemd.bus import MANAGER, MANAGER_PATH, Bus, BusQuestion, get
from necroscope.sources.systemd.wire import Argument
from necroscope.treat.act_ledger import TreatmentAct

UNIT: Final = "unit"
# systemd's own characters (basic/unit-name.h), and the types that can be stopped without harm to
# what they hold.
_NAME: Final = re.compile(r"[A-Za-z0-9:_.\\@-]{1,240}\.(service|timer|socket|path)")
# Without these a node is lost, or an administrator cannot log in to undo it.
_NEEDED: Final = re.compile(
    r"(systemd-.*|dbus.*|sshd?|ssh@.*|getty@.*|serial-getty@.*|NetworkManager|networking"
    r"|cloud-init.*|kubelet|containerd|docker|crio|necroscope.*)\.(service|socket|timer|path)"
)
_TIMEOUT_S: Final = 60.0
_STOP_S: Final = 120.0
_AT_REST: Final = ("inactive", "failed")
OpenBus = Callable[[Path, float], Bus]


@dataclass(frozen=True, slots=True)
class UnitStep:
    """`is_masked`: nothing may start it until it is undone, not even a reboot."""

    unit: str
    is_masked: bool
    root: Path
    open_bus: OpenBus = Bus

    def describe(self) -> list[str]:
        state = self._state()
        lines = [f"stop {self.unit} ({state.active}, unit file {state.file or 'unknown'})"]
        if self.is_masked:
            lines.append(f"  mask it: systemctl mask {self.unit}")
        return [*lines, f"  stop it: systemctl stop {self.unit}"]

    def as_json(self) -> dict[str, Any]:
        state = self._state()
        about = {"kind": UNIT, "unit": self.unit, "mask": self.is_masked}
        return {**about, "active": state.active, "file_state": state.file}

    def apply(self, note: Callable[[TreatmentAct], None], say: Callable[[str], None]) -> None:
        bus = self.open_bus(self.root, _TIMEOUT_S)
        try:
            state = _read_state(bus, self.unit)
            is_mask_new = self.is_masked and state.file not in ("masked", "masked-runtime")
            data = {"unit": self.unit, "mask": is_mask_new, "start": state.active == "active"}
            note(TreatmentAct(UNIT, data))
            if is_mask_new:
                _ask(bus, "MaskUnitFiles", ((self.unit,), False, False))
                _ask(bus, "Reload")
            if state.active not in _AT_REST:
                _ask(bus, "StopUnit", (self.unit, "replace"))
                _wait_for_rest(bus, self.unit)
        finally:
            bus.close()
        say(f"{self.unit} is stopped{' and masked' if self.is_masked else ''}")

    def _state(self) -> "_UnitNow":
        bus = self.open_bus(self.root, _TIMEOUT_S)
        try:
            return _read_state(bus, self.unit)
        finally:
            bus.close()


@dataclass(frozen=True, slots=True)
class _UnitNow:
    active: str
    file: str | None


def stop_unit(root: Path, unit: str, *, is_masked: bool, open_bus: OpenBus = Bus) -> UnitStep:
    if not _NAME.fullmatch(unit):
        raise UsageError(
            f"{clean(unit)!r} is not a valid name of a unit to stop",
            "a service, timer, socket or path, for example ecs.service",
        )
    if _NEEDED.fullmatch(unit):
        raise UsageError(f"{unit} is needed by the node itself", "stop it by hand if you must")
    return UnitStep(unit, is_masked, root, open_bus)


def undo_unit(root: Path, data: dict[str, Any], open_bus: OpenBus = Bus) -> str:
    """As it was: started again only if it ran."""
    step = stop_unit(root, str(data["unit"]), is_masked=False)
    bus = open_bus(root, _TIMEOUT_S)
    try:
        if data["mask"]:
            _ask(bus, "UnmaskUnitFiles", ((step.unit,), False))
            _ask(bus, "Reload")
        if data["start"] and _read_state(bus, step.unit).active in _AT_REST:
            _ask(bus, "StartUnit", (step.unit, "replace"))
    finally:
        bus.close()
    started = ", started" if data["start"] else ""
    return f"{step.unit} is as it was{', unmasked' if data['mask'] else ''}{started}"


def _read_state(bus: Bus, unit: str) -> _UnitNow:
    """Of a unit that systemd knows; one that it does not know is an error."""
    (path,) = _ask(bus, "LoadUnit", (unit,))
    names = ("LoadState", "ActiveState", "UnitFileState")
    load, active, file = (
        clean(str(answer[0])) if answer else ""
        for answer in bus.ask([get(str(path), "Unit", name) for name in names])
    )
    if load == "not-found":
        raise SourceUnavailable(f"systemd does not know {unit}", "see: systemctl list-unit-files")
    return _UnitNow(active, file or None)


def _wait_for_rest(bus: Bus, unit: str) -> None:
    deadline = time.monotonic() + _STOP_S
    while _read_state(bus, unit).active not in _AT_REST:
        if time.monotonic() > deadline:
            raise SourceUnavailable(f"{unit} does not stop", f"see: systemctl status {unit}")
        time.sleep(0.1)


def _ask(bus: Bus, member: str, arguments: tuple[Argument, ...] = ()) -> tuple[Any, ...]:
    (answer,) = bus.ask([BusQuestion(MANAGER_PATH, MANAGER, member, arguments)])
    if answer is None:
        raise SourceUnavailable(f"systemd refuses {member}", "is this systemd 230 or later?")
    return answer
