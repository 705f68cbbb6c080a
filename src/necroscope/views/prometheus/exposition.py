"""The Prometheus text format 0.0.4: counters, gauges and histograms with bounded, escaped labels,
written as one text.

https://github.com/prometheus/docs/blob/main/docs/instrumenting/exposition_formats.md A metric keeps
at most `limit` label sets; what comes beyond is added up under the label value `other`, so that a
hostile or careless source of names costs no memory here and no series in Prometheus. A value that
is not known has no line: never 0.
"""

import math
import re
from abc import ABC, abstractmethod
from bisect import bisect_left
from collections.abc import Iterable, Iterator, Sequence
from threading import Lock
from typing import Final

from necroscope.model.names import clean

CONTENT_TYPE: Final = "text/plain; version=0.0.4; charset=utf-8"
OTHER: Final = "other"
LABEL_SETS: Final = 100
LABEL_LENGTH: Final = 128

_METRIC_NAME: Final = re.compile(r"[a-zA-Z_:][a-zA-Z0-9_:]*")
_LABEL_NAME: Final = re.compile(r"(?!__)[a-zA-Z_][a-zA-Z0-9_]*")
_LABEL_ESCAPES: Final = str.maketrans({"\\": r"\\", '"': r"\"", "\n": r"\n"})
_HELP_ESCAPES: Final = str.maketrans({"\\": r"\\", "\n": r"\n"})

Labels = tuple[str, ...]


class Metric(ABC):
    """One family of series: its name, its help, its label names and a bounded set of label values.
    Safe to use from threads.
    """

    kind = "untyped"

    def __init__(
        self, name: str, description: str, labels: Sequence[str] = (), limit: int = LABEL_SETS
    ) -> None:
        if not _METRIC_NAME.fullmatch(name) or not all(map(_LABEL_NAME.fullmatch, labels)):
            raise ValueError(f"{name}{list(labels)} is not a metric name with labels")
        self.name = name
        self.description = description
        self.labels = tuple(labels)
        self.limit = limit
        self._lock = Lock()

    def lines(self) -> Iterator[str]:
        """HELP and TYPE, then the samples."""
        yield f"# HELP {self.name} {self.description.translate(_HELP_ESCAPES)}"
        yield f"# TYPE {self.name} {self.kind}"
        yield from self._samples()

    @abstractmethod
    def _samples(self) -> Iterator[str]:
        """The lines below HELP and TYPE."""

    def _key(
        self, values: Sequence[str], known: dict[Labels, float] | dict[Labels, list[float]]
    ) -> Labels:
        """The label set to count under: its own, or `other` where the metric is full."""
        if len(values) != len(self.labels):
            raise ValueError(f"{self.name} has the labels {list(self.labels)}, not {len(values)}")
        key = tuple(clean(value, LABEL_LENGTH) for value in values)
        return key if key in known or len(known) < self.limit else (OTHER,) * len(self.labels)

    def _line(self, suffix: str, values: Labels, value: float, bound: str | None = None) -> str:
        pairs = [
            f'{name}="{text.translate(_LABEL_ESCAPES)}"'
            for name, text in zip(self.labels, values, strict=True)
        ]
        if bound is not None:
            pairs.append(f'le="{bound}"')
        return (
            f"{self.name}{suffix}{{{','.join(pairs)}}} {number(value)}"
            if pairs
            else f"{self.name}{suffix} {number(value)}"
        )


class _Figures(Metric):
    """One number for each label set."""

    def __init__(
        self, name: str, description: str, labels: Sequence[str] = (), limit: int = LABEL_SETS
    ) -> None:
        super().__init__(name, description, labels, limit)
        is_counted = self.kind == "counter" and not labels
        self._values: dict[Labels, float] = {(): 0} if is_counted else {}

    def _samples(self) -> Iterator[str]:
        with self._lock:
            values = sorted(self._values.items())
        return (self._line("", key, value) for key, value in values)


