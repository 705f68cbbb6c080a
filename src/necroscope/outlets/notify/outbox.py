"""What is still to be delivered by one channel: oldest first, bounded in number and age, tried
again with pauses. No I/O.
"""

from collections.abc import Callable
from dataclasses import dataclass
from typing import Any, Final

from necroscope.fleet.backoff import Backoff
from necroscope.model.units import NS_PER_S
from necroscope.verdicts.entry import LedgerEntry

MOST: Final = 100
# A node in trouble all day must not flood the receiver: this many at once, then one per minute; the
# rest is counted.
AT_ONCE: Final = 20
_ONE_MORE_NS: Final = 60 * NS_PER_S
_OLDEST_NS: Final = 86400 * NS_PER_S


@dataclass(frozen=True, slots=True)
class Letter:
    """An incident on its way, since when, and how many others were left out before it."""

    entry: LedgerEntry
    since_ns: int
    left_out: int = 0


class Outbox:
    """Letters stay until the sender reports that they arrived, through restarts too: `as_json` goes
    into the notebook.
    """

    def __init__(
        self, jitter: Callable[[], float], letters: list[Letter] | None = None, left_out: int = 0
    ) -> None:
        self._backoff = Backoff(jitter)
        self._letters = letters or []
        self._left_out = left_out
        self._spent_until_ns = 0

    def __len__(self) -> int:
        return len(self._letters)

    def put(self, entry: LedgerEntry, now_ns: int) -> None:
        """Where there are too many it is only counted."""
        spent_until_ns = max(self._spent_until_ns, now_ns) + _ONE_MORE_NS
        if now_ns + AT_ONCE * _ONE_MORE_NS < spent_until_ns <= now_ns + 2 * AT_ONCE * _ONE_MORE_NS:
            self._left_out += 1
            return
        # Farther ahead than ever spent means that the clock was stepped back.
        self._spent_until_ns = min(spent_until_ns, now_ns + AT_ONCE * _ONE_MORE_NS)
        self._letters.append(Letter(entry, now_ns))
        self._give_up(len(self._letters) - MOST)

    def due(self, now_ns: int) -> Letter | None:
        """What to try now. Letters older than a day are given up, and counted in the next one that
        goes out.
        """
        self._give_up(sum(now_ns - letter.since_ns > _OLDEST_NS for letter in self._letters))
        if not self._letters or not self._backoff.is_due(now_ns):
            return None
        first = self._letters[0]
        return Letter(first.entry, first.since_ns, self._left_out)

    def delivered(self, letter: Letter) -> None:
        self._letters.pop(0)
        self._left_out -= letter.left_out
        self._backoff.succeeded()

    def failed(self, now_ns: int, wait_s: float | None) -> float:
        """The pause until the next try, in seconds."""
        return self._backoff.failed(now_ns, wait_s)

    def next_ns(self) -> int | None:
        """When there is something to try again."""
        return self._backoff.not_before_ns if self._letters else None

    def as_json(self) -> dict[str, Any]:
        letters = [
            {"entry": letter.entry.as_json(), "since_ns": letter.since_ns}
            for letter in self._letters
        ]
        return {"letters": letters, "left_out": self._left_out}

    @classmethod
    def from_json(cls, content: dict[str, Any], jitter: Callable[[], float]) -> "Outbox":
        letters = [
            Letter(LedgerEntry.from_json(one["entry"]), int(one["since_ns"]))
            for one in content["letters"]
        ]
        return cls(jitter, letters, int(content["left_out"]))

    def _give_up(self, count: int) -> None:
        for _ in range(max(0, count)):
            self._letters.pop(0)
            self._left_out += 1
