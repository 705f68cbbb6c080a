"""What is recorded of who is to be acted on stands among the evidence."""

from tests.drawn_node import DrawnNode, at, drawn_node

from necroscope.analysis.engine import diagnose

WALK = """
    core 0:  ..............................
    core 1:  ...............kkkkkk.........
    k: system  scraper[1872]  {cgroup}  Read > ksys_read, vfs_read, seq_read_iter, tcp4_seq_show
"""
ID = "677df4abd054d1c4bffe14cda0cbd6f464cd2a2b869262da8614e59d9d09697a"


def scanned(cgroup: str) -> DrawnNode:
    return drawn_node(WALK.replace("{cgroup}", cgroup))


def evidence_of(node: DrawnNode, table: str) -> list[str]:
    (incident,) = diagnose(node).incidents
    assert incident.verdict.cause == "proc-net-scan"
    return [item.text for item in incident.verdict.evidence if item.table == table]


def test_the_file_of_a_unit_and_who_enabled_it_are_reported() -> None:
    node = scanned("/system.slice/scraper.service")
    path = "/usr/lib/systemd/system/scraper.service"
    values = {"unit": "scraper.service", "fragment": path, "preset": "enabled"}
    node.add("units", 1, file_state="enabled", result="success", restarts=0, **values)
    node.add(
        "units",
        9,
        file_state="enabled",
        result="exit-code",
        restarts=5120,
        started_ns=at(8) + 7,
        **values,
    )
    node.add("units", 28, unit="scraper.service", load_state="unloaded")
    node.add("units", 9, unit="other.service", fragment="/etc/systemd/system/other.service")
    assert evidence_of(node, "units") == [
        (
            f"scraper.service: unit file {path}, enabled as the vendor presets it, result exit-code,"
            " 5,120 restarts so far"
        )
    ]


def test_what_somebody_here_enabled_is_not_put_down_to_the_vendor() -> None:
    node = scanned("/system.slice/scraper.service")
    node.add(
        "units",
        1,
        unit="scraper.service",
        file_state="enabled",
        preset="disabled",
        result="success",
        restarts=0,
    )
    assert evidence_of(node, "units") == ["scraper.service: enabled"]


def test_the_image_of_a_container_is_reported_with_and_without_a_name() -> None:
    for name, called in ((None, ID[:12]), ("collector", "collector")):
        node = scanned(f"/machine.slice/libpod-{ID}.scope")
        node.add(
            "containers",
            1,
            container=ID,
            name=name,
            image="registry/collector:4",
            restarts=3,
            exit_code=137,
            started_ns=at(0) + 7,
        )
        node.add("containers", 1, container="f" * 64, name="other", image="registry/other:1")
        assert evidence_of(node, "containers") == [
            f"{called}: image registry/collector:4, exit code 137, 3 restarts so far"
        ]


def test_it_is_reported_among_the_first_six_pieces() -> None:
    node = scanned("/system.slice/scraper.service").add(
        "units", 1, unit="scraper.service", fragment="/etc/scraper.service"
    )
    for second in (18, 19, 20):
        node.delay(second, 1, 0.5).event(second, "nic_tx_timeout", device="eth0", cpu=1)
    (incident,) = diagnose(node).incidents
    assert len(incident.verdict.evidence) > 6
    assert "units" in [item.table for item in incident.verdict.evidence[:6]]


def test_nothing_is_said_where_nothing_is_recorded() -> None:
    assert not evidence_of(scanned("/system.slice/scraper.service"), "units")
    assert not evidence_of(scanned(f"/machine.slice/libpod-{ID}.scope"), "containers")
    assert not evidence_of(
        scanned("/").add("units", 1, unit="scraper.service", fragment="/etc/x"), "units"
    )
