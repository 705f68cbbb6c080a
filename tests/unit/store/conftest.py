"""A recording of several segments, to ask."""

from collections.abc import Callable
from pathlib import Path

import pytest

from necroscope.model.reading import Gap, Rows
from necroscope.segment.journal import JournalWriter, SegmentHeader
from necroscope.segment.recording import Identity, make_recording, new_segment_path
from necroscope.segment.seal_writer import seal

START_NS = 1_760_000_000_000_000_000
NS = 1_000_000_000
SEGMENT_S = 10


def rows_of_segment(number: int, first_s: int = 0, last_s: int = SEGMENT_S) -> dict[str, Rows]:
    """Ten seconds of two cores. Odd segments number their stacks and frames the other way round."""
    start_ns = START_NS + number * SEGMENT_S * NS
    outer, inner = (0, 1) if number % 2 == 0 else (1, 0)
    kernel, user = ("work", "[kernel]", "kernel", None, None), (None, "/bin/x", "user", 77, "ab")
    seconds = range(first_s, last_s)
    rows: dict[str, Rows] = {
        "samples": [
            (
                start_ns + s * NS + cpu,
                cpu,
                7,
                7,
                f"comm-{number}",
                "/a",
                s % 2 if number % 2 == 0 else 1 + s % 2,
                1,
            )
            for cpu in (1, 0)
            for s in seconds
        ],
        "cores": [
            (start_ns + s * NS, cpu, NS, number, 0, 0, 0, 0, 0, 0, 0, 0)
            for s in seconds
            for cpu in (0, 1)
        ],
        "gaps": [
            Gap(
                "cores",
                start_ns + first_s * NS,
                start_ns + (first_s + 1) * NS,
                f"cause {number}",
                None,
                None,
            ).row()
        ],
    }
    if first_s == 0:
        rows["frames"] = sorted([(outer, *user), (inner, *kernel)])
        rows["stacks"] = (
            [(0, -1, outer), (1, 0, inner)]
            if number % 2 == 0
            else [(0, -1, inner), (1, -1, outer), (2, 1, inner)]
        )
    return rows


def append(writer: JournalWriter, rows: dict[str, Rows]) -> None:
    for name, batch in rows.items():
        writer.append(name, batch)
    writer.flush()


@pytest.fixture
def write(tmp_path: Path) -> Callable[..., Path]:
    """Make a recording of this many segments, sealed but for the last few."""

    def write_segments(count: int, live: int = 0) -> Path:
        directory = tmp_path / "recording"
        make_recording(directory, Identity("node-a", "boot-1", "test", {"zone": "a"}))
        for number in range(count):
            path = new_segment_path(directory, START_NS + number * SEGMENT_S * NS)
            writer = JournalWriter(
                path, SegmentHeader("s", "node-a", "boot-1", START_NS + number * SEGMENT_S * NS, 2)
            )
            append(writer, rows_of_segment(number))
            writer.idle_samples = 5
            writer.close()
            if number < count - live:
                seal(path)
        return directory

    return write_segments
