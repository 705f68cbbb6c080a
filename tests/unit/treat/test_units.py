"""A unit is stopped and masked, and is as it was after the undo: against a systemd that remembers
what it was asked.
"""

from pathlib import Path
from typing import Any

import pytest

from necroscope.errors import SourceUnavailable, UsageError
from necroscope.sources.systemd.bus import BusQuestion
from necroscope.treat.act_ledger import TreatmentAct
from necroscope.treat.units import UnitStep, stop_unit, undo_unit


class Systemd:
    """Answers as systemd would; `refuses` names a call that it does not like."""

    def __init__(self, active: str = "active", file: str = "enabled", refuses: str = "") -> None:
        self.active, self.file, self.refuses = active, file, refuses
        self.load = "loaded"
        self.asked: list[str] = []

    def __call__(self, _root: Path, _timeout_s: float) -> "Systemd":
        return self

    def close(self) -> None:
        pass

    def ask(self, questions: list[BusQuestion]) -> list[tuple[Any, ...] | None]:
        return [self._answer(question) for question in questions]

    def _answer(self, question: BusQuestion) -> tuple[Any, ...] | None:
        if question.member == "Get":
            states = {"LoadState": self.load, "ActiveState": self.active}
            return (states.get(str(question.arguments[1]), self.file),)
        if question.member == "LoadUnit":
            return ("/unit",)
        self.asked.append(question.member)
        if question.member == self.refuses:
            raise SourceUnavailable("systemd's bus: Access denied")
        if question.member == "StopUnit":
            self.active = "inactive"
        elif question.member == "StartUnit":
            self.active = "active"
        elif question.member == "MaskUnitFiles":
            self.file = "masked"
        elif question.member == "UnmaskUnitFiles":
            self.file = "enabled"
        return ()


def step(systemd: Systemd, *, is_masked: bool = True) -> UnitStep:
    return stop_unit(Path("/"), "ecs.service", is_masked=is_masked, open_bus=systemd)  # type: ignore[arg-type]


def applied(systemd: Systemd, *, is_masked: bool = True) -> TreatmentAct:
    acts: list[TreatmentAct] = []
    step(systemd, is_masked=is_masked).apply(acts.append, lambda _: None)
    return acts[0]


def undone(systemd: Systemd, act: TreatmentAct) -> str:
    return undo_unit(Path("/"), act.data, systemd)  # type: ignore[arg-type]


def test_a_unit_is_masked_before_it_is_stopped_and_comes_back_as_it_was() -> None:
    systemd = Systemd()
    act = applied(systemd)
    assert systemd.asked == ["MaskUnitFiles", "Reload", "StopUnit"]
    assert undone(systemd, act) == "ecs.service is as it was, unmasked, started"
    assert (systemd.active, systemd.file) == ("active", "enabled")


def test_what_was_masked_or_stopped_before_stays_so() -> None:
    systemd = Systemd(active="failed", file="masked")
    act = applied(systemd)
    assert systemd.asked == []
    undone(systemd, act)
    assert (systemd.active, systemd.file) == ("failed", "masked")


def test_the_plan_asks_and_changes_nothing() -> None:
    systemd = Systemd()
    assert step(systemd).describe() == [
        "stop ecs.service (active, unit file enabled)",
        "  mask it: systemctl mask ecs.service",
        "  stop it: systemctl stop ecs.service",
    ]
    assert systemd.asked == []


def test_a_refusal_comes_after_the_note_so_that_all_is_taken_back() -> None:
    systemd = Systemd(refuses="StopUnit")
    acts: list[TreatmentAct] = []
    with pytest.raises(SourceUnavailable):
        step(systemd).apply(acts.append, lambda _: None)
    undone(systemd, acts[0])
    assert (systemd.active, systemd.file) == ("active", "enabled")


def test_a_unit_that_systemd_does_not_know_is_an_error() -> None:
    systemd = Systemd()
    systemd.load = "not-found"
    with pytest.raises(SourceUnavailable, match="does not know ecs"):
        step(systemd).describe()


@pytest.mark.parametrize(
    "name",
    [
        "",
        "ecs",
        "x.mount",
        "init.scope",
        "a b.service",
        "a;reboot.service",
        "../../x.service",
        "a\n.service",
        "é.service",
        "a" * 250 + ".service",
        "dbus.service",
        "systemd-journald.service",
        "sshd.service",
        "kubelet.service",
        "docker.socket",
    ],
)
def test_hostile_names_and_units_that_the_node_needs_are_refused(name: str) -> None:
    with pytest.raises(UsageError):
        stop_unit(Path("/"), name, is_masked=True)
