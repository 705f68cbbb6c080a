"""Whether a recording still grows, judged by what it holds and our own clock: the node's may be
stepped at any time.
"""

from collections.abc import Callable, Sequence
from typing import Final

from necroscope.segment.recording import segment_bytes
from necroscope.store.catalog import Segment

# A recorder writes every few seconds; one that has not for this long has ended, or hangs.
STILL_S: Final = 30.0


class Growth:
    def __init__(self, clock: Callable[[], float]) -> None:
        self._clock = clock
        self._last_ns: int | None = None
        self._since_s = clock()
        self._is_reported = False
        self.is_still = False

    def observe(self, last_ns: int) -> tuple[bool, bool]:
        """Whether it has come to rest, and whether that, or what it holds, is new since it was last
        said.
        """
        if last_ns != self._last_ns:
            self._last_ns, self._since_s, self._is_reported, self.is_still = (
                last_ns,
                self._clock(),
                False,
                False,
            )
            return False, True
        self.is_still = self._clock() - self._since_s >= STILL_S
        is_news = self.is_still and not self._is_reported
        self._is_reported = self._is_reported or self.is_still
        return self.is_still, is_news


class Journals:
    """Which live segments still grow: a journal that could not be sealed stays one for good, and
    nothing more comes to it.
    """

    def __init__(self) -> None:
        self._sizes: dict[str, int] = {}

    def growing(self, segments: Sequence[Segment], left: dict[str, int]) -> list[Segment]:
        """All live ones, but for those that stand still while another one grows. `left` keeps
        these, by name, with their size.
        """
        live = {segment.name: segment for segment in segments if segment.is_live}
        sizes = {name: segment_bytes(segment.path) for name, segment in live.items()}
        for name in [name for name, size in left.items() if sizes.get(name) != size]:
            del left[name]
        rest = [name for name in sizes if name not in left]
        still = [name for name in rest if self._sizes.get(name) == sizes[name]]
        if len(still) < len(rest):
            left |= {name: sizes[name] for name in still}
        self._sizes = sizes
        return [segment for name, segment in live.items() if name not in left]
