"""An excerpt for strangers says how the node was set and what it did, and not whose it is."""

from pathlib import Path

from tests.written_recording import WrittenSegment, at, new_recording, row

from necroscope.store.excerpt import write_excerpt
from necroscope.store.query import Store

SECRET = "acme"


def test_what_says_whose_node_it_is_is_left_out(tmp_path: Path) -> None:
    recording = new_recording(tmp_path / "r", labels={"customer": "acme"})
    segment = WrittenSegment(recording, 0).ticks(0, 5)
    segment.add(
        "facts",
        row("facts", 1, kind="package", name="acme-agent", value="1"),
        row("facts", 1, kind="label", name="customer", value="acme"),
        row("facts", 1, kind="kernel", name="command_line", value="acme.token=x"),
        row("facts", 1, kind="sysctl", name="vm.swappiness", value="1"),
        row("facts", 1, kind="nic", name="eth0 driver", value="of node-a"),
    )
    segment.add("log", row("log", 1, message="acme says hello"))
    segment.add(
        "events",
        row("events", 1, kind="unit_restart", message="acme.service failed", fields='{"acme":1}'),
        row("events", 2, kind="nic_reset", message="ena: Trigger reset is on", by_kernel=True),
    )
    segment.add("tasks", row("tasks", 1, argv0="/srv/acme/run", file="/home/acme/data.bin"))
    segment.add("tasks", row("tasks", 2, argv0="/usr/sbin/sshd", file="/proc/stat"))
    segment.seal()
    write_excerpt(Store.open(recording), at(0), at(5), tmp_path / "part", is_redacted=True)
    part = Store.open(tmp_path / "part")
    answer = {name: part.rows(name, 0, 1 << 62).to_pylist() for name in part.info().tables}
    assert SECRET not in repr(answer)
    assert "node-a" not in repr(answer)
    assert SECRET not in repr(part.catalog.identity)
    assert [one["name"] for one in answer["facts"]] == ["vm.swappiness", "eth0 driver"]
    assert {one["message"] for one in answer["events"]} == {
        "(redacted)",
        "ena: Trigger reset is on",
    }
    assert [one["argv0"] for one in answer["tasks"]] == ["(redacted)/run", "/usr/sbin/sshd"]
    assert len(answer["cores"]) > 0
