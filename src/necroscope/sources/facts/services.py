"""Facts about systemd's units: what is enabled, who wants it, what came of it since boot, how the
boot went.
"""

from collections.abc import Iterator
from pathlib import Path
from typing import Any, Final

from necroscope.errors import SourceUnavailable
from necroscope.sources.facts.fact import Fact, fact
from necroscope.sources.facts.file_owners import enabled_since, packages_of
from necroscope.sources.systemd.bus import (
    MANAGER,
    MANAGER_PATH,
    PROPERTIES,
    Bus,
    BusQuestion,
    get,
    runs_systemd,
)
from necroscope.sources.systemd.unit_state import ListedUnit

UNIT_LIMIT: Final = 2_000
# Longer than the recorder would wait: it does not here, and systemd reads every unit file for it.
_TIMEOUT_S: Final = 20.0
_SUFFIXES: Final = (".service", ".timer", ".socket", ".target")
_ENABLED: Final = ("enabled", "enabled-runtime", "linked", "generated", "alias")
_DEPENDENCIES: Final = (
    "WantedBy",
    "RequiredBy",
    "Requires",
    "Requisite",
    "BindsTo",
    "TriggeredBy",
    "After",
)
# A service is ordered after a dozen targets and slices, which come up everywhere.
_ONLY_SERVICES: Final = frozenset({"After"})
_OUTCOME: Final = (
    "ActiveEnterTimestampMonotonic",
    "InactiveExitTimestampMonotonic",
    "ConditionResult",
    "ConditionTimestampMonotonic",
)
_FILES: Final = ("FragmentPath", "DropInPaths")
_ALL_SERVICES: Final = BusQuestion(
    MANAGER_PATH, MANAGER, "ListUnitsByPatterns", ((), ("*.service",))
)
# Automatic restarts that make a loop.
_LOOP: Final = 3


def collect(root: Path) -> Iterator[Fact]:
    if not runs_systemd(root):
        return
    bus = Bus(root, _TIMEOUT_S)
    try:
        yield from _manager(bus)
        yield from _unit_files(bus)
        yield from _read_services(bus)
        yield from _files(bus, root)
    finally:
        bus.close()


def _manager(bus: Bus) -> Iterator[Fact]:
    """Durations in tenths of a second: they are of this boot, and compared with those of other
    nodes.
    """
    names = (
        "Version",
        "SystemState",
        "UserspaceTimestampMonotonic",
        "FinishTimestampMonotonic",
        "DefaultOOMPolicy",
    )
    answers = bus.ask(
        [BusQuestion(MANAGER_PATH, PROPERTIES, "Get", (MANAGER, name)) for name in names]
    )
    known = {name: answer[0] for name, answer in zip(names, answers, strict=True) if answer}
    for name in ("Version", "SystemState", "DefaultOOMPolicy"):
        if name in known:
            yield fact("systemd", name, str(known[name]))
    start_us, end_us = (
        known.get("UserspaceTimestampMonotonic", 0),
        known.get("FinishTimestampMonotonic", 0),
    )
    if end_us > start_us:
        yield fact("boot", "userspace_s", f"{(end_us - start_us) / 1e6:.1f}")


def _unit_files(bus: Bus) -> Iterator[Fact]:
    (answer,) = bus.ask([BusQuestion(MANAGER_PATH, MANAGER, "ListUnitFiles")])
    if answer is None:
        raise SourceUnavailable("systemd does not list its unit files")
    files = sorted(
        (path.rpartition("/")[2], state) for path, state in answer[0] if path.endswith(_SUFFIXES)
    )
    for name, state in files[:UNIT_LIMIT]:
        yield fact("unit_file", name, state)


def _read_services(bus: Bus) -> Iterator[Fact]:
    """Of services that are enabled: who wants them, what the vendor wants, and what came of
    them.
    """
    (answer,) = bus.ask([_ALL_SERVICES])
    listed = [
        unit
        for unit in map(ListedUnit.of, answer[0] if answer else ())
        if unit.load_state == "loaded"
    ][:UNIT_LIMIT]
    states = bus.ask([get(unit.path, "Unit", "UnitFileState") for unit in listed])
    enabled = [
        unit
        for unit, answer in zip(listed, states, strict=True)
        if answer and answer[0] in _ENABLED
    ]
    wanted = [("Unit", name) for name in ("UnitFilePreset", *_DEPENDENCIES, *_OUTCOME)]
    wanted += [("Service", "Result"), ("Service", "NRestarts")]
    answers = iter(
        bus.ask([get(unit.path, interface, name) for unit in enabled for interface, name in wanted])
    )
    for unit in enabled:
        known = {name: answer[0] for _, name in wanted if (answer := next(answers))}
        yield fact("unit_preset", unit.name, str(known.get("UnitFilePreset") or "none"))
        yield fact("unit_outcome", unit.name, outcome(unit, known))
        depends = dependencies(known)
        if depends:
            yield fact("unit_dependency", unit.name, depends)


def dependencies(known: dict[str, Any]) -> str:
    """`Requires=a.service b.socket; After=a.service`, the same on every node with the same unit."""
    found = {
        name: sorted(
            unit
            for unit in known.get(name) or ()
            if name not in _ONLY_SERVICES or unit.endswith(".service")
        )
        for name in _DEPENDENCIES
    }
    return "; ".join(f"{name}={' '.join(units)}" for name, units in found.items() if units)


def _files(bus: Bus, root: Path) -> Iterator[Fact]:
    """Of services that run or failed: what changes their file, the package it came with, and since
    when they are enabled.
    """
    (answer,) = bus.ask([_ALL_SERVICES])
    listed = [
        unit
        for unit in map(ListedUnit.of, answer[0] if answer else ())
        if unit.active_state != "inactive"
    ][:UNIT_LIMIT]
    questions = [get(unit.path, "Unit", name) for unit in listed for name in _FILES]
    answers = iter(bus.ask(questions))
    fragments: dict[str, str] = {}
    for unit in listed:
        fragment, drop_ins = (
            answer[0] if answer else "" for answer in (next(answers), next(answers))
        )
        if fragment:
            fragments[unit.name] = str(fragment)
        if drop_ins:
            yield fact("unit_drop_ins", unit.name, " ".join(sorted(map(str, drop_ins))))
    packages = packages_of(root, set(fragments.values()))
    for name, fragment in fragments.items():
        if fragment in packages:
            yield fact("unit_package", name, packages[fragment])
    for name, day in enabled_since(root, fragments.keys()).items():
        yield fact("unit_since", name, day)


def outcome(unit: ListedUnit, known: dict[str, Any]) -> str:
    """One word that is the same on every node where the same came of it."""
    is_success = known.get("Result") == "success"
    if (known.get("NRestarts") or 0) >= _LOOP and (not is_success or unit.is_passing):
        return "crash-loop"
    if unit.active_state == "failed" or not is_success:
        return "failed"
    if known.get("ActiveEnterTimestampMonotonic"):
        return "succeeded"
    if known.get("ConditionTimestampMonotonic") and not known.get("ConditionResult"):
        return "condition-failed"
    return "succeeded" if known.get("InactiveExitTimestampMonotonic") else "never-started"
