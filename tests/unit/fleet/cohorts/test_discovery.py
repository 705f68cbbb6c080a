"""False discovery control against the example of its authors."""

import numpy as np
import pytest

from necroscope.fleet.cohorts.discovery import false_discovery

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
