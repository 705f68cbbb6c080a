"""The sequential test of two variants: it stops when it knows, and seldom when there is nothing."""

import random

from necroscope.stakeout.comparison import compare


def test_eight_pairs_of_one_kind_decide_and_seven_do_not() -> None:
    assert compare([(True, False)] * 7).better is None
    answer = compare([(True, False)] * 8)
    assert answer.better == "a"
    assert answer.words == "A goes well more often than B"
    assert compare([(False, True)] * 8).better == "b"


def test_pairs_that_end_alike_say_nothing() -> None:
    alike = [(True, True)] * 50 + [(False, False)] * 50
    assert compare(alike).evidence == 1.0
    assert compare(alike + [(True, False)] * 8).better == "a"


def test_looking_after_every_pair_does_not_find_what_is_not_there() -> None:
    """Of a thousand experiments with variants that are alike, each looked at 200 times."""
    lot = random.Random(1)
    wrong = 0
    for _ in range(1000):
        pairs: list[tuple[bool, bool]] = []
        for _ in range(200):
            pair = lot.random() < 0.5
            pairs.append((pair, not pair))
        counts = [0, 0]
        for a, _ in pairs:
            counts[a] += 1
            answer = compare([(True, False)] * counts[1] + [(False, True)] * counts[0])
            if answer.better is not None:
                wrong += 1
                break
    assert wrong <= 50


def test_a_real_difference_is_found() -> None:
    lot = random.Random(2)
    pairs = [(lot.random() < 0.95, lot.random() < 0.6) for _ in range(80)]
    answer = compare(pairs).as_json()
    assert answer["better"] == "a"
    assert answer["a"]["interval"][0] > answer["b"]["interval"][1]
