"""Which interrupts belong to which network device."""

from pathlib import Path

from tests.synthetic_root import write_files

from necroscope.sources.sysfs import netdev_irqs


def _device(root: Path, name: str, at: str) -> None:
    target = root / "sys/devices" / at
    target.mkdir(parents=True, exist_ok=True)
    folder = root / "sys/class/net" / name
    folder.mkdir(parents=True)
    (folder / "device").symlink_to(target)


def test_a_pci_device_has_its_interrupts(tmp_path: Path) -> None:
    _device(tmp_path, "eth0", "pci0000:00/0000:00:05.0")
    write_files(
        tmp_path, {f"sys/devices/pci0000:00/0000:00:05.0/msi_irqs/{irq}": "" for irq in (24, 25)}
    )
    devices = netdev_irqs.read(tmp_path)
    assert devices.by_irq == {"24": "eth0", "25": "eth0"}
    assert devices.by_bus_name == {"0000:00:05.0": "eth0"}


def test_a_virtio_device_has_those_of_the_function_above_it(tmp_path: Path) -> None:
    _device(tmp_path, "eth0", "pci0000:00/0000:00:03.0/virtio2")
    write_files(tmp_path, {"sys/devices/pci0000:00/0000:00:03.0/msi_irqs/38": ""})
    devices = netdev_irqs.read(tmp_path)
    assert (devices.by_irq, devices.by_bus_name) == ({"38": "eth0"}, {"virtio2": "eth0"})


def test_a_function_with_two_devices_names_neither(tmp_path: Path) -> None:
    for name in ("eth0", "eth1"):
        _device(tmp_path, name, "0000:3b:00.0")
    write_files(tmp_path, {"sys/devices/0000:3b:00.0/msi_irqs/38": ""})
    devices = netdev_irqs.read(tmp_path)
    assert (devices.names, devices.by_irq, devices.by_bus_name) == ({"eth0", "eth1"}, {}, {})


def test_without_sysfs_there_is_nothing(tmp_path: Path) -> None:
    assert netdev_irqs.read(tmp_path) == netdev_irqs.NetworkDevices()
