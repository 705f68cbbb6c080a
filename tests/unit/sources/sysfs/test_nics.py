"""Counters of network devices and the `nics` table."""

from pathlib import Path

import pytest
from tests.synthetic_root import at_second, make_root, write_files

from necroscope.errors import SourceUnavailable
from necroscope.model.tables import TABLES
from necroscope.sources.sysfs.ethtool import Answers, Driver, DriverAnswer, EthtoolThread
from necroscope.sources.sysfs.nics import Nics


class _Answering(EthtoolThread):
    """Answers at once what it is told to."""

    def __init__(self, *answers: Answers | None) -> None:
        super().__init__()
        self.left = list(answers)

    def ask(self, devices: list[str]) -> None:
        self.asked = devices

    def answers(self, wait_s: float) -> Answers | None:
        return self.left.pop(0)


def _veth(root: Path, name: str, uevent: str = "INTERFACE=veth\n") -> None:
    texts = {"ifindex": "7\n", "iflink": "6\n", "uevent": uevent, "statistics/rx_dropped": "3\n"}
    write_files(root / "sys/class/net" / name, texts)


def test_the_first_read_writes_all_and_the_next_only_what_changed(tmp_path: Path) -> None:
    source = Nics(make_root(tmp_path, 2, queues=4))
    rows = source.read(at_second(0)).rows["nics"]
    assert len(rows) == 4 + 7
    assert all(len(row) == len(TABLES["nics"].columns) for row in rows)
    assert (at_second(0).time_ns, "eth0", "ena", None, "tx-3/tx_timeout", 0) in rows
    make_root(tmp_path, 2, step=1, queues=4)
    rows = source.read(at_second(5)).rows["nics"]
    assert {(row[4], row[5]) for row in rows} == {
        ("tx-3/tx_timeout", 1),
        ("rx_packets", 7001),
        ("tx_packets", 7001),
        ("rx_errors", 7001),
        ("tx_errors", 7001),
    }
    source.close()


def test_a_new_segment_writes_all_again(tmp_path: Path) -> None:
    source = Nics(make_root(tmp_path, 2, queues=4))
    source.read(at_second(0))
    assert source.read(at_second(5)).rows["nics"] == []
    source.start_segment()
    assert len(source.read(at_second(10)).rows["nics"]) == 4 + 7
    source.close()


def test_veth_is_read_and_bridges_and_vlans_are_not(tmp_path: Path) -> None:
    make_root(tmp_path, 2, queues=1)
    _veth(tmp_path, "veth1")
    _veth(tmp_path, "eth0.5", uevent="DEVTYPE=vlan\nINTERFACE=eth0.5\n")
    write_files(tmp_path, {"sys/class/net/lo/ifindex": "1\n", "sys/class/net/lo/iflink": "1\n"})
    source = Nics(tmp_path)
    rows = source.read(at_second(0)).rows["nics"]
    assert [row[1:] for row in rows if row[1] != "eth0"] == [
        ("veth1", "veth", None, "rx_dropped", 3)
    ]
    source.close()


def test_in_another_network_namespace_one_gap_says_why_drivers_are_not_asked(
    tmp_path: Path,
) -> None:
    write_files(make_root(tmp_path, 2, queues=1), {"proc/1/ns/net": ""})
    source = Nics(tmp_path)
    assert [gap.cause for gap in source.read(at_second(0)).gaps] == [
        "the drivers' own counters cannot be asked for from another network namespace"
    ]
    assert source.read(at_second(5)).gaps == []
    source.close()


@pytest.mark.kernel
def test_below_a_host_root_drivers_are_asked_in_the_nodes_own_namespace(tmp_path: Path) -> None:
    make_root(tmp_path, 2, queues=1)
    (tmp_path / "proc/1/ns").mkdir(parents=True)
    (tmp_path / "proc/1/ns/net").symlink_to("/proc/self/ns/net")
    source = Nics(tmp_path)
    assert not [
        gap for gap in source.read(at_second(0)).gaps if "another network namespace" in gap.cause
    ]
    source.close()


