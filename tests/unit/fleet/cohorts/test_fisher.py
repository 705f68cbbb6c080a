"""Fisher's test against counting by hand."""

from math import comb

import numpy as np
import pytest

from necroscope.fleet.cohorts.fisher import false_discovery, fisher_greater


def by_counting(affected_with: int, with_it: int, affected: int, nodes: int) -> float:
    """Exact whole numbers, all ways to draw."""
    ways = sum(
        comb(affected, hits) * comb(nodes - affected, with_it - hits)
        for hits in range(affected_with, min(with_it, affected) + 1)
    )
    return ways / comb(nodes, with_it)


@pytest.mark.parametrize("nodes", [1, 2, 7, 60, 200])
def test_every_table_has_the_chance_that_counting_gives(nodes: int) -> None:
    rng = np.random.default_rng(nodes)
    for affected in {0, 1, nodes // 3, nodes}:
        with_it = rng.integers(0, nodes + 1, 40)
        low, high = np.maximum(0, affected + with_it - nodes), np.minimum(affected, with_it)
        affected_with = rng.integers(low, high + 1)
        expected = [
            by_counting(a, n, affected, nodes)
            for a, n in zip(affected_with.tolist(), with_it.tolist(), strict=True)
        ]
        assert fisher_greater(affected_with, with_it, affected, nodes) == pytest.approx(
            expected, rel=1e-9
        )


def test_a_tiny_chance_keeps_its_digits() -> None:
    found = fisher_greater(np.array([60]), np.array([60]), 60, 400)[0]
    assert found == pytest.approx(1 / comb(400, 60), rel=1e-6)


def test_ten_thousand_nodes_are_no_trouble() -> None:
    found = fisher_greater(np.array([900, 300]), np.array([3000, 3000]), 1000, 10_000)
    assert found[0] < 1e-250
    assert 0.4 < found[1] < 0.6


# Benjamini and Hochberg 1995, section 3: four of these fifteen are discoveries at 0.05.
PUBLISHED = [
    0.0001,
    0.0004,
    0.0019,
    0.0095,
    0.0201,
    0.0278,
    0.0298,
    0.0344,
    0.0459,
    0.3240,
    0.4262,
    0.5719,
    0.6528,
    0.7590,
    1.0,
]


def test_the_published_example_has_four_discoveries() -> None:
    shuffled = np.random.default_rng(0).permutation(PUBLISHED)
    assert sorted(shuffled[false_discovery(shuffled) <= 0.05].tolist()) == PUBLISHED[:4]


def test_a_louder_test_never_gets_a_larger_rate() -> None:
    found = false_discovery(np.array([0.01, 0.02, 0.021]))
    assert found == pytest.approx([0.021, 0.021, 0.021])


def test_nothing_asked_is_nothing_found() -> None:
    assert false_discovery(np.zeros(0)).size == 0
