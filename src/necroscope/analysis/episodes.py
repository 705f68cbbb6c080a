"""Episodes: intervals, mostly on one core, with something abnormal and measured. The rules are in
the files named `*_episodes`.

A strong episode is an incident in its own right. A weak one is normal on some machines: it makes an
incident only if a cause is found that has its confirming signal.
"""

from collections.abc import Iterable, Sequence
from dataclasses import dataclass, replace
from enum import StrEnum
from typing import Final

from necroscope.model.span import Lasting, Span


class EpisodeKind(StrEnum):
    """What is abnormal."""

    SATURATED = "saturated"
    ELEVATED = "elevated"
    USER_BUSY = "user_busy"
    BURST = "burst"
    SOFTIRQ_DELAYED = "softirq_delayed"
    SOFTIRQ_FROZEN = "softirq_frozen"
    THREAD_DELAYED = "thread_delayed"
    TIME_MISSING = "time_missing"
    PACKETS_DROPPED = "packets_dropped"
    THROTTLED = "throttled"
    MEMORY_STALLED = "memory_stalled"
    IO_BLOCKED = "io_blocked"
    TASK_DELAYED = "task_delayed"
    TASK_BLOCKED = "task_blocked"
    TASK_LATE = "task_late"
    TRAFFIC_LOST = "traffic_lost"


# A core is held in a mode.
ACTIVE = frozenset(
    {EpisodeKind.SATURATED, EpisodeKind.ELEVATED, EpisodeKind.USER_BUSY, EpisodeKind.BURST}
)
# These say that something waited which should not wait.
SUFFERING = frozenset(
    {
        EpisodeKind.SOFTIRQ_DELAYED,
        EpisodeKind.SOFTIRQ_FROZEN,
        EpisodeKind.THREAD_DELAYED,
        EpisodeKind.TIME_MISSING,
        EpisodeKind.PACKETS_DROPPED,
    }
)

# And these too, that tasks wait for memory, a device or their quota.
HURT = SUFFERING | {
    EpisodeKind.MEMORY_STALLED,
    EpisodeKind.IO_BLOCKED,
    EpisodeKind.THROTTLED,
    EpisodeKind.TASK_DELAYED,
    EpisodeKind.TASK_BLOCKED,
    EpisodeKind.TASK_LATE,
    EpisodeKind.TRAFFIC_LOST,
}
# Their level is the longest wait in seconds, not a share.
_WAITS: Final = frozenset(
    {
        EpisodeKind.SOFTIRQ_DELAYED,
        EpisodeKind.SOFTIRQ_FROZEN,
        EpisodeKind.THREAD_DELAYED,
        EpisodeKind.TASK_DELAYED,
        EpisodeKind.TASK_BLOCKED,
        EpisodeKind.TASK_LATE,
    }
)


@dataclass(frozen=True, slots=True)
class Episode(Lasting):
    """`level` is a share of the time, or for waits the longest one in seconds; `cpu` None is the
    whole machine.

    `words` tell it with the figures left open (`held {level:.0%} for {amount:.1f} s`), so that the
    text of what is made one of two parts speaks of both. `amount` adds up: seconds, packets, times.
    `reference` is what it is compared with.
    """

    kind: EpisodeKind
    cpu: int | None
    mode: str | None
    from_ns: int
    to_ns: int
    level: float
    words: str
    table: str
    is_strong: bool = True
    subject: str | None = None
    amount: float = 0.0
    reference: float = 0.0

    @property
    def text(self) -> str:
        figures = {
            "level": self.level,
            "wait_ms": 1000 * self.level,
            "amount": self.amount,
            "times": "once" if self.amount == 1 else f"{self.amount:,.0f} times",
            "reference": self.reference,
        }
        return self.words.format(cpu=self.cpu, mode=self.mode, subject=self.subject, **figures)

    @property
    def weight(self) -> float:
        """How much it matters compared with others: its length times its level, much less if it is
        weak.
        """
        return self.seconds * min(self.level, 1.0) * (1.0 if self.is_strong else 0.2)


def outside(span: Span, holes: Sequence[Span]) -> list[Span]:
    """What is left of a stretch without the holes."""
    parts = [span]
    for start_ns, end_ns in holes:
        pieces = [piece for a, b in parts for piece in ((a, min(b, start_ns)), (max(a, end_ns), b))]
        parts = [Span(a, b) for a, b in pieces if b > a]
    return parts


def touches(one: Span, other: Span, within_ns: int = 0) -> bool:
    return one[0] <= other[1] + within_ns and other[0] <= one[1] + within_ns


def was_throttled(episodes: Iterable["Episode"], cgroup: str | None, span: Span) -> bool:
    """Whether this cgroup, or one above it, had used up its quota meanwhile."""
    return any(
        episode.kind is EpisodeKind.THROTTLED
        and f"{cgroup or '/'}/".startswith(f"{(episode.subject or '/').rstrip('/')}/")
        and touches(episode.span, span)
        for episode in episodes
    )


def coincide(one: Span, other: Span) -> bool:
    """Whether they share most of the shorter one: the ends of two rows may touch."""
    return 2 * (min(one[1], other[1]) - max(one[0], other[0])) > min(
        one[1] - one[0], other[1] - other[0]
    )


def merge_episodes(episodes: Iterable[Episode], bridge_ns: int) -> list[Episode]:
    """Episodes of the same kind, core, mode and subject that follow each other closely, as one."""
    latest: dict[tuple[EpisodeKind, int | None, str | None, str | None], Episode] = {}
    done: list[Episode] = []
    for episode in sorted(episodes, key=lambda found: found.from_ns):
        last = latest.get(key_of(episode))
        if last is None or episode.from_ns - last.to_ns > bridge_ns:
            done += [last] if last else []
            latest[key_of(episode)] = episode
        else:
            latest[key_of(episode)] = _as_one(last, episode)
    return sorted(
        [*done, *latest.values()],
        key=lambda found: (found.from_ns, found.cpu if found.cpu is not None else -1),
    )


def key_of(episode: Episode) -> tuple[EpisodeKind, int | None, str | None, str | None]:
    """What episodes have in common that may be parts of one."""
    return episode.kind, episode.cpu, episode.mode, episode.subject


def _as_one(first: Episode, second: Episode) -> Episode:
    """The figures of both; time that both cover counts once."""
    worst = max(first, second, key=lambda found: (found.is_strong, found.level))
    twice_ns = max(0, min(first.to_ns, second.to_ns) - second.from_ns)
    new = 1.0 - twice_ns / (second.to_ns - second.from_ns) if second.to_ns > second.from_ns else 1.0
    old_s, new_s = first.seconds, new * second.seconds

    def mean(one: float, other: float) -> float:
        return (
            (one * old_s + other * new_s) / (old_s + new_s)
            if old_s + new_s > 0
            else max(one, other)
        )

    return replace(
        worst,
        from_ns=first.from_ns,
        to_ns=max(first.to_ns, second.to_ns),
        level=max(first.level, second.level)
        if first.kind in _WAITS
        else mean(first.level, second.level),
        amount=first.amount + new * second.amount,
        reference=mean(first.reference, second.reference),
    )
