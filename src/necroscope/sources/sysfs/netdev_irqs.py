"""Which interrupts belong to which network device: /sys/class/net/DEV/device and its msi_irqs
(drivers/pci/msi).
"""

import os
from collections.abc import Mapping
from pathlib import Path
from types import MappingProxyType
from typing import NamedTuple

from necroscope.model.names import clean


class NetworkDevices(NamedTuple):
    """The devices' names, and those known by an interrupt number or by a bus name (`virtio2`,
    `0000:00:05.0`).
    """

    names: frozenset[str] = frozenset()
    by_irq: Mapping[str, str] = MappingProxyType({})
    by_bus_name: Mapping[str, str] = MappingProxyType({})


def read(root: Path) -> NetworkDevices:
    """What sysfs tells now. A function that carries several devices names none of them by
    itself.
    """
    by_irq: dict[str, set[str]] = {}
    by_bus_name: dict[str, set[str]] = {}
    folder = root / "sys/class/net"
    names = _list(folder)
    for name in names:
        device = folder / name / "device"
        if device.exists():
            device = device.resolve()
            by_bus_name.setdefault(device.name, set()).add(clean(name))
            # A virtio device hangs below the PCI function that has the interrupts.
            for irq in _list(device / "msi_irqs") or _list(device.parent / "msi_irqs"):
                by_irq.setdefault(irq, set()).add(clean(name))
    return NetworkDevices(frozenset(map(clean, names)), _unique(by_irq), _unique(by_bus_name))


def _unique(owners: dict[str, set[str]]) -> dict[str, str]:
    return {key: next(iter(devices)) for key, devices in owners.items() if len(devices) == 1}


def _list(folder: Path) -> list[str]:
    try:
        return sorted(os.listdir(folder))
    except OSError:
        return []
