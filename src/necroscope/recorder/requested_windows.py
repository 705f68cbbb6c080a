"""Windows that the processes which judge and push ask to keep, checked before they are pinned: they
read what others wrote, and may be wrong.
"""

import re
from collections.abc import Sequence
from typing import Final

from necroscope.model.units import NS_PER_S
from necroscope.recorder.sink import Sink
from necroscope.segment.recording import Pin
from necroscope.settings import Settings

_REQUEST: Final = re.compile(r"[0-9]{1,19} [0-9]{1,19} [a-z0-9-]{1,60}")
_LONGEST_NS: Final = 3600 * NS_PER_S
# Each costs a write of all pins.
_MOST_AT_ONCE: Final = 20
_MOST_WAITING: Final = 2000


class RequestedWindows:
    """Pins a few at a time; the others wait for the next call."""

    def __init__(self, sink: Sink, settings: Settings) -> None:
        self._sink = sink
        self._settings = settings
        self._waiting: list[str] = []

    def keep(self, lines: Sequence[str]) -> None:
        """Each line is `FROM_NS TO_NS CAUSE`; what is not is passed over."""
        found = [*self._waiting, *(line for line in lines if _REQUEST.fullmatch(line))]
        self._waiting = found[_MOST_AT_ONCE:][:_MOST_WAITING]
        for line in found[:_MOST_AT_ONCE]:
            from_text, to_text, cause = line.split(" ")
            from_ns, to_ns = int(from_text), int(to_text)
            if from_ns <= to_ns <= from_ns + _LONGEST_NS and to_ns < 1 << 62:
                before_ns, after_ns = self._settings.pin_before_ns, self._settings.pin_after_ns
                window = max(0, from_ns - before_ns), to_ns + after_ns
                self._sink.pin(Pin(*window, f"incident: {cause}"))
