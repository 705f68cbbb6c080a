"""Facts about network devices."""

from pathlib import Path

import pytest
from tests.synthetic_root import make_root, write_files

from necroscope.sources.facts import network
from necroscope.sources.facts.fact import fact


def make_node(root: Path, queues: int) -> None:
    """A device whose driver's directory is there."""
    make_root(root, 2, queues=queues)
    driver = root / "sys/class/net/eth0/device/driver"
    driver.unlink()
    driver.symlink_to(root / "ena")
    (root / "ena").mkdir()


def test_driver_queues_and_settings_come_from_sysfs(tmp_path: Path) -> None:
    make_node(tmp_path, queues=8)
    write_files(tmp_path, {"ena/module/version": "2.11.0g\n", "sys/class/net/eth0/mtu": "9001\n"})
    write_files(
        tmp_path,
        {"sys/class/net/eth0/queues/rx-0/rps_cpus": "00\n", "sys/class/net/lo/mtu": "65536\n"},
    )
    found = {name: value for _, name, value in network.collect(tmp_path)}
    assert (found["eth0 driver"], found["eth0 driver_version"], found["eth0 mtu"]) == (
        "ena",
        "2.11.0g",
        "9001",
    )
    assert (found["eth0 tx_queues"], found["eth0 rx_queues"], found["eth0 rps_cpus"]) == (
        "8",
        "1",
        "00",
    )
    assert not any(name.startswith("lo ") for name in found)


@pytest.mark.parametrize("is_node", [True, False])
def test_drivers_are_asked_only_in_the_nodes_own_network(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, is_node: bool
) -> None:
    answers = [fact("nic", "eth0 firmware", "1.5")]
    monkeypatch.setattr(
        network, "_from_ethtool", lambda devices: answers if devices == ["eth0"] else []
    )
    monkeypatch.setattr(network, "is_network_of_node", lambda root: is_node and root == tmp_path)
    make_node(tmp_path, queues=1)
    assert (answers[0] in network.collect(tmp_path)) == is_node


@pytest.mark.kernel
def test_this_machines_devices_can_be_asked() -> None:
    found = list(network.collect(Path("/")))
    assert all(fact.kind == "nic" and fact.value for fact in found)
