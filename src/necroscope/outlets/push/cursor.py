"""How far a recording is pushed: what a batch leaves behind for the next, so that nothing is sent
twice and nothing missed.
"""

from dataclasses import asdict, dataclass, field
from typing import Any, Final, Self

from necroscope.errors import CorruptData

# Kernel log lines that were pushed: a recorder that restarts reads the log's whole buffer again.
_MOST_SEQUENCES: Final = 5000
_MOST_LOSSES: Final = 50
_NUMBERS_OF_A_SECOND: Final = 1_000_000


@dataclass(slots=True)
class SegmentProgress:
    """A segment that may still grow: keys of its rows that were pushed, and up to where its facts
    were.
    """

    pushed: list[str] = field(default_factory=list)
    facts_to_ns: int = 0


@dataclass(slots=True)
class Loss:
    """A stretch that the collector will never get, to be told to it as a gap."""

    from_ns: int
    to_ns: int
    cause: str
    table: str = "*"


@dataclass(slots=True)
class Cursor:
    """`number` is the next entry of the spool. Numbers begin at the second of its birth, so that no
    two spools share one.

    Segments up to `closed_through` are pushed, but for those in `open`. `seen_to_ns` is where the
    next minute begins. `packed` are pinned windows by their start: up to where their evidence is
    sent. `revision` is that of the last entry of the ledger that was sent. `left` are journals
    that are not written any more, with their size. `gauges` are those that were sent last, with
    their time. `job_deaths` are jobs that died on other nodes, and when by this node's clock.
    """

    to: str
    number: int
    seen_to_ns: int = 0
    closed_through: str = ""
    open: dict[str, SegmentProgress] = field(default_factory=dict)
    boot_id: str = ""
    log_sequences: list[int] = field(default_factory=list)
    packed: dict[str, int] = field(default_factory=dict)
    revision: int = 0
    labelled: str = ""
    stakeout_runs: int = 0
    left: dict[str, int] = field(default_factory=dict)
    gauges: dict[str, list[float]] = field(default_factory=dict)
    job_deaths: dict[str, int] = field(default_factory=dict)
    losses: list[Loss] = field(default_factory=list)

    @classmethod
    def new(cls, to: str, now_s: int) -> Self:
        return cls(to, now_s * _NUMBERS_OF_A_SECOND)

    @classmethod
    def from_json(cls, content: Any) -> Self:
        """CorruptData if it is none."""
        try:
            # Cursors before the ledger knew how far windows were analysed.
            cursor = cls(**{name: content[name] for name in content if name != "analysed"})
            cursor.open = {
                name: SegmentProgress(**segment) for name, segment in content["open"].items()
            }
            cursor.losses = [Loss(**loss) for loss in content["losses"]]
        except (TypeError, KeyError, AttributeError):
            raise CorruptData("the spool's cursor is not understood") from None
        return cursor

    def as_json(self) -> dict[str, Any]:
        return asdict(self)

    def copy(self) -> Self:
        return type(self).from_json(self.as_json())

    def is_done(self, name: str, *, is_live: bool) -> bool:
        """Whether nothing of a segment is left to push. A live one never is: its name may be older,
        after a step of the clock.
        """
        return not is_live and name not in self.open and name <= self.closed_through

    def close(self, name: str) -> None:
        self.open.pop(name, None)
        self.closed_through = max(self.closed_through, name)

    def note_sequences(self, boot_id: str, sequences: list[int]) -> None:
        known = self.log_sequences if boot_id == self.boot_id else []
        self.boot_id, self.log_sequences = boot_id, [*known, *sequences][-_MOST_SEQUENCES:]

    def known_sequences(self, boot_id: str) -> set[int]:
        return set(self.log_sequences) if boot_id == self.boot_id else set()

    def note_loss(self, loss: Loss) -> None:
        """Losses of one kind become one: what was lost is reported, not how often."""
        for number, known in enumerate(self.losses):
            if (known.cause, known.table) == (loss.cause, loss.table) or number >= _MOST_LOSSES:
                known.from_ns, known.to_ns = (
                    min(known.from_ns, loss.from_ns),
                    max(known.to_ns, loss.to_ns),
                )
                return
        self.losses.append(loss)

    def forget_facts(self) -> None:
        """Facts and labels are looked at again, from the last segment on; rows of it that come
        twice are read once.
        """
        if self.closed_through:
            self.open.setdefault(self.closed_through, SegmentProgress())
        for segment in self.open.values():
            segment.facts_to_ns = 0
        self.labelled = ""
        self.gauges = {}
