"""How sure a share is that was seen in few trials."""

from math import sqrt
from typing import Final

# 95 % of a normal distribution lie within this many standard deviations.
_Z: Final = 1.959964


def wilson(successes: int, trials: int) -> tuple[float, float]:
    """The 95 % interval of a share after E. B. Wilson (1927): right also near 0 and 1 and for few
    trials; all of it for none.
    """
    if not trials:
        return 0.0, 1.0
    share, square = successes / trials, _Z * _Z
    centre = (share + square / (2 * trials)) / (1 + square / trials)
    half = (
        _Z
        * sqrt(share * (1 - share) / trials + square / (4 * trials * trials))
        / (1 + square / trials)
    )
    return max(0.0, centre - half), min(1.0, centre + half)
