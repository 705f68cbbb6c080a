"""A row of `core_minutes` tells of every tick that touches its minute."""

from necroscope.model.core_shares import MINUTE_NS
from necroscope.model.tables import TABLES
from necroscope.segment.core_minutes import CORE_COLUMNS, CoreMinutes

S = 1_000_000_000
START = 30_000_000 * MINUTE_NS
COLUMNS = [column.name for column in TABLES["core_minutes"].columns]


def tick(at_ns: int, cpu: int = 0, elapsed_ns: int = S, **modes_ns: int) -> tuple[int, ...]:
    return (
        at_ns,
        cpu,
        elapsed_ns,
        *(modes_ns.get(name.removesuffix("_ns"), 0) for name in CORE_COLUMNS[3:]),
    )


def minutes_of(
    ticks: list[tuple[int, ...]], delays: list[tuple[int, ...]] = ()
) -> list[dict[str, int | None]]:
    minutes = CoreMinutes()
    minutes.add_cores(ticks)
    minutes.add_delays(delays)
    return [dict(zip(COLUMNS, row, strict=True)) for row in minutes.rows()]


def test_means_are_of_the_time_and_the_worst_is_of_one_tick() -> None:
    shares = {"user": S // 4, "nice": S // 8, "guest": S // 8}
    held = [
        tick(START + (second + 1) * S, system=S if second == 40 else 0, **shares)
        for second in range(60)
    ]
    (row,) = minutes_of(held)
    assert (row["time"], row["cpu"], row["ticks"]) == (START, 0, 60)
    assert (row["mean_user"], row["mean_system"], row["mean_idle"]) == (5000, 167, 0)
    assert (row["worst_user"], row["worst_system"], row["worst_busy"]) == (5000, 10_000, 10_000)
    assert row["worst_delay_ns"] is None


def test_a_tick_across_the_edge_is_on_both_sides() -> None:
    first, second = minutes_of([tick(START + MINUTE_NS + S // 2, softirq=S // 2)])
    assert (first["time"], second["time"]) == (START, START + MINUTE_NS)
    assert (first["worst_softirq"], second["worst_softirq"]) == (5000, 5000)


def test_a_tick_that_ends_with_the_minute_is_of_that_minute_only() -> None:
    assert [row["time"] for row in minutes_of([tick(START + MINUTE_NS)])] == [START]


def test_a_pause_of_three_minutes_is_one_tick_of_each() -> None:
    rows = minutes_of([tick(START + 3 * MINUTE_NS, elapsed_ns=3 * MINUTE_NS, steal=MINUTE_NS)])
    assert [(row["ticks"], row["mean_steal"]) for row in rows] == [(1, 3333)] * 3


def test_a_tick_of_days_does_not_make_thousands_of_rows() -> None:
    assert len(minutes_of([tick(START, elapsed_ns=10_000 * MINUTE_NS)])) < 70


def test_a_delay_without_a_tick_has_a_row_of_nulls() -> None:
    (row,) = minutes_of([], [(START + S, 3, 500, 900), (START + 2 * S, 3, 700, 0)])
    assert (
        row["cpu"],
        row["ticks"],
        row["worst_delay_ns"],
        row["mean_user"],
        row["worst_busy"],
    ) == (3, 0, 900, None, None)


def test_rows_are_in_order_whatever_order_ticks_came_in() -> None:
    rows = minutes_of(
        [
            tick(START + MINUTE_NS + S, 1),
            tick(START + S, 1),
            tick(START + S, 0),
            tick(START + MINUTE_NS + S, 0),
        ]
    )
    assert [(row["time"] - START, row["cpu"]) for row in rows] == [
        (0, 0),
        (0, 1),
        (MINUTE_NS, 0),
        (MINUTE_NS, 1),
    ]


def test_more_time_than_elapsed_is_the_whole() -> None:
    (row,) = minutes_of([tick(START + S, user=S + S // 100, idle=-5)])
    assert (row["worst_user"], row["mean_user"], row["mean_idle"]) == (10_000, 10_000, 0)
