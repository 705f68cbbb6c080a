"""Windows that the process which judges asks to keep, checked before they are pinned: it reads what
others wrote, and may be wrong.
"""

import re
from collections.abc import Sequence
from typing import Final

from necroscope.model.units import NS_PER_S
from necroscope.recorder.sink import Sink
from necroscope.segment.recording import Pin
from necroscope.settings import Settings

_REQUEST: Final = re.compile(r"(\d{1,19}) (\d{1,19}) ([a-z0-9-]{1,60})")
_LONGEST_NS: Final = 3600 * NS_PER_S
# Each costs a write of all pins.
_MOST_AT_ONCE: Final = 20


def keep_requested(lines: Sequence[str], sink: Sink, settings: Settings) -> None:
    """Each line is `FROM_NS TO_NS CAUSE`; what is not is passed over, and so are more than a few at
    a time.
    """
    found = [match for line in lines if (match := _REQUEST.fullmatch(line))]
    for match in found[:_MOST_AT_ONCE]:
        from_ns, to_ns = int(match[1]), int(match[2])
        if from_ns <= to_ns <= from_ns + _LONGEST_NS and to_ns < 1 << 62:
            before_ns, after_ns = settings.pin_before_ns, settings.pin_after_ns
            window = max(0, from_ns - before_ns), to_ns + after_ns
            sink.pin(Pin(*window, f"incident: {match[3]}"))
