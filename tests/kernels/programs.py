"""Programs of this machine that make what is booted: bounded in time, and told with their last
words when they fail.
"""

import subprocess
from collections.abc import Sequence
from pathlib import Path
from typing import Final

from tests.kernels.failure import CannotTestError

# The longest is debootstrap over a slow line.
_LONGEST_S: Final = 1200


def run(command: Sequence[str], cwd: Path | None = None, longest_s: float | None = None) -> str:
    """What it said on its standard output."""
    longest_s = longest_s or _LONGEST_S
    try:
        done = subprocess.run(
            command, cwd=cwd, capture_output=True, text=True, timeout=longest_s, check=False
        )
    except FileNotFoundError:
        raise CannotTestError(
            f"{command[0]} is missing", "scripts/test-kernels installs what it needs"
        ) from None
    except subprocess.TimeoutExpired:
        raise CannotTestError(f"{command[0]} did not end within {longest_s / 60:.0f} min") from None
    if done.returncode:
        raise CannotTestError(
            f"{command[0]} failed: {(done.stderr.strip() or done.stdout.strip())[-800:]}"
        )
    return done.stdout
