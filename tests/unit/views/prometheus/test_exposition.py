"""The text format: what Prometheus reads, what hostile names do to it, and where it is bounded."""

import math
import subprocess
from threading import Thread

import pytest
from tests.programs import needs_promtool, program

from necroscope.views.prometheus.exposition import (
    Counter,
    Gauge,
    Histogram,
    Metric,
    exposition,
    number,
)

HOSTILE = 'a"b\\c\nd{}\x1b[31m\udcff'


def text(*metrics: Metric) -> list[str]:
    return [line for line in exposition(metrics).splitlines() if not line.startswith("#")]


def test_a_counter_adds_up_by_label() -> None:
    resets = Counter("resets_total", "Resets.", ("zone", "device"))
    resets.add(1, "a", "eth0")
    resets.add(2, "a", "eth0")
    resets.add(0.5, "b", "eth0")
    assert exposition([resets]) == (
        "# HELP resets_total Resets.\n# TYPE resets_total counter\n"
        'resets_total{zone="a",device="eth0"} 3\nresets_total{zone="b",device="eth0"} 0.5\n'
    )


def test_a_counter_without_labels_begins_at_zero_and_one_with_labels_has_none_until_it_counts() -> (
    None
):
    assert text(Counter("a_total", "A."), Counter("b_total", "B.", ("kind",))) == ["a_total 0"]


def test_a_counter_never_shrinks() -> None:
    with pytest.raises(ValueError, match="cannot shrink"):
        Counter("a_total", "A.").add(-1)


def test_what_is_not_known_has_no_line() -> None:
    gauge = Gauge("age_seconds", "Age.", ("what",))
    gauge.set(3, "a")
    gauge.set(4, "b")
    gauge.set(None, "a")
    assert text(gauge) == ['age_seconds{what="b"} 4']
    gauge.clear()
    assert text(gauge) == []


def test_names_from_the_machine_cannot_break_out_of_their_label() -> None:
    counter = Counter("a_total", "A help with \\ and\na second line.", ("comm",))
    counter.add(1, HOSTILE)
    counter.add(1, "x" * 10_000)
    lines = exposition([counter]).splitlines()
    assert lines[0] == "# HELP a_total A help with \\\\ and\\na second line."
    assert lines[2] == 'a_total{comm="a\\"b\\\\c\\\\x0ad{}\\\\x1b[31m\\\\udcff"} 1'
    assert len(lines) == 4
    assert len(lines[3]) < 200
    exposition([counter]).encode()


def test_label_sets_beyond_the_limit_are_added_up_as_other() -> None:
    counter = Counter("a_total", "A.", ("kind",), limit=3)
    histogram = Histogram("b_seconds", "B.", (1,), ("kind",), limit=1)
    for index in range(10):
        counter.add(1, f"kind{index}")
        histogram.observe(0.5, f"kind{index}")
    assert text(counter) == [
        *(f'a_total{{kind="kind{index}"}} 1' for index in range(3)),
        'a_total{kind="other"} 7',
    ]
    assert 'b_seconds_count{kind="other"} 9' in text(histogram)


def test_of_gauges_beyond_the_limit_the_greatest_is_shown() -> None:
    gauge = Gauge("worst_seconds", "Worst.", ("kind",), limit=1)
    for kind, value in (("a", 9), ("b", 2), ("c", 5), ("d", 1)):
        gauge.set(value, kind)
    assert text(gauge) == ['worst_seconds{kind="a"} 9', 'worst_seconds{kind="other"} 5']


def test_a_histogram_is_cumulative_and_its_bounds_are_inclusive() -> None:
    waits = Histogram("wait_seconds", "Waits.", (0.1, 1))
    for value in (0.05, 0.1, 0.5, 7):
        waits.observe(value)
    assert text(waits) == [
        'wait_seconds_bucket{le="0.1"} 2',
        'wait_seconds_bucket{le="1"} 3',
        'wait_seconds_bucket{le="+Inf"} 4',
        "wait_seconds_sum 7.65",
        "wait_seconds_count 4",
    ]


def test_counts_made_elsewhere_have_no_sum_where_that_is_not_known() -> None:
    waits = Histogram("wait_seconds", "Waits.", (0.1, 1), ("vector",))
    waits.add([3, 2, 1], None, "net_rx")
    waits.add([0, 1, 0], 0.3, "net_rx")
    assert [line for line in text(waits) if "_sum" in line] == []
    assert 'wait_seconds_count{vector="net_rx"} 7' in text(waits)
    with pytest.raises(ValueError, match="3 buckets"):
        waits.add([1, 2], None, "net_rx")


def test_wrong_names_labels_and_bounds_are_refused_where_they_are_written() -> None:
    for name, labels in (("no-metric", ()), ("a", ("le-le",)), ("a", ("__name__",)), ("", ())):
        with pytest.raises(ValueError, match="is not a metric name"):
            Counter(name, "A.", labels)
    with pytest.raises(ValueError, match="do not ascend"):
        Histogram("a", "A.", (1, 1))
    with pytest.raises(ValueError, match="has the labels"):
        Counter("a_total", "A.", ("kind",)).add(1)
    with pytest.raises(ValueError, match="twice: \\['a_total'\\]"):
        exposition([Counter("a_total", "A."), Counter("a_total", "B.")])


def test_numbers_are_written_as_prometheus_parses_them() -> None:
    assert [
        number(value) for value in (0, 3.0, 1e12, 0.25, math.inf, -math.inf, math.nan, 1e300)
    ] == [*("0", "3", "1000000000000", "0.25", "+Inf", "-Inf", "NaN", "1e+300")]


def test_threads_lose_no_count() -> None:
    counter = Counter("a_total", "A.")
    threads = [Thread(target=lambda: [counter.add() for _ in range(2000)]) for _ in range(4)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    assert text(counter) == ["a_total 8000"]


@needs_promtool
def test_promtool_finds_nothing_to_say() -> None:
    counter, gauge = Counter("a_total", "A.", ("comm",)), Gauge("b_ratio", "B.")
    waits = Histogram("wait_seconds", "Waits.", (0.1, 1), ("vector",))
    counter.add(1, HOSTILE)
    gauge.set(0.5)
    waits.add([1, 2, 3], None, "net_rx")
    body = exposition([counter, gauge, waits])
    ran = subprocess.run(
        [str(program("promtool")), "check", "metrics"],
        input=body,
        capture_output=True,
        text=True,
        timeout=30,
    )
    assert (ran.returncode, ran.stdout, ran.stderr) == (0, "", "")
