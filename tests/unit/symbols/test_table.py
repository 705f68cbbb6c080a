import numpy as np

from necroscope.symbols.table import SymbolTable


def table(*symbols: tuple[int, int, int, int]) -> SymbolTable:
    """Symbols as (start, size, name, rank), with no limit."""
    starts, sizes, names, ranks = zip(*symbols, strict=True)
    limits = np.full(len(starts), 1000, np.uint64)
    return SymbolTable(
        np.array(starts, np.uint64), np.array(sizes, np.uint64), limits, np.array(names, np.uint32), np.array(ranks, np.uint8)
    )


def test_symbol_covers_its_size_and_no_more() -> None:
    assert table((10, 5, 1, 0), (100, 5, 2, 0)).find([9, 10, 14, 15, 104, 105]) == [None, 1, 1, None, 2, None]


def test_symbol_of_size_0_reaches_to_the_next_one() -> None:
    assert table((10, 0, 1, 0), (100, 5, 2, 0)).find([10, 99, 100]) == [1, 1, 2]


def test_last_symbol_of_size_0_ends_at_its_limit() -> None:
    assert table((10, 0, 1, 0)).find([999, 1000]) == [1, None]


def test_inner_symbol_wins_and_the_outer_one_goes_on_after_it() -> None:
    assert table((10, 90, 1, 0), (20, 10, 2, 0)).find([15, 25, 50]) == [1, 2, 1]


def test_of_one_start_the_lowest_rank_is_shown() -> None:
    assert table((10, 5, 1, 3), (10, 5, 2, 1), (10, 5, 3, 2)).find([12]) == [2]


def test_numbers_that_are_no_address_are_unknown() -> None:
    assert table((10, 5, 1, 0)).find([-1, 1 << 64, (1 << 64) - 1]) == [None, None, None]


def test_table_without_symbols_knows_nothing() -> None:
    empty = np.zeros(0, np.uint64)
    symbols = SymbolTable(empty, empty, empty, empty.astype(np.uint32), empty.astype(np.uint8))
    assert symbols.find([5]) == [None]
