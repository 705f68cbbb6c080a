"""The treatment of a verdict: what its own fix says, as steps."""

from collections.abc import Callable
from pathlib import Path
from typing import Final

from necroscope.analysis.report import Incident, Verdict
from necroscope.errors import UsageError
from necroscope.sources.sysfs import cpus
from necroscope.treat.bites import network_irqs
from necroscope.treat.kernel_settings import move_interrupt
from necroscope.treat.treatment import Treatment, TreatmentStep
from necroscope.treat.units import stop_unit

_STOPS: Final = "systemctl disable --now "
_CAUSES: Final = ("zombie-memcg-walk", "irq-core-collision")


def treatment_of(incident: Incident, root: Path, purge: Callable[[], TreatmentStep]) -> Treatment:
    """`purge` finds what pins dead cgroups, which takes a while: it is asked only where it is part
    of the fix.
    """
    verdict = incident.verdict
    if verdict.cause == "zombie-memcg-walk":
        return Treatment(_title(incident), (*_unit(verdict, root), purge()))
    if verdict.cause == "irq-core-collision" and incident.core is not None:
        return Treatment(_title(incident), _interrupts(incident.core, root))
    raise UsageError(
        f"there is no treatment for {verdict.cause}",
        f"it treats {' and '.join(_CAUSES)}; `necroscope diagnose` says what to do by hand",
    )


def _title(incident: Incident) -> str:
    origin = incident.verdict.origin
    of = f" of {origin.kind} {origin.name}" if origin is not None else ""
    return f"{incident.verdict.cause}{of}, incident {incident.id}"


def _unit(verdict: Verdict, root: Path) -> tuple[TreatmentStep, ...]:
    """A unit is stopped only where the verdict says so: below one that lives others may make the
    cgroups.
    """
    origin = verdict.origin
    if origin is None or origin.kind != "unit":
        return ()
    if not any(line.startswith(f"{_STOPS}{origin.name} ") for line in verdict.fix):
        return ()
    return (stop_unit(root, origin.name, is_masked=True),)


def _interrupts(core: int, root: Path) -> tuple[TreatmentStep, ...]:
    """Those of network queues that go to the core that is held, to the others."""
    online = cpus.parse((root / "sys/devices/system/cpu/online").read_text())
    others = [each for each in online if each != core]
    moved = [irq for irq, cores in network_irqs(root).items() if core in cores]
    if not others or not moved:
        raise UsageError(
            f"no interrupt of a network queue goes to core {core} now, or there is no other core",
            "see /proc/interrupts",
        )
    return tuple(
        move_interrupt(root, int(irq), str(others[place % len(others)]))
        for place, irq in enumerate(sorted(moved, key=int))
    )
