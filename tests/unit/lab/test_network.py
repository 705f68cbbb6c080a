"""The probe's two logs become packets."""

from pathlib import Path

from necroscope.lab.network import Network, read_packets, setup_commands


def test_packets_are_joined_by_their_number(tmp_path: Path) -> None:
    (tmp_path / "sent").write_text("0 1000\n1 2000\n2 3000\n3 40")
    (tmp_path / "received").write_text("0 7\n2 9\n1")
    assert read_packets(tmp_path / "sent", tmp_path / "received") == [
        (1000, 7),
        (2000, None),
        (3000, 9),
    ]


def test_a_probe_that_never_ran_has_no_packets(tmp_path: Path) -> None:
    assert read_packets(tmp_path / "sent", tmp_path / "received") == []


def test_only_the_labs_own_namespaces_are_touched() -> None:
    network = Network("near-ns", "far-ns", "v1", "v2", core=3)
    commands = setup_commands(network)
    assert [command for command in commands if not {"near-ns", "far-ns"} & set(command)] == []
    assert commands[-1][-1].startswith("echo 8 > ")
