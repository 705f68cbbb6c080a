"""The timeline: modes of cores by second, gaps as gaps, events by name."""

import xml.etree.ElementTree as ET
from pathlib import Path

import numpy as np
import pytest

from necroscope.segment.journal import JournalWriter, SegmentHeader
from necroscope.segment.recording import Identity, make_recording, new_segment_path
from necroscope.store.query import Store
from necroscope.views.report.core_map import CoreMap, read_core_map
from necroscope.views.report.timeline_svg import COLOURS, Mark, timeline_svg

S = 1_000_000_000
START = 1_776_248_000 * S
HELD = range(4, 7)


@pytest.fixture
def store(tmp_path: Path) -> Store:
    """Four cores for ten seconds; core 2 is held in system mode for three of them, and second 8 was
    not recorded.
    """
    make_recording(tmp_path / "r", Identity("node-a", "boot-1", "drawn", {}))
    path = new_segment_path(tmp_path / "r", START)
    writer = JournalWriter(path, SegmentHeader(path.name, "node-a", "boot-1", START, 4))
    for second in range(10):
        for cpu in range(4):
            system = S if cpu == 2 and second in HELD else 0
            if second != 8:
                row = (
                    START + (second + 1) * S,
                    cpu,
                    S,
                    S // 4,
                    0,
                    system,
                    S - system,
                    0,
                    0,
                    0,
                    0,
                    0,
                )
                writer.append("cores", [row])
    writer.close()
    return Store.open(tmp_path / "r")


def test_a_held_core_is_seen_in_its_seconds(store: Store) -> None:
    core_map = read_core_map(store, START, START + 10 * S, most_cores=24)
    assert core_map.cpus == (0, 1, 2, 3)
    assert np.flatnonzero(np.nan_to_num(core_map.shares["system"][2])).tolist() == list(HELD)
    assert np.isnan(core_map.shares["user"][:, 8]).all()
    assert core_map.shares["user"][0, 0] == 0.25


def test_of_many_cores_the_busiest_in_the_kernel_and_the_asked_one_are_shown(store: Store) -> None:
    core_map = read_core_map(store, START, START + 10 * S, most_cores=2, always=(3,))
    assert core_map.cpus == (2, 3)
    assert core_map.left_out == 2


def test_a_recording_without_the_window_is_an_empty_map(store: Store) -> None:
    assert read_core_map(store, START - 99 * S, START - 90 * S, 24).cpus == ()


def drawn(core_map: CoreMap, *marks: Mark) -> ET.Element:
    return ET.fromstring(timeline_svg(core_map, (START + 4 * S, START + 7 * S), 2, marks))


def test_modes_gaps_and_events_are_drawn(store: Store) -> None:
    core_map = read_core_map(store, START, START + 10 * S, most_cores=24)
    picture = drawn(
        core_map,
        Mark(START + 6 * S, "<nic_reset> eth0"),
        Mark(START + 5 * S, "unit_restart", is_major=False),
    )
    fills = [path.get("fill") for path in picture.iter("path")]
    assert fills.count(COLOURS["system"]) == 1
    assert fills.count(COLOURS["user"]) == 4
    assert fills.count("url(#unrecorded)") == 4
    texts = [text.text for text in picture.iter("text")]
    assert "<nic_reset> eth0" in texts
    assert "unit_restart" not in texts
    assert [text.text for text in picture.iter("text") if text.get("class") == "lane hot"] == [
        "core 2"
    ]
