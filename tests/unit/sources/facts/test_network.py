"""Facts about network devices."""

from pathlib import Path

import pytest
from tests.synthetic_root import make_root, write_files

from necroscope.sources.facts import network


def test_driver_queues_and_settings_come_from_sysfs(tmp_path: Path) -> None:
    make_root(tmp_path, 2, queues=8)
    driver = tmp_path / "sys/class/net/eth0/device/driver"
    driver.unlink()
    driver.symlink_to(tmp_path / "ena")
    write_files(tmp_path, {"ena/module/version": "2.11.0g\n", "sys/class/net/eth0/mtu": "9001\n"})
    write_files(tmp_path, {"sys/class/net/eth0/queues/rx-0/rps_cpus": "00\n", "sys/class/net/lo/mtu": "65536\n"})
    found = {name: value for _, name, value in network.collect(tmp_path)}
    assert (found["eth0 driver"], found["eth0 driver_version"], found["eth0 mtu"]) == ("ena", "2.11.0g", "9001")
    assert (found["eth0 tx_queues"], found["eth0 rx_queues"], found["eth0 rps_cpus"]) == ("8", "1", "00")
    assert not any(name.startswith("lo ") for name in found)


@pytest.mark.kernel
def test_this_machines_devices_can_be_asked() -> None:
    found = list(network.collect(Path("/")))
    assert all(fact.kind == "nic" and fact.value for fact in found)
