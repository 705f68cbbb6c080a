"""Other cores made small: weights stay what they were, the cores that matter stay as they are."""

from pathlib import Path

import pytest
from tests.drawn_recording import at, draw, folded
from tests.written_recording import WrittenSegment, new_recording, row, tick
from tests.written_recording import at as written_at

from necroscope.store.excerpt import write_excerpt
from necroscope.store.flame import read_flame
from necroscope.store.folded_cores import FoldedCores, TooManySamples
from necroscope.store.query import Store
from necroscope.store.selection import Selection

PICTURE = """
    time:    0.1   0.2   0.3   0.4    1.5   1.6   1.7
    cpu:     0     1     1     1      0     1     2
    comm:    sh    sh    sh    other  sh    sh    sh
    weight:  1     2     1     1      1     1     1
             main  main  main  main   main  main  main
             read  run   run   run    read  run   run
"""


def test_samples_of_other_cores_are_one_row_per_stack_and_second(tmp_path: Path) -> None:
    store = Store.open(draw(tmp_path / "r", PICTURE))
    write_excerpt(store, at(0), at(3), tmp_path / "part", folded=FoldedCores(frozenset({0})))
    rows = Store.open(tmp_path / "part").samples(at(0), at(3)).samples.to_pylist()
    assert [(row["time"] - at(0), row["cpu"], row["comm"], row["weight"]) for row in rows] == [
        (100_000_000, 0, "sh", 1),
        (200_000_000, 1, "sh", 3),
        (400_000_000, 1, "other", 1),
        (1_500_000_000, 0, "sh", 1),
        (1_600_000_000, 1, "sh", 1),
        (1_700_000_000, 2, "sh", 1),
    ]


def test_the_flame_graph_is_the_same(tmp_path: Path) -> None:
    store = Store.open(draw(tmp_path / "r", PICTURE))
    write_excerpt(store, at(0), at(3), tmp_path / "part", folded=FoldedCores(frozenset({0})))
    part = Store.open(tmp_path / "part")
    for cpus in (None, {0}, {1}, {2}):
        selection = Selection.of(cpus=cpus)
        assert folded(read_flame(part, at(0), at(3), selection)) == folded(
            read_flame(store, at(0), at(3), selection)
        )


def test_outside_of_its_window_nothing_is_kept_of_others_not_even_stacks(tmp_path: Path) -> None:
    store = Store.open(draw(tmp_path / "r", PICTURE))
    write_excerpt(
        store, at(0), at(3), tmp_path / "part", folded=FoldedCores(frozenset({0}), (0, 0))
    )
    tables = Store.open(tmp_path / "part").samples(at(0), at(3))
    assert set(tables.samples.column("cpu").to_pylist()) == {0}
    assert "run" not in tables.frames.column("function").to_pylist()


def test_more_samples_than_wanted_are_not_read_to_the_end(tmp_path: Path) -> None:
    store = Store.open(draw(tmp_path / "r", PICTURE))
    with pytest.raises(TooManySamples):
        FoldedCores(frozenset({0}), most_samples=5).samples(store, at(0), at(3))
    assert (
        FoldedCores(frozenset({0}), most_samples=6).samples(store, at(0), at(3)).samples.num_rows
        == 6
    )


def test_counters_of_others_are_kept_within_their_window_and_lose_histograms(
    tmp_path: Path,
) -> None:
    recording = new_recording(tmp_path / "r")
    segment = WrittenSegment(recording, 0)
    segment.add("cores", *(tick(second, cpu) for second in range(10) for cpu in range(2)))
    delays = [
        row("softirq_delay", 5, cpu=cpu, vector="net_rx", worst_ns=7, histogram=[1, 2])
        for cpu in range(2)
    ]
    segment.add("softirq_delay", *delays).add("events", row("events", 1, kind="x"))
    folding = FoldedCores(
        frozenset({0}), None, (written_at(4), written_at(7)), keeps_histograms=False
    )
    write_excerpt(
        Store.open(recording), written_at(0), written_at(10), tmp_path / "part", folded=folding
    )
    part = Store.open(tmp_path / "part")
    cpus = part.rows("cores", written_at(0), written_at(10)).column("cpu").to_pylist()
    assert (cpus.count(0), cpus.count(1)) == (10, 3)
    found = part.rows("softirq_delay", written_at(0), written_at(10)).to_pylist()
    assert [(row["cpu"], row["worst_ns"], row["histogram"]) for row in found] == [
        (0, 7, [1, 2]),
        (1, 7, []),
    ]
    assert part.rows("events", written_at(0), written_at(10)).num_rows == 1
