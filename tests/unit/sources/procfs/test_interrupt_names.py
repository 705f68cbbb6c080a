"""The network device and queue behind an interrupt."""

import pytest

from necroscope.sources.procfs.interrupts import device_and_queue
from necroscope.sources.sysfs.netdev_irqs import NetworkDevices

DEVICES = NetworkDevices(
    names=frozenset({"eth0", "ens5", "eth1", "br-lan"}),
    by_irq={"77": "eth1"},
    by_bus_name={"virtio2": "eth0", "0000:3b:00.0": "eth1", "0000:00:05.0": "ens5"},
)


@pytest.mark.parametrize(
    ("action", "device", "queue"),
    [
        ("ens5-Tx-Rx-3", "ens5", 3),
        ("eth0-TxRx-0", "eth0", 0),
        ("i40e-eth0-TxRx-7", "eth0", 7),
        ("ice-eth0-TxRx-1", "eth0", 1),
        ("eth0-rx-1", "eth0", 1),
        ("eth0-rxtx-5", "eth0", 5),
        ("eth0-q2-tx", "eth0", 2),
        ("br-lan-Tx-Rx-1", "br-lan", 1),
        ("mlx5_comp3@pci:0000:3b:00.0", "eth1", 3),
        ("mlx5_async0@pci:0000:3b:00.0", "eth1", None),
        ("mlx4-3@0000:3b:00.0", "eth1", 3),
        ("mana_q3@pci:0000:3b:00.0", "eth1", 3),
        ("mana_hwc@pci:0000:3b:00.0", "eth1", None),
        ("gve-ntfy-blk3@pci:0000:00:05.0", "ens5", 3),
        ("eth0-ntfy-block.3", "eth0", 3),
        ("ena-mgmnt@pci:0000:00:05.0", "ens5", None),
        ("virtio2-input.0", "eth0", 0),
        ("virtio2-output.3", "eth0", 3),
        ("virtio2-config", "eth0", None),
        ("virtio1-req.0", None, None),
        ("eth0", "eth0", None),
        ("uhci_hcd:usb1, eth1", "eth1", None),
        ("eth7", None, None),
        ("nvme0q3", None, None),
        ("sda-rx-1", None, None),
        ("mlx5_comp3@pci:0000:99:00.0", None, None),
        ("", None, None),
    ],
)
def test_names_of_known_shapes_tell_device_and_queue(
    action: str, device: str | None, queue: int | None
) -> None:
    assert device_and_queue("40", action, DEVICES) == (device, queue)


def test_the_devices_own_list_beats_a_name_given_before_it_was_renamed() -> None:
    assert device_and_queue("77", "eth9-Tx-Rx-4", DEVICES) == ("eth1", 4)
    assert device_and_queue("77", "eth0-Tx-Rx-4", DEVICES) == ("eth1", 4)
    assert device_and_queue("77", "eth%d-ntfy-block.4", DEVICES) == ("eth1", 4)


def test_without_sysfs_the_name_is_believed() -> None:
    assert device_and_queue("40", "eth7-Tx-Rx-4", NetworkDevices()) == ("eth7", 4)
