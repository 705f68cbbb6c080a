"""A small segment with every kind of column, to record, seal, damage and read."""

from collections.abc import Callable
from pathlib import Path

import pytest

from necroscope.model.event import Event
from necroscope.model.reading import Gap, Rows
from necroscope.segment.journal import JournalWriter, SegmentHeader
from necroscope.segment.recording import Identity, make_recording, new_segment_path

START_NS = 1_760_000_000_000_000_000
NS = 1_000_000_000


def rows_of_second(second: int) -> dict[str, Rows]:
    """Two cores for one second: samples that are not in order of time, as two rings give them."""
    now = START_NS + second * NS
    rows: dict[str, Rows] = {
        "samples": [
            (
                now + i * 100_000_000 + cpu,
                cpu,
                10 + i,
                10 + i,
                f"work-{i}",
                "/a/ü" if i else None,
                i % 3,
                1,
            )
            for cpu in (1, 0)
            for i in range(4)
        ],
        "cores": [
            (now, cpu, NS, cpu * 1000 + second, 0, second, 3, 0, 0, 0, 0, 0) for cpu in (0, 1)
        ],
        "softirq_delay": [(now, 0, "net_rx", 5, 900, 0, [second, 2, 3])],
    }
    if second == 0:
        rows["frames"] = [
            (0, "start", "[kernel]", "kernel", None, None),
            (1, None, "/bin/x", "user", 77, "ab"),
            (2, "leaf", "[kernel]", "kernel", None, None),
        ]
        rows["stacks"] = [(0, -1, 0), (1, 0, 1), (2, 1, 2)]
        rows["events"] = [
            Event(
                time_ns=now,
                kind="soft_lockup",
                cpu=1,
                pid=7,
                comm="x\x1b",
                severity=2,
                by_kernel=True,
                sequence=9,
                message="BUG: soft lockup",
                fields="{}",
            ).row()
        ]
    if second == 2:
        rows["gaps"] = [Gap("samples", now, now + 5, "ring overran", 1, 3).row()]
    return rows


@pytest.fixture
def recording(tmp_path: Path) -> Path:
    directory = tmp_path / "recording"
    make_recording(directory, Identity("node-a", "boot-1", "necroscope test", {"zone": "a"}))
    return directory


@pytest.fixture
def record(recording: Path) -> Callable[..., Path]:
    """Write a live segment of some seconds, a flush each second; returns its directory."""

    def write(seconds: int = 4, start_ns: int = START_NS) -> Path:
        live = new_segment_path(recording, start_ns)
        writer = JournalWriter(
            live, SegmentHeader(live.name.removesuffix(".live"), "node-a", "boot-1", start_ns, 2)
        )
        for second in range(seconds):
            for table, rows in rows_of_second(second).items():
                writer.append(table, rows)
            writer.idle_samples += 10
            writer.flush()
        writer.close()
        return live

    return write
