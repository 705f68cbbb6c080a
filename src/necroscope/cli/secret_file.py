"""Files that hold a token or a secret should be for their owner alone."""

import stat
from pathlib import Path


def reading_warning(path: Path) -> str | None:
    """If every user of this machine may read it; None for one that is not there: whoever reads it
    says so.
    """
    try:
        is_open = path.stat().st_mode & stat.S_IROTH
    except OSError:
        return None
    return (
        f"every user of this machine may read {path}; end that with: chmod 600 {path}"
        if is_open
        else None
    )
