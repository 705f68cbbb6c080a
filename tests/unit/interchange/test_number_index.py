"""The hash table of numpy arrays against a dict."""

import numpy as np
from hypothesis import given
from hypothesis import strategies as st

from necroscope.interchange.number_index import UNKNOWN, NumberIndex

KEYS = st.lists(st.integers(0, (1 << 64) - 1) | st.integers(0, 50), unique=True, max_size=200)


@given(st.lists(KEYS, max_size=5), KEYS)
def test_finds_what_a_dict_finds(parts: list[list[int]], others: list[int]) -> None:
    index, known = NumberIndex(), {}
    for part in parts:
        new = [key for key in part if key not in known]
        numbers = range(len(known), len(known) + len(new))
        known.update(zip(new, numbers, strict=True))
        index.add(np.array(new, np.uint64), np.array(numbers, np.int32))
    asked = [*known, *others, 0]
    assert index.find(np.array(asked, np.uint64)).tolist() == [known.get(key, UNKNOWN) for key in asked]
    assert len(index) == len(known)


def test_keys_that_want_the_same_place_are_all_found_after_it_grew() -> None:
    keys = np.arange(100_000, dtype=np.uint64) << np.uint64(40)
    index = NumberIndex()
    for part in np.array_split(np.arange(len(keys)), 7):
        index.add(keys[part], part.astype(np.int32))
    assert (index.find(keys) == np.arange(len(keys))).all()
    assert (index.find(keys + np.uint64(1)) == UNKNOWN).all()


def test_cleared_it_knows_nothing() -> None:
    index = NumberIndex()
    index.add(np.array([7], np.uint64), np.array([3], np.int32))
    index.clear()
    assert index.find(np.array([7], np.uint64)).tolist() == [UNKNOWN]
    assert len(index) == 0
