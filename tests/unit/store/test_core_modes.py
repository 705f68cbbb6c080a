"""Cores by time: the worst tick of a column is seen, what was not recorded has no value."""

from pathlib import Path
from random import Random

import numpy as np
import pytest

from necroscope.model.core_shares import MINUTE_NS
from necroscope.segment.journal import JournalWriter, SegmentHeader
from necroscope.segment.recording import Identity, make_recording, new_segment_path
from necroscope.segment.seal_writer import seal
from necroscope.store.core_modes import read_core_modes
from necroscope.store.query import Store

S = 1_000_000_000
START = 1_776_248_000 * S


@pytest.fixture
def store(tmp_path: Path) -> Store:
    """Cores 0 and 7 for a minute; core 7 is held for one second of it, and nothing was recorded
    from second 40 to 50.
    """
    make_recording(tmp_path / "r", Identity("node-a", "boot-1", "drawn", {}))
    path = new_segment_path(tmp_path / "r", START)
    writer = JournalWriter(path, SegmentHeader(path.name, "node-a", "boot-1", START, 8))
    for second in (second for second in range(60) if not 40 <= second < 50):
        for cpu in (0, 7):
            system = S if cpu == 7 and second == 33 else S // 10
            writer.append(
                "cores", [(START + (second + 1) * S, cpu, S, S // 10, 0, system, 0, 0, 0, 0, 0, 0)]
            )
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


def pictures(store: Store, from_ns: int, to_ns: int, columns: int) -> list[list[list[float]]]:
    modes = read_core_modes(store, from_ns, to_ns, columns, [0, 1, 5])
    return [np.nan_to_num(share, nan=-1).tolist() for share in modes.worst.values()] + [
        modes.delay_ns.tolist()
    ]


@pytest.fixture
def segments(tmp_path: Path) -> list[Path]:
    """Three live segments that begin in the middle of a minute, with odd ticks, a pause of two
    minutes, and a core that goes.
    """
    make_recording(tmp_path / "r", Identity("node-a", "boot-1", "drawn", {}))
    random = Random(7)
    paths = []
    for number in range(3):
        start_ns = MINUTE_NS * 30_000_000 + 17 * S + number * 150 * S + 123_456
        path = new_segment_path(tmp_path / "r", start_ns)
        writer = JournalWriter(
            path, SegmentHeader(path.name.removesuffix(".live"), "node-a", "boot-1", start_ns, 6)
        )
        now_ns = start_ns
        while now_ns < start_ns + 150 * S:
            elapsed_ns = (
                120 * S
                if number == 1 and now_ns == start_ns
                else S + random.randrange(-400_000, 400_000)
            )
            now_ns += elapsed_ns
            for cpu in (0, 1, 5) if number < 2 else (0, 5):
                parts = [random.randrange(20) * 10_000_000 for _ in range(9)]
                writer.append("cores", [(now_ns, cpu, elapsed_ns, *parts)])
                writer.append(
                    "softirq_delay",
                    [(now_ns + 5, cpu, "timer", 1, random.randrange(400_000), parts[0], [1])],
                )
        writer.close()
        paths.append(path)
    return paths


@pytest.mark.parametrize("minutes", [1, 2, 5])
def test_a_picture_from_minutes_is_that_of_their_ticks(segments: list[Path], minutes: int) -> None:
    from_ns, columns = MINUTE_NS * 30_000_000 - 2 * MINUTE_NS, 12
    window = from_ns, from_ns + columns * minutes * MINUTE_NS, columns
    from_ticks = pictures(Store.open(segments[0].parent), *window)
    for path in segments[:2]:  # the last one is live: its ticks are read
        assert seal(path) is not None
    store = Store.open(segments[0].parent)
    reader = store.catalog.reader(store.catalog.segments[0])
    assert reader.tables["core_minutes"] > 0
    assert pictures(store, *window) == from_ticks
    assert len({value for row in from_ticks[0] for value in row}) > 5


def test_minutes_are_read_instead_of_ticks(segments: list[Path], monkeypatch) -> None:
    sealed = [seal(path) for path in segments]
    for path in sealed:
        (path / "cores.parquet").unlink()
    from_ns = MINUTE_NS * 30_000_000
    modes = read_core_modes(Store.open(sealed[0].parent), from_ns, from_ns + 6 * MINUTE_NS, 6, [0])
    assert not np.isnan(modes.worst["busy"]).any()


def test_a_damaged_table_of_minutes_is_made_up_for_by_ticks(segments: list[Path]) -> None:
    window = MINUTE_NS * 30_000_000, MINUTE_NS * 30_000_006, 6
    before = pictures(Store.open(segments[0].parent), *window)
    for path in [seal(path) for path in segments]:
        file = path / "core_minutes.parquet"
        content = bytearray(file.read_bytes())
        content[len(content) // 3] ^= 1
        file.write_bytes(content)
    assert pictures(Store.open(segments[0].parent), *window) == before


def test_columns_that_are_no_whole_minutes_are_read_from_ticks(segments: list[Path]) -> None:
    window = MINUTE_NS * 30_000_000 + 30 * S, MINUTE_NS * 30_000_006 + 30 * S, 6
    before = pictures(Store.open(segments[0].parent), *window)
    for path in segments:
        seal(path)
    assert pictures(Store.open(segments[0].parent), *window) == before
