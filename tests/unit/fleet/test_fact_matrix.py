"""Facts as they stood at a moment of each node."""

import tracemalloc
from pathlib import Path

import numpy as np
import pyarrow as pa
import pyarrow.parquet as pq
import pytest
from tests.fleet_lakes import CLUSTER, DrawnLake, moment

from necroscope.fleet.cohorts.columns import FactMatrix
from necroscope.fleet.fact_matrix import read_fact_matrix, with_clusters, without_facts
from necroscope.fleet.lake_tables import LAKE_TABLES

A, B = (CLUSTER, "a"), (CLUSTER, "b")


def values(matrix: FactMatrix, fact: tuple[str, str]) -> list[str | None]:
    return [matrix.values[pair] for pair in matrix.pair[matrix.facts.index(fact)].tolist()]


def test_the_last_value_before_the_moment_counts_whatever_the_order_of_the_files(
    tmp_path: Path,
) -> None:
    drawn = DrawnLake(tmp_path)
    for day, value in ((3, "third"), (1, "first"), (2, "second")):
        drawn.fact("a", "sysctl", "x", value, day)
        drawn.fact("b", "sysctl", "x", value, day)
        drawn.write(f"w{day}")
    matrix = read_fact_matrix(drawn.lake, {A: moment(2.5), B: moment(9)})
    assert values(matrix, ("sysctl", "x")) == ["second", "third"]


def test_several_changes_in_one_file_leave_the_last(tmp_path: Path) -> None:
    drawn = DrawnLake(tmp_path)
    for hour, value in enumerate(("0", "1", "0", "2")):
        drawn.fact("a", "sysctl", "x", value, 1 + hour / 24)
    drawn.write()
    assert values(read_fact_matrix(drawn.lake, {A: moment(9)}), ("sysctl", "x")) == ["2"]


def test_a_fact_that_is_gone_is_not_there(tmp_path: Path) -> None:
    drawn = DrawnLake(tmp_path)
    drawn.fact("a", "module", "zfs", "loaded", 1)
    drawn.fact("a", "module", "zfs", None, 2)
    drawn.fact("b", "module", "zfs", "loaded", 1)
    drawn.write()
    assert values(
        read_fact_matrix(drawn.lake, {A: moment(9), B: moment(9)}), ("module", "zfs")
    ) == [None, "loaded"]


def test_a_fact_that_was_gone_at_first_stays_gone_when_older_rows_come_later(
    tmp_path: Path,
) -> None:
    drawn = DrawnLake(tmp_path)
    drawn.fact("a", "module", "zfs", None, 2)
    drawn.fact("a", "module", "xfs", "loaded", 2)
    drawn.write("w1")
    drawn.fact("a", "module", "zfs", "loaded", 1)
    drawn.fact("a", "module", "ext4", "loaded", 1)
    # Written later into an earlier day: it is read first. And once more into the same day.
    drawn.write("w2")
    drawn.fact("a", "module", "zfs", "loaded", 1.9999)
    drawn.fact("a", "module", "xfs", "older", 1.9999)
    drawn.write("w3")
    matrix = read_fact_matrix(drawn.lake, {A: moment(9)})
    assert [values(matrix, ("module", name)) for name in ("zfs", "xfs", "ext4")] == [
        [None],
        ["loaded"],
        ["loaded"],
    ]


def test_rows_in_any_order_come_to_the_newest_values(tmp_path: Path) -> None:
    """Changes by lot, in files by lot, against a plain reckoning."""
    rng = np.random.default_rng(5)
    drawn, truth = DrawnLake(tmp_path), {}
    for number in range(600):
        node, fact, value = (
            f"n{rng.integers(5)}",
            f"f{rng.integers(8)}",
            str(rng.integers(3)) if rng.random() < 0.8 else None,
        )
        # Two days, seconds apart.
        day = float(rng.integers(2) + rng.permutation(600)[0] / 86400)
        drawn.fact(node, "sysctl", fact, value, day)
        if day > truth.get((node, fact), (-1, None))[0]:
            truth[node, fact] = (day, value)
        if number % 50 == 49:
            drawn.write(f"w{number}")
    matrix = read_fact_matrix(drawn.lake, {(CLUSTER, f"n{node}"): moment(9) for node in range(5)})
    for fact in range(8):
        expected = [truth.get((f"n{node}", f"f{fact}"), (0, None))[1] for node in range(5)]
        assert values(matrix, ("sysctl", f"f{fact}")) == expected


