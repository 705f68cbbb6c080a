"""What boxes say: a label to be cut to the width, and all that is known when one asks."""

from typing import Final

import numpy as np

from necroscope.stacks.differential import PerWhat, Side
from necroscope.views.flame.boxes import BoxChange, Boxes, Cut, Name
from necroscope.views.flame.palette import HUES, MARKS, SIGNS, WORDS
from necroscope.views.format import count

_KIND_WORDS: Final = {"jit": "jitted", "group": ""}


def labels(boxes: Boxes) -> tuple[list[str], list[int]]:
    """`▲ do_syscall_64 [k]`: the different ones, and which of them each box has."""
    names = [f"{name.text}{MARKS.get(name.kind, '')}" for name in boxes.names]
    signs = [SIGNS[change] for change in BoxChange]
    signed, label = np.unique(boxes.change * len(names) + boxes.name, return_inverse=True)
    changes, numbers = np.divmod(signed, len(names))
    pairs = zip(changes.tolist(), numbers.tolist(), strict=True)
    return [f"{signs[change]}{names[name]}" for change, name in pairs], label.tolist()


def explanations(boxes: Boxes, per: PerWhat) -> tuple[list[str], list[str]]:
    """Of each box the whole name and where it is from, and its samples."""
    heads = [_head(name) for name in boxes.names]
    named = [heads[name] for name in boxes.name.tolist()]
    window = _samples(boxes.window, per)
    if boxes.baseline is None:
        return named, window
    columns = zip(
        window,
        _samples(boxes.baseline, per),
        _differences(boxes, boxes.baseline, per),
        strict=True,
    )
    compared = [
        f"window: {now}\nbaseline: {before}\n{difference}" for now, before, difference in columns
    ]
    return named, compared


def _head(name: Name) -> str:
    origin = ", ".join(filter(None, [_KIND_WORDS.get(name.kind, name.kind), name.module]))
    return f"{name.text}\n{origin}" if origin else name.text


def _samples(side: Side, per: PerWhat) -> list[str]:
    """Most boxes have few samples, and so the same text."""
    rows = list(zip(side.total.tolist(), side.own.tolist(), side.share.tolist(), strict=True))
    texts = {
        row: (
            f"{count(row[0])} {'sample' if row[0] == 1 else 'samples'}, "
            + (f"{row[2]:.1f} a second" if per is PerWhat.SECOND else f"{100 * row[2]:.2f} %")
            + (f", {count(row[1])} of its own" if row[1] else "")
        )
        for row in set(rows)
    }
    return [texts[row] for row in rows]


def _differences(boxes: Boxes, baseline: Side, per: PerWhat) -> list[str]:
    unit, factor = (
        ("samples per second", 1) if per is PerWhat.SECOND else ("percentage points", 100)
    )
    differences = ((boxes.window.share - baseline.share) * factor).tolist()
    words = [WORDS[change] for change in BoxChange]
    return [
        f"{words[change]}: {difference:+.2f} {unit}"
        for change, difference in zip(boxes.change.tolist(), differences, strict=True)
    ]


def cut_line(cut: Cut, samples: int) -> str | None:
    """What is too narrow or too deep to be drawn."""
    if not cut.frames:
        return None
    share = f" ({100 * cut.weight / samples:.1f} %)" if samples else ""
    cut_away = f"{count(cut.frames)} frames too narrow or too deep"
    return (
        f"not drawn: {cut_away}, with {count(cut.weight)} samples{share} that count in their"
        " callers"
    )


def legend(boxes: Boxes) -> list[tuple[str, str]]:
    """Class of the swatch, and its words."""
    if boxes.baseline is None:
        kinds = {boxes.names[number].kind for number in boxes.name[1:].tolist()}
        return [(f"{kind} s3", f"{kind}{MARKS.get(kind, '')}") for kind in HUES if kind in kinds]
    changes = sorted(set(boxes.change[1:].tolist()))
    return [
        (f"{BoxChange(each).name.lower()} s5", f"{SIGNS[BoxChange(each)]}{WORDS[BoxChange(each)]}")
        for each in changes
    ]
