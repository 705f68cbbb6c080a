"""Which incidents are new: each is told once, when it is over or has gone on for a minute, also
across restarts. No I/O.
"""

from collections.abc import Sequence
from dataclasses import asdict, dataclass, replace
from typing import Any, Final

from necroscope.model.definitions import OVER_NS
from necroscope.model.units import NS_PER_S
from necroscope.outlets.notify.judged import Judged, Judgement
from necroscope.segment.recording import Pin

# What goes on longer is reported before it is over.
_LONG_NS: Final = 60 * NS_PER_S
# Evidence that comes later may make an incident of what was none a moment ago.
_LATE_NS: Final = 60 * NS_PER_S
# An incident is judged with the minutes before it; one that goes on all day with the last hour
# only.
_BEFORE_NS: Final = 600 * NS_PER_S
_LONGEST_BACK_NS: Final = 3600 * NS_PER_S
_MOST_TOLD: Final = 500


@dataclass(frozen=True, slots=True)
class Told:
    """Enough of an incident to know it again: the analysis of another stretch may begin it a moment
    earlier or later.
    """

    core: int | None
    from_ns: int
    to_ns: int

    def is_same(self, other: Judged) -> bool:
        return (
            self.core == other.core
            and self.from_ns <= other.to_ns + OVER_NS
            and other.from_ns <= self.to_ns + OVER_NS
        )


class NewIncidents:
    """`from_ns` says whether and from where to judge, `news` what of the judgement is new."""

    def __init__(self, judged_until_ns: int, told: Sequence[Told] = ()) -> None:
        self.judged_until_ns = judged_until_ns
        self._settled_until_ns = 0
        self._told = list(told)
        self._unfinished_ns: int | None = None

    def from_ns(self, pins: Sequence[Pin], now_ns: int) -> int | None:
        """Where the next judgement begins; None while the recorder has seen nothing that was not
        judged.
        """
        settled_ns = max(self.judged_until_ns, self._settled_until_ns)
        is_pinned = any(pin.from_ns <= now_ns and pin.to_ns > settled_ns for pin in pins)
        if not is_pinned and self._unfinished_ns is None:
            return None
        from_ns = self.judged_until_ns - _BEFORE_NS
        if self._unfinished_ns is not None:
            from_ns = min(from_ns, self._unfinished_ns - _BEFORE_NS)
        return max(from_ns, now_ns - _LONGEST_BACK_NS, 0)

    def news(self, judgement: Judgement, pins: Sequence[Pin]) -> list[Judged]:
        new = []
        since_ns, self._unfinished_ns = self.judged_until_ns, None
        for incident in judgement.incidents:
            place = next(
                (place for place, told in enumerate(self._told) if told.is_same(incident)), None
            )
            is_over = not judgement.is_live or incident.to_ns < judgement.end_ns - OVER_NS
            if place is not None:
                self._told[place] = replace(
                    self._told[place], to_ns=max(self._told[place].to_ns, incident.to_ns)
                )
            elif is_over and incident.to_ns < since_ns - _LATE_NS:
                # from before this began to follow: an older stretch is only there to compare with
                continue
            elif is_over or incident.to_ns - incident.from_ns >= _LONG_NS:
                new.append(incident)
                self._told.append(Told(incident.core, incident.from_ns, incident.to_ns))
            else:
                self._unfinished_ns = min(incident.from_ns, self._unfinished_ns or incident.from_ns)
        self._told = sorted(self._told, key=lambda told: told.to_ns)[-_MOST_TOLD:]
        self.judged_until_ns = max(since_ns, judgement.end_ns)
        # Where nobody records any more, the rest of a pinned window will not come.
        self._settled_until_ns = (
            0 if judgement.is_live else max((pin.to_ns for pin in pins), default=0)
        )
        return new

    def as_json(self) -> dict[str, Any]:
        return {
            "judged_until_ns": self.judged_until_ns,
            "told": [asdict(told) for told in self._told],
        }

    @classmethod
    def from_json(cls, content: dict[str, Any]) -> "NewIncidents":
        return cls(int(content["judged_until_ns"]), [Told(**told) for told in content["told"]])
