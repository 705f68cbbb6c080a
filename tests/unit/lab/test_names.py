"""Invented names."""

from random import Random

from necroscope.lab.names import LONGEST_COMM, invent


def test_names_fit_into_a_comm_and_differ() -> None:
    random = Random(1)
    names = [invent(random, kind) for kind in ("agent", "app", "tool") for _ in range(200)]
    assert max(map(len, names)) <= LONGEST_COMM
    assert len(set(names)) > 590


def test_the_same_seed_gives_the_same_names() -> None:
    assert invent(Random(7), "app") == invent(Random(7), "app")
