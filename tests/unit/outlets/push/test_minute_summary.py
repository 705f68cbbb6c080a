"""Minutes of cores: means over the time that was recorded, and the worst tick."""

from pathlib import Path

from tests.written_recording import (
    MINUTE_NS,
    NS,
    START_NS,
    WrittenSegment,
    at,
    new_recording,
    row,
    tick,
)

from necroscope.outlets.push.minute_summary import core_minutes
from necroscope.store.query import Store


def test_means_and_worst_ticks_of_each_minute_and_core(tmp_path: Path) -> None:
    recording = new_recording(tmp_path / "recording")
    segment = WrittenSegment(recording, 0).ticks(0, 60, cpus=1, user=0.25)
    segment.add("cores", tick(61, system=1.0), tick(62, system=0.5, softirq=0.25, steal=0.125))
    segment.add(
        "softirq_delay",
        row("softirq_delay", 10, worst_ns=7, pending_ns=3),
        row("softirq_delay", 20, pending_ns=9),
    )
    found = core_minutes(Store.open(recording), START_NS, at(120))
    assert found["time"] == [START_NS, START_NS + MINUTE_NS]
    assert found["ticks"] == [60, 2]
    assert found["user"] == [0.25, 0.0]
    assert found["system"] == [0.0, 0.75]
    assert found["idle"] == [0.75, 0.0625]
    assert found["worst_busy"] == [0.25, 1.0]
    assert found["worst_system"] == [0.0, 1.0]
    assert found["worst_softirq"] == [0.0, 0.25]
    assert found["worst_steal"] == [0.0, 0.125]
    assert found["worst_delay_ns"] == [9, None]


def test_a_tick_belongs_to_the_minute_it_ends(tmp_path: Path) -> None:
    recording = new_recording(tmp_path / "recording")
    WrittenSegment(recording, 0).ticks(0, 120, cpus=1)
    store = Store.open(recording)
    first, second = core_minutes(store, START_NS, at(60)), core_minutes(store, at(60), at(120))
    assert (first["ticks"], second["ticks"]) == ([60], [60])
    assert first["time"] + second["time"] == [START_NS, at(60)]


def test_a_long_tick_counts_by_its_time(tmp_path: Path) -> None:
    recording = new_recording(tmp_path / "recording")
    long = row("cores", 10, elapsed_ns=9 * NS, system_ns=9 * NS)
    WrittenSegment(recording, 0).add("cores", long, tick(11))
    assert core_minutes(Store.open(recording), START_NS, at(60))["system"] == [0.9]


def test_nothing_recorded_is_no_row(tmp_path: Path) -> None:
    recording = new_recording(tmp_path / "recording")
    WrittenSegment(recording, 0)
    assert core_minutes(Store.open(recording), START_NS, at(60)) == {}
