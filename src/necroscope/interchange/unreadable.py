"""A file or directory that the system does not let us read, in words."""

from pathlib import Path

from necroscope.errors import UsageError


def unreadable(path: Path, error: OSError) -> UsageError:
    return UsageError(
        f"cannot read {path}: {error.strerror}", "check the path, and that you may read it"
    )
