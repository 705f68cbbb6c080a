"""Texts that come as dictionaries, as numbers: each text, or pair of texts, is looked at once for
the dictionary it comes with, not once for every row.
"""

from collections.abc import Callable, Iterable
from itertools import product
from typing import Any, Final

import numpy as np
import pyarrow as pa
from numpy.typing import NDArray

Numbers = NDArray[np.int64]
_NEW: Final = -2
_ALL: Final = slice(None)
# That may be numbered ahead. There are few kinds and thousands of names, unless a node makes up
# both.
_MOST_PAIRS: Final = 1 << 22


class TextNumbers:
    """Numbers for what is met, in the order in which it is met."""

    def __init__(self, met: Iterable[Any] = ()) -> None:
        self.numbers: dict[Any, int] = {each: number for number, each in enumerate(met)}

    def of(self, found: Iterable[Any]) -> Numbers:
        numbers = self.numbers
        return np.fromiter((numbers.setdefault(each, len(numbers)) for each in found), np.int64)


class TextPairNumbers:
    """Numbers of pairs of texts. Each pair is numbered once for the dictionaries it comes with,
    which many batches share.
    """

    def __init__(
        self, number: Callable[[list[Any]], Numbers], *, are_all_there: bool = False
    ) -> None:
        """`are_all_there`: every first text goes with every second one, so that all are numbered at
        once.
        """
        self._number = number
        self._are_all_there = are_all_there
        self._texts: tuple[pa.Array, pa.Array] | None = None
        self._number_of = np.zeros(0, np.int64)

    def of(
        self, first: pa.DictionaryArray, second: pa.DictionaryArray, rows: slice | Numbers = _ALL
    ) -> Numbers:
        """Of all rows, or of some."""
        texts = first.dictionary, second.dictionary
        width = len(texts[1])
        code = indices(second)[rows].astype(np.int64)
        if len(texts[0]) > 1:
            code += indices(first)[rows].astype(np.int64) * width
        if len(texts[0]) * width > _MOST_PAIRS:
            pairs, place = np.unique(code, return_inverse=True)
            return self._number(_keys(texts, pairs))[place]
        if self._texts is None or not all(map(is_same, texts, self._texts)):
            self._texts = texts
            self._number_of = np.full(len(texts[0]) * width, _NEW, np.int64)
            if self._are_all_there:
                self._number_of[:] = self._number(
                    list(product(texts[0].to_pylist(), texts[1].to_pylist()))
                )
        found = self._number_of[code]
        if found.min(initial=0) == _NEW:
            new = np.flatnonzero(np.bincount(code[found == _NEW]))
            self._number_of[new] = self._number(_keys(texts, new))
            found = self._number_of[code]
        return found


def _keys(texts: tuple[pa.Array, pa.Array], pairs: Numbers) -> list[Any]:
    first, second = (each.to_pylist() for each in texts)
    return [(first[each // len(second)], second[each % len(second)]) for each in pairs.tolist()]


def is_same(texts: pa.Array, others: pa.Array) -> bool:
    """Batches of one row group share their dictionaries; looking at the memory is enough for
    those.
    """
    return texts is others or (
        len(texts) == len(others)
        and texts.offset == others.offset
        and texts.buffers() == others.buffers()
    )


def indices(column: pa.DictionaryArray) -> NDArray[Any]:
    """-1 where there is none; not copied where there are all."""
    found = column.indices
    return np.asarray((found.fill_null(-1) if found.null_count else found).to_numpy())