def test_a_file_that_nobody_sorted_is_read_right(tmp_path: Path) -> None:
    rows = [("a", 3, "z"), ("b", 1, "x"), ("a", 1, "x"), ("b", 2, "y"), ("a", 2, "y")]
    schema = LAKE_TABLES["facts"]
    table = pa.table(
        [
            [CLUSTER] * 5,
            [row[0] for row in rows],
            [moment(row[1]) for row in rows],
            ["sysctl"] * 5,
            ["x"] * 5,
            [row[2] for row in rows],
        ],
        schema=schema,
    )
    place = tmp_path / f"tables/facts/date=2026-04-02/cluster={CLUSTER}"
    place.mkdir(parents=True)
    pq.write_table(table, place / "foreign.parquet")
    found = read_fact_matrix(DrawnLake(tmp_path).lake, {A: moment(9), B: moment(9)})
    assert values(found, ("sysctl", "x")) == ["z", "y"]


def test_many_nodes_and_facts_come_out_as_they_went_in(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """In batches of a few rows, so that facts and nodes go on appearing."""
    monkeypatch.setattr("necroscope.fleet.fact_matrix._BATCH_ROWS", 7)
    rng = np.random.default_rng(1)
    drawn, truth = DrawnLake(tmp_path), {}
    for node in range(40):
        for fact in range(30):
            if rng.random() < 0.8:
                truth[f"n{node}", f"f{fact}"] = str(rng.integers(4))
                drawn.fact(
                    f"n{node}",
                    f"kind{fact % 3}",
                    f"f{fact}",
                    truth[f"n{node}", f"f{fact}"],
                    day=node // 20,
                )
    drawn.write()
    moments = {(CLUSTER, f"n{node}"): moment(9) for node in range(40)}
    matrix = read_fact_matrix(drawn.lake, moments)
    for fact in range(30):
        assert values(matrix, (f"kind{fact % 3}", f"f{fact}")) == [
            truth.get((f"n{node}", f"f{fact}")) for node in range(40)
        ]


def test_nodes_and_facts_that_are_not_asked_for_are_passed_over(tmp_path: Path) -> None:
    drawn = DrawnLake(tmp_path)
    for node in "abc":
        drawn.fact(node, "label", "zone", node)
        drawn.fact(node, "sysctl", "x", node)
    drawn.write()
    matrix = read_fact_matrix(
        drawn.lake, {B: moment(9), A: moment(9)}, is_wanted=lambda fact: fact[0] == "label"
    )
    assert matrix.facts == [("label", "zone")]
    assert values(matrix, ("label", "zone")) == ["b", "a"]


def test_clusters_become_a_label_where_there_are_several() -> None:
    empty = FactMatrix(["x", "y"], [], np.zeros((0, 2), np.int32), np.zeros(0, np.int32), [])
    assert with_clusters(empty, [A, B]) is empty
    assert values(with_clusters(empty, [("eu", "x"), ("us", "y")]), ("label", "cluster")) == [
        "eu",
        "us",
    ]


def test_a_node_of_which_nothing_is_known_is_reported(tmp_path: Path) -> None:
    drawn = DrawnLake(tmp_path)
    drawn.fact("a", "sysctl", "x", "1", day=5)
    drawn.write()
    assert without_facts(read_fact_matrix(drawn.lake, {A: moment(9), B: moment(9)})).tolist() == [
        False,
        True,
    ]
    assert without_facts(read_fact_matrix(drawn.lake, {A: moment(4), B: moment(9)})).tolist() == [
        True,
        True,
    ]
    assert without_facts(read_fact_matrix(drawn.lake, {})).tolist() == []


def test_kinds_and_names_that_a_node_makes_up_cost_their_rows_and_not_their_product(
    tmp_path: Path,
) -> None:
    drawn = DrawnLake(tmp_path)
    for number in range(4000):
        drawn.fact("a", f"kind{number}", f"name{number}", str(number), 1)
    drawn.fact("a", "sysctl", "x", "1", 1)
    drawn.write()
    tracemalloc.start()
    matrix = read_fact_matrix(
        drawn.lake, {A: moment(9)}, is_wanted=lambda fact: fact[0] in ("sysctl", "kind17")
    )
    _, peak_bytes = tracemalloc.get_traced_memory()
    tracemalloc.stop()
    assert sorted(matrix.facts) == [("kind17", "name17"), ("sysctl", "x")]
    assert (values(matrix, ("kind17", "name17")), values(matrix, ("sysctl", "x"))) == (
        ["17"],
        ["1"],
    )
    assert peak_bytes < 32 << 20
