"""The worst of the last minute, fed tick by tick."""

import numpy as np

from necroscope.views.prometheus.worst import Worst

NS = 1_000_000_000


def feed(worst: Worst, *ticks: tuple[int, list[float]]) -> None:
    times = np.array([second * NS for second, values in ticks for _ in values])
    cpus = np.array([cpu for _, values in ticks for cpu in range(len(values))])
    worst.take(times, np.array([value for _, values in ticks for value in values]), cpus)


def test_the_greatest_of_the_minute_and_its_core() -> None:
    worst = Worst()
    feed(worst, (1, [0.1, 0.9]), (2, [0.5, 0.2]), (70, [0.3, 0.1]))
    assert worst.before(71 * NS) == (0.3, 0)
    worst = Worst()
    feed(worst, (1, [0.1, 0.9]), (2, [0.5, 0.2]))
    assert worst.before(3 * NS) == (0.9, 1)
    assert worst.before(61 * NS + 1) == (0.5, 0)
    assert worst.before(200 * NS) is None


def test_it_keeps_a_minute_at_most_though_nobody_asks() -> None:
    worst = Worst()
    for second in range(1000):
        feed(worst, (second, [1 - second / 1000]))
    assert len(worst._noted) <= 61


def test_nothing_fed_is_nothing_known() -> None:
    worst = Worst()
    worst.take(np.array([], np.int64), np.array([]), np.array([], np.int64))
    assert worst.before(NS) is None
