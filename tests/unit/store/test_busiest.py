"""Where to look in a recording without incidents."""

from pathlib import Path

from tests.written_recording import WrittenSegment, at, new_recording, tick

from necroscope.store.busiest import busiest_stretch
from necroscope.store.query import Store

NS = 1_000_000_000


def busiest(directory: Path, *ticks: tuple[object, ...], seal: bool = False):
    recording = new_recording(directory)
    segment = WrittenSegment(recording, 0).add("cores", *ticks)
    segment.seal() if seal else segment.leave()
    return busiest_stretch(Store.open(recording))


def test_a_core_in_the_kernel_is_named_before_one_in_user_mode(tmp_path: Path) -> None:
    quiet = [tick(second, cpu, user=0.1) for second in range(1, 60) for cpu in (0, 1)]
    hot = [tick(second, 1, system=0.7) for second in range(21, 30)]
    user = [tick(second, 0, user=1.0) for second in range(40, 50)]
    rows = {(row[0], row[1]): row for row in [*quiet, *hot, *user]}
    found = busiest(tmp_path / "r", *sorted(rows.values()))
    assert (found.cpu, found.mode, round(found.share, 2)) == (1, "system", 0.7)
    assert found.from_ns <= at(21)
    assert at(29) <= found.to_ns <= at(36)


def test_a_node_that_does_nothing_has_none(tmp_path: Path) -> None:
    ticks = [tick(second, cpu, user=0.05) for second in range(1, 30) for cpu in (0, 1)]
    assert busiest(tmp_path / "r", *ticks) is None


def test_a_long_recording_is_read_by_its_minutes(tmp_path: Path) -> None:
    ticks = [
        tick(second, 0, system=0.9 if 5_000 <= second < 5_030 else 0.05)
        for second in range(10, 9_000, 10)
    ]
    found = busiest(tmp_path / "r", *ticks, seal=True)
    assert found.mode == "system"
    assert found.from_ns <= at(5_000) < found.to_ns
    assert found.to_ns - found.from_ns <= 180 * NS
