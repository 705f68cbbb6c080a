"""False discovery control (Benjamini and Hochberg 1995): of thousands of tests some look striking
by chance alone.
"""

import numpy as np
from numpy.typing import NDArray


def false_discovery(chances: NDArray[np.float64]) -> NDArray[np.float64]:
    """Of each test the share of false ones to be expected among those that speak at least as
    loud.
    """
    count = len(chances)
    if not count:
        return chances
    order = np.argsort(chances, kind="stable")
    adjusted = chances[order] * count / np.arange(1, count + 1)
    found = np.empty(count)
    found[order] = np.minimum(1.0, np.minimum.accumulate(adjusted[::-1])[::-1])
    return found
