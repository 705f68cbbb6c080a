"""What each source costs, and what is done about one that costs too much: it is read less often,
then hardly at all. No I/O.

A tenant that makes a hundred thousand cgroups or mounts chooses what a source has to read. The rate
of samples, which the recorder's own budget lowers, does not help against that.
"""

from collections.abc import Iterable
from dataclasses import dataclass
from typing import Final, NamedTuple

from necroscope.model.units import NS_PER_S, format_duration, format_share

_WINDOW_NS: Final = 60 * NS_PER_S
# A single read that takes as much as this long should cost keeps the loop from everything else,
# however seldom it is: half a second by default.
_AT_ONCE_NS: Final = 20 * NS_PER_S
_MOST_SLOWED: Final = 16
_REST_NS: Final = 600 * NS_PER_S
# Twice as often costs twice as much: below this part of its limit there is room for it.
_CALM_RATIO: Final = 0.4


class NewPeriod(NamedTuple):
    """How often a source is read from now on. `cause` is empty when that is as often as it wants
    to be.
    """

    name: str
    period_ns: int
    cause: str


@dataclass(slots=True)
class _Source:
    wanted_ns: int
    period_ns: int
    spent_ns: int = 0
    longest_ns: int = 0
    is_resting: bool = False


class SourceCosts:
    """Fed with the CPU time of every read; asked once per tick. A source may take `limit_ratio` of
    a core.
    """

    def __init__(self, limit_ratio: float) -> None:
        self._limit_ratio = limit_ratio
        self._sources: dict[str, _Source] = {}
        self._since_ns: int | None = None

    def add(self, name: str, period_ns: int) -> None:
        self._sources[name] = _Source(period_ns, period_ns)

    def spend(self, name: str, cpu_ns: int) -> None:
        if (source := self._sources.get(name)) is not None:
            source.spent_ns += cpu_ns
            source.longest_ns = max(source.longest_ns, cpu_ns)

    def judge(self, now_ns: int) -> Iterable[NewPeriod]:
        """What changes now: looked at once per minute."""
        if self._since_ns is None:
            self._since_ns = now_ns
        elapsed_ns = now_ns - self._since_ns
        if elapsed_ns < _WINDOW_NS:
            return ()
        self._since_ns = now_ns
        changes = []
        for name, source in self._sources.items():
            share, longest_ns = source.spent_ns / elapsed_ns, source.longest_ns
            if longest_ns:  # one that was not read in this minute cannot be judged
                source.spent_ns = source.longest_ns = 0
                before_ns = source.period_ns
                cause = self._adjust(source, share, longest_ns)
                if source.period_ns != before_ns:
                    changes.append(NewPeriod(name, source.period_ns, cause))
        return changes

    def _adjust(self, source: _Source, share: float, longest_ns: int) -> str:
        if share > self._limit_ratio or longest_ns > self._limit_ratio * _AT_ONCE_NS:
            return self._slow_down(source, share, longest_ns)
        if source.is_resting:
            source.is_resting = False
            source.period_ns = source.wanted_ns * _MOST_SLOWED
        elif share < _CALM_RATIO * self._limit_ratio and source.period_ns > source.wanted_ns:
            source.period_ns //= 2
        return _describe(source) if source.period_ns > source.wanted_ns else ""

    def _slow_down(self, source: _Source, share: float, longest_ns: int) -> str:
        if source.period_ns >= source.wanted_ns * _MOST_SLOWED:
            source.is_resting = True
            source.period_ns = max(_REST_NS, source.period_ns)
        else:
            source.period_ns *= 2
        cost = f"{format_share(share)} of a core, {format_duration(longest_ns)} at once"
        return f"reading it cost {cost}: {_describe(source)}"


def _describe(source: _Source) -> str:
    every, wanted = format_duration(source.period_ns), format_duration(source.wanted_ns)
    return (
        f"switched off, tried again every {every}"
        if source.is_resting
        else f"read every {every} instead of every {wanted}"
    )
