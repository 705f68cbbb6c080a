"""One difference among nodes that are alike in another."""

from itertools import combinations

import numpy as np
import pytest

from necroscope.fleet.cohorts.stratified import chance_given, table_of


def flags(text: str) -> np.ndarray:
    return np.array([sign == "x" for sign in text.replace(" ", "")])


def test_what_is_the_same_as_the_other_says_nothing_beside_it() -> None:
    has, affected = flags("xxxx .... ...."), flags("xxx. .... ....")
    assert chance_given(has, affected, has) == 1.0
    assert chance_given(~has, affected, has) == 1.0


def test_the_chance_is_that_of_all_ways_to_fail_within_the_strata() -> None:
    has, other, affected = flags("xxx...x....."), flags("xxxxxx......"), flags("xx.x..x.....")
    seen = int((has & affected).sum())
    inside, outside = np.flatnonzero(other), np.flatnonzero(~other)
    ways = [
        sum(bool(has[node]) for node in (*first, *second))
        for first in combinations(inside, int(affected[inside].sum()))
        for second in combinations(outside, int(affected[outside].sum()))
    ]
    assert chance_given(has, affected, other) == pytest.approx(
        sum(hits >= seen for hits in ways) / len(ways)
    )


def test_a_proxy_has_nothing_left_and_the_cause_keeps_all() -> None:
    #              zone a              elsewhere
    unit = flags("xxxxxxxxxx.....  xxxxx...............")
    zone = flags("xxxxxxxxxxxxxxx  ....................")
    affected = flags("xxxxxxxxx......  xxxx................")
    assert chance_given(unit, affected, zone) < 1e-5
    assert chance_given(zone, affected, unit) > 0.3


def test_a_table_counts_every_node_once() -> None:
    table = table_of(flags("xxx.."), flags("xx..x"))
    assert (table.affected_with, table.well_with, table.affected_without, table.well_without) == (
        2,
        1,
        1,
        1,
    )
