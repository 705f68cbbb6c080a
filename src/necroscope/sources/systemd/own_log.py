"""The last lines that a unit wrote to the journal, by `journalctl`, which knows the journal's
formats: bounded, cleaned, and only when a check-up asks.
"""

import subprocess
from pathlib import Path
from typing import Final

from necroscope.model.names import clean

_TIMEOUT_S: Final = 3.0
_LINE_LIMIT: Final = 300
_OUTPUT_BYTES: Final = 1 << 18


def read_last_lines(root: Path, unit: str, lines: int) -> tuple[str, ...]:
    """None of them where there is no journal, or it does not answer in time."""
    command = ["journalctl", f"--root={root}", "--no-pager", "--quiet", "--output=cat"]
    # What systemd itself says of the unit is known already: that it started, and how it ended.
    command += [f"--lines={lines}", f"_SYSTEMD_UNIT={unit}"]
    try:
        done = subprocess.run(
            command,
            stdin=subprocess.DEVNULL,
            capture_output=True,
            timeout=_TIMEOUT_S,
            check=False,
        )
    except (OSError, subprocess.TimeoutExpired, ValueError):
        return ()
    found = done.stdout[-_OUTPUT_BYTES:].splitlines() if not done.returncode else []
    return tuple(clean(line, _LINE_LIMIT) for line in found if line.strip())[-lines:]
