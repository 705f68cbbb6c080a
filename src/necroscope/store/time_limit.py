"""How long a question to a recording may take; who answers looks at it between reads and says what
was left out.
"""

import time
from collections.abc import Callable
from typing import Final

DEFAULT_S: Final = 30.0


class TimeLimit:
    """Runs from when it is made; may be shared by the questions of one page."""

    def __init__(
        self, seconds: float = DEFAULT_S, clock: Callable[[], float] = time.monotonic
    ) -> None:
        self.seconds = seconds
        self._clock = clock
        self._ends_at = clock() + seconds

    def is_over(self) -> bool:
        return self._clock() >= self._ends_at
