"""Which of a capture's events is imported: a recording has samples of time, of one event."""

import re
from collections.abc import Sequence
from typing import Final

from necroscope.errors import UsageError
from necroscope.interchange.capture import CaptureFacts

# Events that sample time, best first; another one is imported only where a capture has none of
# these.
_PROFILES: Final = ("cpu-clock", "cycles", "cpu-cycles", "task-clock")
_WORD: Final = re.compile(r"[\w-]+")


class ProfileEvent:
    """Names of events may be known only while samples are read (text of `perf script`), so it is
    asked again and again.
    """

    def __init__(self, facts: CaptureFacts, wanted: str | None) -> None:
        self._facts = facts
        self._wanted = wanted
        self._base: str | None = None

    def others(self, sampled: Sequence[int]) -> list[int]:
        """The events whose samples are left out; `sampled` are those of which there are samples,
        the first one first.
        """
        names = self._facts.event_names
        if len(names) < 2 and self._wanted is None:
            return []
        bases = [base_of(name) for name in names]
        if self._base is None:
            self._base = self._choose(bases, sampled)
        return [event for event, base in enumerate(bases) if base != self._base]

    def notes(self, left_out: Sequence[int]) -> list[str]:
        """`left_out` counts the samples by event."""
        counts = zip(self._facts.event_names, left_out, strict=False)
        return [
            f"{count} samples of event {name} were left out (--event imports them)"
            for name, count in counts
            if count
        ]

    def _choose(self, bases: list[str], sampled: Sequence[int]) -> str:
        if self._wanted is not None:
            base = base_of(self._wanted)
            if base not in bases:
                raise UsageError(
                    f"the capture has no event {self._wanted!r}",
                    f"it has {', '.join(self._facts.event_names)}",
                )
            return base
        present = {bases[event] for event in sampled if 0 <= event < len(bases)}
        first = bases[sampled[0]] if sampled and 0 <= sampled[0] < len(bases) else bases[0]
        return next((profile for profile in _PROFILES if profile in present), first)


def base_of(name: str) -> str:
    """`cycles` of `cycles:P` and of `cpu_core/cycles/u`: on a hybrid processor each kind of core
    has an event of its own.
    """
    unit, slash, rest = name.partition("/")
    if slash and rest and not rest.startswith("event="):
        name = rest
    elif name.count(":") and not name.split(":")[1].strip("uhkGHIpPSDWeb"):
        name = name.split(":")[0]
    else:
        return name
    found = _WORD.match(name)
    return found[0] if found else unit
