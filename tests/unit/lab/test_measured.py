"""Questions to the meter's readings, each drawn as the text that the kernel writes."""

import pytest

from necroscope.lab.measured import Delays, Measurements

S = 1_000_000_000
JIFFIES = 100


def stat(user: int, system: int, idle: int) -> str:
    return (
        f"cpu  0 0 0 0 0 0 0 0 0 0\ncpu0 0 0 0 0 0 0 0 0 0 0\ncpu1 {user} 0 {system} {idle} 0 0 0 0"
        f" 0 0\nprocesses {user}\n"
    )


def readings(path: str, *texts: str, every_s: float = 1.0) -> Measurements:
    return Measurements(
        {path: [(int(i * every_s * S), text) for i, text in enumerate(texts)]},
        (0, 2 * S),
        (2 * S, 100 * S),
    )


def test_shares_are_of_elapsed_time_in_the_incident() -> None:
    measured = readings(
        "/proc/stat",
        stat(0, 0, 0),
        stat(0, 0, 100),
        stat(0, 0, 200),
        stat(25, 75, 200),
        stat(50, 150, 200),
    )
    assert measured.shares(1)["system"] == pytest.approx(0.75)
    assert measured.shares(1)["user"] == pytest.approx(0.25)
    assert measured.shares(1, measured.baseline)["idle"] == pytest.approx(1.0)


def test_time_that_no_mode_accounts_for_is_missing_and_not_spread() -> None:
    measured = readings("/proc/stat", *[stat(0, 30 * i, 30 * i) for i in range(6)])
    assert sum(measured.shares(1).values()) == pytest.approx(0.6)


def test_no_reading_is_no_share() -> None:
    assert set(readings("/proc/stat").shares(1).values()) == {0.0}


def test_the_peak_finds_a_second_among_many() -> None:
    system = [0, 0, 0, 0, 95, 100, 100, 100]
    measured = readings("/proc/stat", *[stat(0, busy, 0) for busy in system])
    assert measured.peak_share(1, ("system",), 1.0) == pytest.approx(0.95)
    assert measured.peak_share(1, ("system",), 5.0) == pytest.approx(0.20)
    assert measured.peak_share(1, ("system",), 60.0) == 0.0


def test_growth_and_highest_read_lines_of_key_and_value() -> None:
    texts = [
        f"pgscan_direct {value}\npgscan_direct_throttle 7\nMemFree:  {100 - value} kB\n"
        for value in (0, 1, 5, 9, 30)
    ]
    measured = readings("/proc/vmstat", *texts)
    assert measured.growth("/proc/vmstat", "pgscan_direct") == 25
    assert measured.growth("/proc/vmstat", "pgscan_direct", measured.baseline) == 5
    assert measured.growth("/proc/vmstat", "no_such_key") == 0
    assert measured.highest("/proc/vmstat", "MemFree") == 95


def test_highest_reads_a_file_of_one_number() -> None:
    assert readings("/count", "1\n", "2\n", "3\n", "9\n", "4\n").highest("/count") == 9


def test_cgroups_are_counted_with_the_dead() -> None:
    text = "#subsys_name\thierarchy\tnum_cgroups\tenabled\ncpu\t1\t3\t1\nmemory\t4\t{}\t1\n"
    measured = readings("/proc/cgroups", *[text.format(count) for count in (1, 2, 500, 900, 800)])
    assert measured.tracked_cgroups() == 900
    assert measured.tracked_cgroups("cpu") == 3


def test_a_core_is_found_by_the_heading_where_others_are_off() -> None:
    text = "           CPU0       CPU2\n  TIMER:   5   {}\n NET_RX:   1   {}\n"
    measured = readings("/proc/softirqs", *[text.format(i, 10 * i) for i in range(6)])
    assert measured.softirqs(2, "NET_RX") == 30
    assert measured.softirqs(2, "TIMER") == 3


def test_softnet_rows_carry_their_core() -> None:
    row = "{:08x} {:08x} {:08x} 0 0 0 0 0 0 0 0 0 {:08x} 0 0\n"
    texts = [row.format(i, 0, 0, 0) + row.format(16 * i, 2 * i, i, 1) for i in range(5)]
    assert readings("/proc/net/softnet_stat", *texts).softnet(1) == {
        "processed": 32,
        "dropped": 4,
        "squeezed": 2,
    }


def test_a_freeze_is_when_the_timer_ticks_and_no_softirq_runs() -> None:
    ran = [0, 1, 2, 3, 3, 3, 3, 4, 4, 4, 4, 4, 4]
    ticks = [0, 1, 2, 3, 4, 5, 6, 7, 7, 7, 7, 7, 7]  # at the end the core is idle: neither goes on
    measured = Measurements(
        {
            "/proc/softirqs": [(i * S, f" CPU0\n TIMER: {value}\n") for i, value in enumerate(ran)],
            "/proc/interrupts": [
                (i * S, f" CPU0\n LOC: {value} Local timer\n") for i, value in enumerate(ticks)
            ],
        },
        (0, 0),
        (0, 100 * S),
    )
    assert measured.longest_softirq_freeze_s(0) == 3.0


def test_a_task_ran_and_waited() -> None:
    measured = readings("/proc/7/schedstat", *[f"{i * S} {i * S // 2} 9\n" for i in range(5)])
    assert measured.schedstat(7) == (2.0, 1.0)
    assert measured.schedstat(8) == (0.0, 0.0)


def test_packets_that_never_came_are_lost_and_not_fast() -> None:
    packets = [(3 * S, 1_000_000), (4 * S, None), (5 * S, 9_000_000), (1 * S, 5)]
    measured = Measurements({}, (0, 2 * S), (2 * S, 9 * S), packets)
    assert measured.delays() == Delays(sent=3, lost=1, p99_ms=9.0, max_ms=9.0)
    assert measured.delays(measured.baseline).sent == 1
