"""Which steps the fix of a verdict becomes."""

from pathlib import Path
from typing import Any

import pytest

from necroscope.analysis.report import Incident, Origin, Verdict
from necroscope.errors import UsageError
from necroscope.treat.kernel_settings import SettingStep
from necroscope.treat.of_verdict import treatment_of
from necroscope.treat.treatment import TreatmentStep
from necroscope.treat.units import UnitStep


class Purge:
    """Stands for the purge, which looks at all of memory."""

    def describe(self) -> list[str]:
        return ["purge"]

    def as_json(self) -> dict[str, Any]:
        return {"kind": "purge"}

    def apply(self, note: object, say: object) -> None:
        raise AssertionError("a plan does nothing")


def steps(root: Path, cause: str, origin: Origin | None, *fix: str) -> tuple[TreatmentStep, ...]:
    verdict = Verdict(cause, cause, 0.9, "", origin=origin, fix=fix)
    incident = Incident("7", 0, 1, 1, "system", (), (), verdict)
    return treatment_of(incident, root, Purge).steps


def test_a_unit_that_the_verdict_says_to_disable_is_masked_before_the_purge(tmp_path: Path) -> None:
    fix = "systemctl disable --now ecs.service  # it re-creates container ecs-agent"
    unit, purge = steps(tmp_path, "zombie-memcg-walk", Origin("unit", "ecs.service"), fix)
    assert isinstance(unit, UnitStep)
    assert (unit.unit, unit.is_masked) == ("ecs.service", True)
    assert isinstance(purge, Purge)


@pytest.mark.parametrize(
    ("origin", "fix"),
    [
        (Origin("unit", "docker.service"), "find what makes cgroups below docker.service"),
        (Origin("unit", "ecs.service"), "systemctl disable --now ecs.service.old  # other"),
        (Origin("container", "ecs-agent"), "stop or fix container ecs-agent"),
        (None, ""),
    ],
)
def test_a_unit_that_the_verdict_does_not_say_to_disable_is_left_running(
    tmp_path: Path, origin: Origin | None, fix: str
) -> None:
    (only,) = steps(tmp_path, "zombie-memcg-walk", origin, fix)
    assert isinstance(only, Purge)


def test_a_unit_whose_name_would_be_a_command_is_refused(tmp_path: Path) -> None:
    name = "a;reboot.service"
    fix = f"systemctl disable --now {name}  # x"
    with pytest.raises(UsageError, match="not a valid name"):
        steps(tmp_path, "zombie-memcg-walk", Origin("unit", name), fix)


def test_network_interrupts_leave_the_core_that_is_held(tmp_path: Path) -> None:
    for path, text in {
        "sys/devices/system/cpu/online": "0-2\n",
        "sys/class/net/eth0/mtu": "1500\n",
        "proc/interrupts": (
            "      CPU0  CPU1  CPU2\n"
            " 38:  0     9     0     PCI-MSI  eth0-Tx-Rx-0\n"
            " 39:  9     0     0     PCI-MSI  eth0-Tx-Rx-1\n"
        ),
        "proc/irq/38/smp_affinity_list": "1\n",
        "proc/irq/39/smp_affinity_list": "0\n",
    }.items():
        (tmp_path / path).parent.mkdir(parents=True, exist_ok=True)
        (tmp_path / path).write_text(text)
    (only,) = steps(tmp_path, "irq-core-collision", None)
    assert isinstance(only, SettingStep)
    assert (only.path, only.value) == ("proc/irq/38/smp_affinity_list", "0")


def test_a_cause_without_a_treatment_is_said(tmp_path: Path) -> None:
    with pytest.raises(UsageError, match="there is no treatment for vm-steal"):
        steps(tmp_path, "vm-steal", None)
