"""The core map of any stretch. Short ones are read as they are; of long ones each hour is read once
and kept, in minutes or less.

Hours at five seconds take long to read (a day of 96 cores is 33 million rows): until they are there
their minutes stand for them. An answer holds what was read within a fifth of a second and says if
it is not complete; the rest is read meanwhile, newest first.
"""

import math
from collections.abc import Callable, Sequence
from concurrent.futures import Future, ThreadPoolExecutor, wait
from typing import Final, NamedTuple

import numpy as np
from numpy.typing import NDArray

from necroscope.model.core_shares import MINUTE_NS
from necroscope.model.units import NS_PER_S
from necroscope.store.core_modes import MODES, not_in_core_modes, read_core_modes
from necroscope.store.query import Store
from necroscope.store.time_limit import TimeLimit
from necroscope.views.web.answers import (
    NOT_READ_YET,
    NOT_RECORDED,
    CoreBytes,
    core_bytes,
    cores_answer,
)

BASE_NS: Final = 5 * NS_PER_S
PART_NS: Final = 3600 * NS_PER_S
_PATIENCE_S: Final = 0.2
_TIME_LIMIT_S: Final = 10.0


class _Key(NamedTuple):
    """An hour at one resolution."""

    hour: int
    base_ns: int
    cpus: tuple[int, ...]
    with_delay: bool


Part = Future[CoreBytes]


