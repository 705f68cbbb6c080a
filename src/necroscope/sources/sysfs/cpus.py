"""CPU lists such as `0-3,7`, and which CPUs are online (/sys/devices/system/cpu/online;
lib/bitmap-str.c prints them).
"""

from pathlib import Path

from necroscope.errors import SourceUnavailable
from necroscope.sources.kept_file import KeptFile


def parse(text: bytes | str) -> tuple[int, ...]:
    """The CPUs of a list in rising order; an empty list is no CPU."""
    cpus: list[int] = []
    for part in (
        text.decode("ascii").strip().split(",")
        if isinstance(text, bytes)
        else text.strip().split(",")
    ):
        first, dash, last = part.partition("-")
        if part:
            cpus.extend(range(int(first), int(last if dash else first) + 1))
    return tuple(cpus)


class OnlineCpus:
    """The CPUs online now; parsed again only when the text changed."""

    def __init__(self, root: Path) -> None:
        self._file = KeptFile(root / "sys/devices/system/cpu/online")
        self._text = b""
        self._cpus: tuple[int, ...] = ()

    def read(self) -> tuple[int, ...] | None:
        """None where sysfs is absent: then nothing is known, rather than that no CPU is online."""
        try:
            text = self._file.read_record()
        except SourceUnavailable:
            return None
        if text != self._text:
            self._cpus = parse(text)
            self._text = text
        return self._cpus or None

    def close(self) -> None:
        self._file.close()
