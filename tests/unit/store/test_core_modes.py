"""Cores by time: the worst tick of a column is seen, what was not recorded has no value."""

from pathlib import Path

import numpy as np
import pytest

from necroscope.segment.journal import JournalWriter, SegmentHeader
from necroscope.segment.recording import Identity, make_recording, new_segment_path
from necroscope.store.core_modes import read_core_modes
from necroscope.store.query import Store

S = 1_000_000_000
START = 1_776_248_000 * S


@pytest.fixture
def store(tmp_path: Path) -> Store:
    """Cores 0 and 7 for a minute; core 7 is held for one second of it, and nothing was recorded from second 40 to 50."""
    make_recording(tmp_path / "r", Identity("node-a", "boot-1", "drawn", {}))
    path = new_segment_path(tmp_path / "r", START)
    writer = JournalWriter(path, SegmentHeader(path.name, "node-a", "boot-1", START, 8))
    for second in (second for second in range(60) if not 40 <= second < 50):
        for cpu in (0, 7):
            system = S if cpu == 7 and second == 33 else S // 10
            writer.append("cores", [(START + (second + 1) * S, cpu, S, S // 10, 0, system, 0, 0, 0, 0, 0, 0)])
    writer.append("softirq_delay", [(START + 34 * S, 7, "net_rx", 1, 700_000_000, 0, [0] * 24)])
    writer.close()
    return Store.open(tmp_path / "r")


def test_one_held_second_is_seen_in_a_column_of_ten(store: Store) -> None:
    modes = read_core_modes(store, START, START + 60 * S, 6, [0, 7])
    assert modes.worst["system"][1].tolist()[:4] == pytest.approx([0.1, 0.1, 0.1, 1.0])
    assert modes.worst["busy"][0, 0] == pytest.approx(0.2)
    assert modes.delay_ns[1].tolist() == [0, 0, 0, 700_000_000, 0, 0]


def test_what_was_not_recorded_has_no_value(store: Store) -> None:
    modes = read_core_modes(store, START, START + 60 * S, 6, [0, 7])
    assert np.isnan(modes.worst["user"]).tolist() == [[False] * 4 + [True, False]] * 2


def test_a_tick_fills_all_columns_that_it_speaks_for(store: Store) -> None:
    modes = read_core_modes(store, START, START + 40 * S, 400, [7])
    assert not np.isnan(modes.worst["system"]).any()
    assert np.flatnonzero(modes.worst["system"][0] == 1.0).tolist() == list(range(330, 340))


def test_cores_that_were_not_asked_for_are_left_out(store: Store) -> None:
    assert np.nanmax(read_core_modes(store, START, START + 60 * S, 6, [0]).worst["system"]) < 0.2
