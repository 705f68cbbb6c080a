"""What Prometheus reads."""

import re

from necroscope.fleet.collector.metrics import Metrics, resident_memory_bytes

GAUGES = {"queue_bytes": 1, "queue_requests": 2, "lake_writable": 1, "resident_memory_bytes": 3}
LINE = re.compile(r'[a-z_]+(\{[a-z]+="[^"]+"\})? [0-9.e+-]+')


def test_every_line_is_of_the_text_format() -> None:
    metrics = Metrics()
    metrics.add("rows", 5, "events")
    metrics.observe("commit_seconds", 0.02)
    lines = metrics.text(GAUGES).splitlines()
    assert all(line.startswith(("# HELP ", "# TYPE ")) or LINE.fullmatch(line) for line in lines)
    assert 'necroscope_collector_rows_total{table="events"} 5' in lines
    assert "necroscope_collector_batches_total 0" in lines


def test_buckets_count_all_below_them() -> None:
    metrics = Metrics()
    for value_s in (0.001, 0.005, 0.02, 99.0):
        metrics.observe("commit_seconds", value_s)
    text = metrics.text(GAUGES)
    for bound, count in (("0.005", 2), ("0.01", 2), ("0.025", 3), ("30", 3), ("+Inf", 4)):
        assert f'necroscope_collector_commit_seconds_bucket{{le="{bound}"}} {count}\n' in text
    assert "necroscope_collector_commit_seconds_count 4\n" in text


def test_this_process_has_some_memory() -> None:
    assert resident_memory_bytes() > 1 << 20
