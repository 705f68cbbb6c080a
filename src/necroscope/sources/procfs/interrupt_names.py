"""The network device and queue behind an interrupt, from the name its driver gave it and from what
sysfs knows.

Names by driver: ena `eth0-Tx-Rx-3`; ixgbe, igb, bnxt `eth0-TxRx-0`; i40e, ice, iavf
`i40e-eth0-TxRx-7`; vmxnet3 `eth0-rxtx-1`; xen `eth0-q0-rx`; mlx5 `mlx5_comp3@pci:0000:3b:00.0`;
mlx4 `mlx4-3@0000:01:00.0`; mana `mana_q3@pci:7870:00:00.0`; virtio `virtio2-input.0`; gve, with the
number of the transmit queue, `gve-ntfy-blk3@pci:0000:00:04.0`. Before commit 843711459391 (v6.3)
gve asked for its interrupts before the device had a name, and they are called `eth%d-ntfy-block.3`
to the letter. A driver with one interrupt for all its queues gives it the device's own name
(e1000e: `eth0`), and on a shared line the names stand side by side: `uhci_hcd:usb1, eth0`.
"""

import re
from typing import Final

from necroscope.sources.sysfs.netdev_irqs import NetworkDevices

_BY_DEVICE_NAME: Final = re.compile(
    r"(?P<device>.+?)-(?:tx-?rx|rx-?tx|rx|tx|fp|q|ntfy-block\.)-?(?P<queue>\d+)(?:-[rt]x)?",
    re.IGNORECASE,
)
_BY_BUS_NAME: Final = (
    re.compile(r"(?P<device>virtio\d+)-(?:(?:input|output)\.(?P<queue>\d+)|\S+)"),
    re.compile(
        r"(?:mlx5_comp|mlx4-|mana_q|(?:gve-)?ntfy-blk)(?P<queue>\d+)@(?:pci:)?(?P<device>\S+)"
    ),
    re.compile(r"[^@]+(?P<queue>(?!))?@(?:pci:)?(?P<device>\S+)"),
)


def device_and_queue(
    irq: str, action: str, devices: NetworkDevices
) -> tuple[str | None, int | None]:
    """Both None if the interrupt is no network device's; the queue alone is None for one of control
    or of all queues.
    """
    named, queue = _from_name(action, devices)
    device = devices.by_irq.get(irq) or named
    return (device, queue) if device is not None else (None, None)


def _from_name(action: str, devices: NetworkDevices) -> tuple[str | None, int | None]:
    for pattern in _BY_BUS_NAME:
        match = pattern.fullmatch(action)
        if match is not None:
            return devices.by_bus_name.get(match["device"]), _number(match["queue"])
    match = _BY_DEVICE_NAME.fullmatch(action)
    if match is None:
        return next((name for name in action.split(", ") if name in devices.names), None), None
    return _known(match["device"], devices.names), _number(match["queue"])


def _known(name: str, names: frozenset[str]) -> str | None:
    """The device as sysfs spells it, with or without the driver before it; without sysfs the name
    is believed.
    """
    _driver, dash, rest = name.partition("-")
    if name in names or not names:
        return name
    return rest if dash and rest in names else None


def _number(text: str | None) -> int | None:
    return None if text is None else int(text)
