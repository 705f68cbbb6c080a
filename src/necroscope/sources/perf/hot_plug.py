"""CPU hot-plug: the rings follow the cores that /proc/stat lists."""

from collections.abc import Callable, Collection

from necroscope.errors import NecroscopeError
from necroscope.model.reading import Moment, Reading, Source, Trouble
from necroscope.sources.perf.rings import Rings


class HotPlug(Source):
    """Has no rows; a core whose ring cannot be opened is a gap of `samples`."""

    name = "hot-plug"
    tables: tuple[str, ...] = ()

    def __init__(self, rings: Rings, online: Callable[[], Collection[int]]) -> None:
        self._rings = rings
        self._online = online

    def read(self, now: Moment) -> Reading:  # noqa: ARG002
        online = self._online()
        try:
            if online and online != self._rings.cpus:
                self._rings.follow(online, len(online))
        except NecroscopeError as error:
            return Reading(parts=(Trouble("cores to sample", ("samples",), error),))
        return Reading()