class Counter(_Figures):
    """Only grows. Its name ends in `_total`."""

    kind = "counter"

    def add(self, amount: float = 1, *values: str) -> None:
        """`requests.add(1, "eu-1", "push")`: label values in the order of the label names."""
        if amount < 0:
            raise ValueError(f"{self.name} cannot shrink by {amount}")
        with self._lock:
            key = self._key(values, self._values)
            self._values[key] = self._values.get(key, 0) + amount

    def value(self, *values: str) -> float:
        """What was counted so far under these label values."""
        with self._lock:
            return self._values.get(self._key(values, self._values), 0)


class Gauge(_Figures):
    """A figure of now. Of the label sets beyond the limit the greatest value is shown: our gauges
    say how bad it is.
    """

    kind = "gauge"

    def set(self, value: float | None, *values: str) -> None:
        """None takes the series away: what is not known has no line."""
        with self._lock:
            key = self._key(values, self._values)
            if value is None:
                self._values.pop(key, None)
            elif key == (OTHER,) * len(self.labels) and key in self._values and self.labels:
                self._values[key] = max(value, self._values[key])
            else:
                self._values[key] = value

    def clear(self) -> None:
        """Before all label sets are set again: those that are gone have no line."""
        with self._lock:
            self._values.clear()


class Histogram(Metric):
    """Observations by upper bound, in ascending order, without the infinite one. Has no `_sum`
    where that is not known.
    """

    kind = "histogram"

    def __init__(
        self,
        name: str,
        description: str,
        bounds: Sequence[float],
        labels: Sequence[str] = (),
        limit: int = LABEL_SETS,
    ) -> None:
        super().__init__(name, description, labels, limit)
        if list(bounds) != sorted(set(bounds)) or not bounds or not math.isfinite(bounds[-1]):
            raise ValueError(f"the bounds of {name} do not ascend")
        self.bounds = tuple(bounds)
        # Of each label set: the count of each bucket, the infinite one, then the sum; NaN once a
        # part of it is not known.
        self._values: dict[Labels, list[float]] = {} if labels else {(): self._empty()}

    def observe(self, value: float, *values: str) -> None:
        counts = [0.0] * (len(self.bounds) + 1)
        counts[bisect_left(self.bounds, value)] = 1
        self.add(counts, value, *values)

    def add(self, counts: Sequence[float], total: float | None, *values: str) -> None:
        """Observations counted elsewhere: of each bucket, not cumulative, the infinite one last;
        and their sum, if known.
        """
        if len(counts) != len(self.bounds) + 1:
            raise ValueError(f"{self.name} has {len(self.bounds) + 1} buckets, not {len(counts)}")
        with self._lock:
            state = self._values.setdefault(self._key(values, self._values), self._empty())
            for index, amount in enumerate((*counts, math.nan if total is None else total)):
                state[index] += amount

    def _empty(self) -> list[float]:
        return [0.0] * (len(self.bounds) + 2)

    def _samples(self) -> Iterator[str]:
        with self._lock:
            values = sorted((key, list(state)) for key, state in self._values.items())
        for key, (*counts, total) in values:
            seen = 0.0
            for bound, amount in zip((*self.bounds, math.inf), counts, strict=True):
                seen += amount
                yield self._line("_bucket", key, seen, number(bound))
            if not math.isnan(total):
                yield self._line("_sum", key, total)
            yield self._line("_count", key, seen)


def exposition(metrics: Iterable[Metric]) -> str:
    """All of them as the body of an answer with `CONTENT_TYPE`; two of one name would make
    Prometheus refuse the whole.
    """
    listed = list(metrics)
    names = [metric.name for metric in listed]
    if len(names) != len(set(names)):
        raise ValueError(
            f"a metric is there twice: {sorted({name for name in names if names.count(name) > 1})}"
        )
    return "".join(f"{line}\n" for metric in listed for line in metric.lines())


def number(value: float) -> str:
    """As Go parses it: whole numbers without a point, infinities and NaN by name."""
    if math.isnan(value):
        return "NaN"
    if math.isinf(value):
        return "+Inf" if value > 0 else "-Inf"
    return str(int(value)) if value == int(value) and abs(value) < 1 << 63 else repr(float(value))
