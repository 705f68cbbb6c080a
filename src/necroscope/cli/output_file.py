"""A file that is there whole or not at all: written next to its place and renamed; what is not a
regular file is written straight.
"""

import os
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import BinaryIO

from necroscope.errors import NecroscopeError
from necroscope.model.names import clean


@contextmanager
def output_file(path: Path) -> Iterator[BinaryIO]:
    """With the umask's permissions. An error of the disk is one of ours."""
    try:
        target = path.resolve()
        # Renaming over /dev/null or a pipe would replace it.
        if target.exists() and not target.is_file():
            with target.open("wb") as file:
                yield file
            return
        beside = target.with_name(f".{target.name[:200]}.{os.getpid()}.part")
        with beside.open("xb") as file:
            try:
                yield file
                file.flush()
                os.fsync(file.fileno())
                beside.replace(target)
            except BaseException:
                beside.unlink(missing_ok=True)
                raise
    except OSError as error:
        raise NecroscopeError(
            f"cannot write {clean(str(path))}: {error.strerror}",
            "name a file in a directory you own",
        ) from None