def test_the_drivers_answer_gives_versions_and_counters(tmp_path: Path) -> None:
    answer = DriverAnswer(
        Driver("ena", "2.11.0g", "1.5", 1), {"suspected_poll_starvation": 2}, left_out=9
    )
    source = Nics(make_root(tmp_path, 2, queues=1), _Answering({"eth0": answer}))
    reading = source.read(at_second(0))
    assert (
        at_second(0).time_ns,
        "eth0",
        "ena",
        "2.11.0g, firmware 1.5",
        "suspected_poll_starvation",
        2,
    ) in reading.rows["nics"]
    assert [gap.cause for gap in reading.gaps] == ["9 counters of eth0 are beyond the limit"]
    source.close()


def test_a_driver_that_does_not_answer_until_the_next_read_is_a_gap_and_sysfs_is_still_read(
    tmp_path: Path,
) -> None:
    source = Nics(make_root(tmp_path, 2, queues=1), _Answering(None, None, None))
    reading = source.read(at_second(0))
    assert reading.gaps == []
    assert len(reading.rows["nics"]) == 1 + 7
    (gap,) = source.read(at_second(5)).gaps
    assert gap.cause == "ethtool did not answer: another task holds the kernel's rtnl lock"
    assert (gap.from_ns, gap.to_ns) == (at_second(0).time_ns, at_second(5).time_ns)
    source.close()


def test_an_answer_that_comes_between_two_reads_is_in_the_second_and_no_gap(tmp_path: Path) -> None:
    late = {
        "eth0": DriverAnswer(Driver("ena", "2.11.0g", "1.5", 1), {"suspected_poll_starvation": 2})
    }
    source = Nics(make_root(tmp_path, 2, queues=1), _Answering(None, late, None, None, {}))
    readings = [source.read(at_second(second)) for second in (0, 5, 10)]
    assert [len(reading.gaps) for reading in readings] == [0, 0, 0]
    assert [row[4] for row in readings[1].rows["nics"]] == ["suspected_poll_starvation"]
    source.close()


def test_a_device_that_vanished_and_came_back_is_written_anew(tmp_path: Path) -> None:
    make_root(tmp_path, 2, queues=1)
    _veth(tmp_path, "veth1")
    source = Nics(tmp_path)
    source.read(at_second(0))
    folder = tmp_path / "sys/class/net/veth1"
    folder.rename(tmp_path / "away")
    assert source.read(at_second(5)).rows["nics"] == []
    (tmp_path / "away").rename(folder)
    assert [row[1] for row in source.read(at_second(10)).rows["nics"]] == ["veth1"]
    source.close()


def test_without_sysfs_it_is_unavailable(tmp_path: Path) -> None:
    with pytest.raises(SourceUnavailable, match="sys/class/net"):
        Nics(tmp_path).read(at_second(0))


@pytest.mark.kernel
def test_this_machine_can_be_read() -> None:
    source = Nics(Path("/"))
    rows = source.read(at_second(0)).rows["nics"]
    assert all(isinstance(row[5], int) for row in rows)
    source.close()


def _carrier(root: Path, changes: int, is_up: bool) -> None:
    texts = {"carrier_changes": f"{changes}\n", "carrier": "1\n" if is_up else "0\n"}
    write_files(root / "sys/class/net/eth0", texts)


def test_a_link_that_went_is_an_event_where_veth_is_all_a_node_has(tmp_path: Path) -> None:
    _veth(tmp_path, "eth0")
    _carrier(tmp_path, 2, is_up=True)
    source = Nics(tmp_path)
    names = [column.name for column in TABLES["events"].columns]
    found = []
    for second, (changes, is_up) in enumerate([(2, True), (3, False), (4, True), (6, True)]):
        _carrier(tmp_path, changes, is_up)
        rows = source.read(at_second(5 * second)).rows.get("events", [])
        found += [dict(zip(names, row, strict=True)) for row in rows]
    source.close()
    assert [one["message"] for one in found] == [
        "eth0: its link went down",
        "eth0: its link went and came back",
    ]
    assert {(one["kind"], one["device"], one["by_kernel"]) for one in found} == {
        ("nic_link_down", "eth0", True)
    }


def test_the_veth_of_a_pod_that_ends_is_no_event_of_its_node(tmp_path: Path) -> None:
    make_root(tmp_path, 2, queues=1)
    _veth(tmp_path, "veth1")
    source = Nics(tmp_path)
    for changes in (2, 3):
        write_files(tmp_path / "sys/class/net/veth1", {"carrier_changes": f"{changes}\n"})
        assert "events" not in source.read(at_second(5 * changes)).rows
    source.close()
