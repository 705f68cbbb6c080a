"""Which colour, mark and sign means what, for those that a graph has."""

from necroscope.views.flame.boxes import Boxes, Change
from necroscope.views.flame.palette import HUES, MARKS, SIGNS, WORDS


def legend(boxes: Boxes) -> list[tuple[str, str]]:
    """Class of the swatch, and its words."""
    if boxes.baseline is None:
        kinds = {boxes.names[number].kind for number in boxes.name[1:].tolist()}
        return [(f"{kind} s3", f"{kind}{MARKS.get(kind, '')}") for kind in HUES if kind in kinds]
    changes = sorted(set(boxes.change[1:].tolist()))
    return [
        (f"{Change(each).name.lower()} s5", f"{SIGNS[Change(each)]}{WORDS[Change(each)]}")
        for each in changes
    ]
