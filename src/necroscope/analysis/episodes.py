"""Episodes: intervals, mostly on one core, with something abnormal and measured. The rules are in the files named `*_episodes`.

A strong episode is an incident in its own right. A weak one is normal on some machines: it makes an incident only if a cause is
found that has its confirming signal.
"""

from collections.abc import Iterable, Sequence
from dataclasses import dataclass, replace
from enum import StrEnum

from necroscope.model.units import NS_PER_S

Span = tuple[int, int]


class Kind(StrEnum):
    """What is abnormal."""

    SATURATED = "saturated"
    ELEVATED = "elevated"
    USER_BUSY = "user_busy"
    SOFTIRQ_DELAYED = "softirq_delayed"
    SOFTIRQ_FROZEN = "softirq_frozen"
    THREAD_DELAYED = "thread_delayed"
    TIME_MISSING = "time_missing"
    PACKETS_DROPPED = "packets_dropped"
    THROTTLED = "throttled"
    MEMORY_STALLED = "memory_stalled"
    IO_BLOCKED = "io_blocked"


# These say that something waited which should not wait.
SUFFERING = frozenset({Kind.SOFTIRQ_DELAYED, Kind.SOFTIRQ_FROZEN, Kind.THREAD_DELAYED, Kind.TIME_MISSING, Kind.PACKETS_DROPPED})


@dataclass(frozen=True, slots=True)
class Episode:
    """`level` is a share of the time, or for delays the longest one in seconds; `cpu` None is the whole machine."""

    kind: Kind
    cpu: int | None
    mode: str | None
    from_ns: int
    to_ns: int
    level: float
    text: str
    table: str
    is_strong: bool = True
    subject: str | None = None

    @property
    def span(self) -> Span:
        return self.from_ns, self.to_ns

    @property
    def seconds(self) -> float:
        return (self.to_ns - self.from_ns) / NS_PER_S

    @property
    def weight(self) -> float:
        """How much it matters beside others: its length times its level, much less if it is weak."""
        return self.seconds * min(self.level, 1.0) * (1.0 if self.is_strong else 0.2)


def joined(spans: Iterable[Span], bridge_ns: int = 0) -> list[Span]:
    """Stretches in order of time, those that touch or lie no farther apart than `bridge_ns` made one."""
    found: list[Span] = []
    for from_ns, to_ns in sorted(spans):
        if found and from_ns - found[-1][1] <= bridge_ns:
            found[-1] = found[-1][0], max(found[-1][1], to_ns)
        else:
            found.append((from_ns, to_ns))
    return found


def outside(span: Span, holes: Sequence[Span]) -> list[Span]:
    """What is left of a stretch without the holes."""
    parts = [span]
    for start_ns, end_ns in holes:
        pieces = [piece for a, b in parts for piece in ((a, min(b, start_ns)), (max(a, end_ns), b))]
        parts = [(a, b) for a, b in pieces if b > a]
    return parts


def touches(one: Span, other: Span, within_ns: int = 0) -> bool:
    return one[0] <= other[1] + within_ns and other[0] <= one[1] + within_ns


def merged(episodes: Iterable[Episode], bridge_ns: int) -> list[Episode]:
    """Episodes of the same kind, core, mode and subject that follow each other closely, as one with the text of the worst."""
    latest: dict[tuple[Kind, int | None, str | None, str | None], Episode] = {}
    done: list[Episode] = []
    for episode in sorted(episodes, key=lambda found: found.from_ns):
        key = episode.kind, episode.cpu, episode.mode, episode.subject
        last = latest.get(key)
        if last is None or episode.from_ns - last.to_ns > bridge_ns:
            done += [last] if last else []
            latest[key] = episode
            continue
        worst = max(last, episode, key=lambda found: (found.is_strong, found.level))
        latest[key] = replace(worst, from_ns=last.from_ns, to_ns=max(last.to_ns, episode.to_ns))
    return sorted([*done, *latest.values()], key=lambda found: (found.from_ns, found.cpu if found.cpu is not None else -1))
