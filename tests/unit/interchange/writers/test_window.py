"""The columns that writers work on: in order of time, with a stack for every sample."""

from types import SimpleNamespace
from typing import Any

from necroscope.interchange.writers.window import WindowFacts, columns_of


def test_samples_out_of_order_are_put_in_order(tables: Any) -> None:
    shuffled = SimpleNamespace(
        samples=tables.samples.take([3, 0, 5, 1, 4, 2]), stacks=tables.stacks, frames=tables.frames
    )
    assert columns_of(shuffled).time_ns.tolist() == columns_of(tables).time_ns.tolist()
    assert columns_of(shuffled).stack.tolist() == columns_of(tables).stack.tolist()


def test_a_stack_that_is_in_no_table_is_lost(tables: Any) -> None:
    torn = SimpleNamespace(
        samples=tables.samples, stacks=tables.stacks.slice(0, 2), frames=tables.frames
    )
    columns = columns_of(torn)
    paths = dict(columns.paths())
    assert [columns.frames[paths[stack][0]].name for stack in columns.stack.tolist()].count(
        "[stack lost]"
    ) == 5


def test_the_period_is_measured_where_it_is_not_given(tables: Any, facts: Any) -> None:
    unknown = WindowFacts(facts.node, facts.from_ns, facts.to_ns)
    assert columns_of(tables).period_ns(facts) == 10_000_000
    assert columns_of(tables).period_ns(unknown) == 10_000_000


def test_no_samples_are_no_error(tables: Any, facts: Any) -> None:
    empty = columns_of(
        SimpleNamespace(
            samples=tables.samples.slice(0, 0), stacks=tables.stacks, frames=tables.frames
        )
    )
    assert len(empty.time_ns) == 0
    assert empty.period_ns(WindowFacts("n", 0, 1)) > 0