class CorePictures:
    """Asked from several threads; each hour is read once, and again only while it is being
    recorded.
    """

    def __init__(self, store: Store) -> None:
        self._store = store
        self._parts: dict[_Key, tuple[int, Part]] = {}
        self._readers = ThreadPoolExecutor(2, "cores")

    def begin(self, cpus: Callable[[], Sequence[int]]) -> Future[None]:
        """Starts to read a long recording while the browser opens: what it asks for first is all of
        it.

        No request has to wait for it; what goes wrong is reported to the next request.
        """
        return self._readers.submit(self._read_ahead, cpus)

    def _read_ahead(self, cpus: Callable[[], Sequence[int]]) -> None:
        hours = self._recorded_hours()
        if len(hours) > 2:
            self._request(hours, MINUTE_NS, tuple(cpus()), with_delay=False)

    def close(self) -> None:
        self._readers.shutdown(wait=False, cancel_futures=True)

    def answer(
        self, from_ns: int, to_ns: int, columns: int, cpus: Sequence[int], *, with_delay: bool
    ) -> bytes:
        column_ns = max(1, -(-(to_ns - from_ns) // columns))
        if column_ns < BASE_NS:
            limit = TimeLimit(_TIME_LIMIT_S)
            modes = read_core_modes(
                self._store, from_ns, to_ns, columns, cpus, limit, with_delay=with_delay
            )
            return cores_answer(core_bytes(modes), from_ns, column_ns, cpus, modes.left_out)
        hours = self._recorded_hours(from_ns, to_ns)
        base_ns = MINUTE_NS if column_ns >= MINUTE_NS else BASE_NS
        parts, is_complete = self._read_so_far(hours, base_ns, tuple(cpus), with_delay)
        names = (*MODES, "delay") if with_delay else MODES
        bounds = _bounds(hours, base_ns, from_ns, column_ns, columns)
        picture = {
            name: _worst(_join([part[name] for part in parts], len(cpus)), bounds) for name in names
        }
        left_out = not_in_core_modes(self._store, from_ns, to_ns, with_delay=with_delay)
        return cores_answer(picture, from_ns, column_ns, cpus, left_out, is_complete=is_complete)

    def _read_so_far(
        self, hours: range, base_ns: int, cpus: tuple[int, ...], with_delay: bool
    ) -> tuple[list[CoreBytes], bool]:
        """The hours, in minutes or not at all where they are not read yet; and whether all are."""
        # Asked first, so that they are read first.
        stand_ins = self._request(hours, MINUTE_NS, cpus, with_delay) if self._has_minutes() else []
        parts = self._request(hours, base_ns, cpus, with_delay)
        wait(parts, _PATIENCE_S)
        results = [
            _result(choices, len(cpus), base_ns)
            for choices in zip(parts, stand_ins or parts, strict=True)
        ]
        return results, all(part.done() for part in parts)

    def _recorded_hours(self, from_ns: int = 0, to_ns: int = 1 << 62) -> range:
        """Those of a window in which anything was recorded: a window may be of a century."""
        info = self._store.info()
        first_ns, last_ns = max(from_ns, info.from_ns or 0), min(to_ns, info.to_ns or 0)
        return range(first_ns // PART_NS, -(-last_ns // PART_NS))

    def _has_minutes(self) -> bool:
        return "core_minutes" in self._store.info().tables

    def _request(
        self, hours: range, base_ns: int, cpus: tuple[int, ...], with_delay: bool
    ) -> list[Part]:
        recorded_to_ns = self._store.info().to_ns or 0
        for hour in reversed(hours):
            key, until_ns = (
                _Key(hour, base_ns, cpus, with_delay),
                min((hour + 1) * PART_NS, recorded_to_ns),
            )
            known = self._parts.get(key)
            if known is None:
                self._parts[key] = until_ns, self._readers.submit(self._read, key)
            elif known[0] != until_ns and known[1].done():
                # The hour that is being recorded is read before the answer: a hole that comes and
                # goes would look like a gap.
                self._parts[key] = until_ns, _done(self._read(key))
        return [self._parts[_Key(hour, base_ns, cpus, with_delay)][1] for hour in hours]

    def _read(self, key: _Key) -> CoreBytes:
        span = key.hour * PART_NS, (key.hour + 1) * PART_NS
        # It is kept, so it must be whole; no request waits for it longer than the patience above.
        limit = TimeLimit(math.inf)
        return core_bytes(
            read_core_modes(
                self._store,
                *span,
                PART_NS // key.base_ns,
                key.cpus,
                limit,
                with_delay=key.with_delay,
            )
        )


def _done(result: CoreBytes) -> Part:
    future: Part = Future()
    future.set_result(result)
    return future


def _result(choices: Sequence[Part], cores: int, base_ns: int) -> CoreBytes:
    """The first that is there, at the wanted resolution."""
    columns = PART_NS // base_ns
    for part in choices:
        if part.done():
            return {
                name: np.repeat(values, columns // values.shape[1], axis=1)
                for name, values in part.result().items()
            }
    return {name: np.full((cores, columns), NOT_READ_YET, np.uint8) for name in (*MODES, "delay")}


def _bounds(
    hours: range, base_ns: int, from_ns: int, column_ns: int, columns: int
) -> NDArray[np.int64]:
    """Where each column begins among the base columns of these hours: those belong to it whose
    middles lie in it.
    """
    middles = (
        hours.start * PART_NS
        + np.arange(len(hours) * (PART_NS // base_ns), dtype=np.int64) * base_ns
        + base_ns // 2
    )
    return np.searchsorted((middles - from_ns) // column_ns, np.arange(columns + 1))


def _join(parts: Sequence[NDArray[np.uint8]], cores: int) -> NDArray[np.uint8]:
    return np.concatenate(parts, axis=1) if parts else np.empty((cores, 0), np.uint8)


def _worst(values: NDArray[np.uint8], bounds: NDArray[np.int64]) -> NDArray[np.uint8]:
    """Of the values from each bound to the next; a column in which none lie was not recorded."""
    worst = np.full((len(values), len(bounds) - 1), NOT_RECORDED, np.uint8)
    filled = np.flatnonzero(bounds[1:] > bounds[:-1])
    if len(filled):
        # One more, in a byte, makes "not recorded" the smallest of all.
        worst[:, filled] = np.maximum.reduceat(
            values[:, : bounds[-1]] + np.uint8(1), bounds[filled], axis=1
        ) - np.uint8(1)
    return worst
