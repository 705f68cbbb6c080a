"""A line of the terminal as spans of text, each with the role that a colour is given for; bars and
columns made of them.

Nothing here reads markup: text from the machine stays the text it is.
"""

from collections.abc import Iterable
from typing import Final, NamedTuple

from necroscope.views.format import cells, fit
from necroscope.views.tui.screen import MODES, Modes

# Letters carry what colours carry. Capitals are the time that the kernel or the hypervisor takes
# from tasks.
MODE_LETTERS: Final = dict(zip(MODES, "SIQTungw.", strict=True))
_BAR: Final = (
    *list(MODE_LETTERS.items())[:-1],
    ("unaccounted", "?"),
    ("idle", MODE_LETTERS["idle"]),
)
# USER_HZ ticks and read jitter leave a few percent that mean nothing.
_UNACCOUNTED_SHARE: Final = 0.05


class StyledSpan(NamedTuple):
    text: str
    role: str = "plain"


Line = tuple[StyledSpan, ...]


def text_of(line: Line) -> str:
    return "".join(span.text for span in line)


def fit_line(line: Line, width: int) -> Line:
    """Exactly `width` cells; what has no room is cut."""
    spans: list[StyledSpan] = []
    left = width
    for span in line:
        size = cells(span.text)
        if size >= left:
            return (*spans, StyledSpan(fit(span.text, left), span.role))
        spans.append(span)
        left -= size
    return (*spans, StyledSpan(" " * left))


def key_line(keys: Iterable[tuple[str, str]], width: int) -> Line:
    """What keys do, in one line: each key, and a word or two."""
    spans = ((StyledSpan(f" {key} ", "key"), StyledSpan(f"{does} ")) for key, does in keys)
    return fit_line(tuple(span for pair in spans for span in pair), width)


def spread(left: Line, right: Line, width: int) -> Line:
    """`left` at the left end; `right` at the right end, as far as there is room for it."""
    taken = cells(text_of(left)) + 2
    right_size = min(cells(text_of(right)), width - taken)
    if right_size < 8:
        return fit_line(left, width)
    return fit_line((*fit_line(left, width - right_size), *fit_line(right, right_size)), width)


def bar(modes: Modes, width: int) -> Line:
    """The split into modes as letters, in the order of `MODES`; time that no mode accounts for is
    `?` before the idle part.
    """
    total = sum(modes.shares)
    unaccounted = 1 - total if 1 - total > _UNACCOUNTED_SHARE else 0.0
    # Read jitter may book more than the time that passed.
    shares = [*(share / max(total, 1.0) for share in modes.shares[:-1]), unaccounted]
    shares.append(max(0.0, 1 - sum(shares)))
    sizes = _whole_cells(shares, width)
    return tuple(
        [
            StyledSpan(letter * size, role)
            for (role, letter), size in zip(_BAR, sizes, strict=True)
            if size
        ]
    )


def _whole_cells(shares: list[float], width: int) -> list[int]:
    """Sizes that add up to `width`: each share's whole cells, and one more to those with the
    largest rest.
    """
    exact = [share * width for share in shares]
    sizes = [int(size) for size in exact]
    by_rest = sorted(range(len(sizes)), key=lambda place: sizes[place] - exact[place])
    for place in by_rest[: width - sum(sizes)]:
        sizes[place] += 1
    return sizes
