"""Colours of flame graphs: a hue for each kind of frame, red and blue for what grew and shrank;
each also has a sign in text.
"""

import zlib
from typing import Final

import numpy as np
from numpy.typing import NDArray

from necroscope.views.flame.boxes import BoxChange

SHADES: Final = 8
# Of kinds, hues as far apart as readers with red-green blindness tell them, and a mark at the end
# of the frame's label.
HUES: Final = {
    "kernel": (24, 90),
    "user": (48, 85),
    "jit": (150, 45),
    "group": (215, 20),
    "other": (0, 0),
}
MARKS: Final = {"kernel": " [k]", "jit": " [j]"}
# Before the label of a differential.
SIGNS: Final = {
    BoxChange.SAME: "",
    BoxChange.GREW: "▲ ",
    BoxChange.SHRANK: "▼ ",
    BoxChange.NEW: "✚ ",
    BoxChange.GONE: "✖ ",
}
WORDS: Final = {
    BoxChange.SAME: "unchanged",
    BoxChange.GREW: "grew",
    BoxChange.SHRANK: "shrank",
    BoxChange.NEW: "new in the window",
    BoxChange.GONE: "only in the baseline",
}
_CHANGE_HUES: Final = {
    BoxChange.SAME: (0, 0),
    BoxChange.GREW: (8, 80),
    BoxChange.SHRANK: (215, 75),
    BoxChange.NEW: (340, 80),
    BoxChange.GONE: (250, 65),
}


def shade_of(name: str) -> int:
    """The same name has the same shade in every graph; neighbours mostly differ."""
    return zlib.crc32(name.encode()) % SHADES


def strengths(differences: NDArray[np.float64]) -> list[int]:
    """Shades by the root of the change, because a few paths change a lot and many a little; the
    first is all of the window.
    """
    size = np.abs(differences)
    shades = np.sqrt(size / (size[1:].max(initial=0) or 1)) * (SHADES - 1)
    return [int(shade) for shade in shades.round().clip(max=SHADES - 1)]


def kind_colours() -> dict[str, list[str]]:
    return {
        kind: [_hsl(hue, saturation, 60 + 2 * shade) for shade in range(SHADES)]
        for kind, (hue, saturation) in HUES.items()
    }


def change_colours() -> dict[str, list[str]]:
    """From faint to strong."""
    return {
        change.name.lower(): [
            _hsl(hue, saturation, 92 - (4 * shade if saturation else 0)) for shade in range(SHADES)
        ]
        for change, (hue, saturation) in _CHANGE_HUES.items()
    }


def _hsl(hue: float, saturation: float, lightness: float) -> str:
    return f"hsl({hue:g},{saturation:g}%,{lightness:g}%)"
