"""Which rules judged: the version, and a checksum of the files that a verdict depends on, so that
the ledger of other rules is known as such, released or not.
"""

import zlib
from functools import cache
from importlib import resources
from importlib.resources.abc import Traversable

from necroscope import __version__


@cache
def rules() -> str:
    package = resources.files("necroscope")
    return f"{__version__} {checksum(package / 'analysis', package / 'stacks'):08x}"


def checksum(*folders: Traversable) -> int:
    """Of all Python files, in an order that does not depend on the file system."""
    crc = 0
    for folder in folders:
        for entry in sorted(folder.iterdir(), key=lambda one: one.name):
            if entry.is_dir():
                crc = zlib.crc32(checksum(entry).to_bytes(4), crc)
            elif entry.name.endswith(".py"):
                crc = zlib.crc32(entry.read_bytes(), crc)
    return crc
