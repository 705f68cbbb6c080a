"""A recorder on a disk of its own, in a guest whose power will be cut: small segments and a small
ring, so that at any moment one is being sealed and the oldest goes.

What it prints is the truth that the recording is held against: the guest's time, ten times per
second, and `ready` once the first segment was dropped.
"""

import subprocess
import sys
import time
from pathlib import Path

from tests.kernels.recorder import Recorder, spinner

DISK = "/dev/vdd"
CONSOLE = Path("/dev/ttyS0")
MOUNTED = Path("/recording")
OPTIONS = ("--segment", "8s", "--max-age", "1m", "--pin-bytes", "1MiB", "--verdicts", "off")


def main() -> None:
    MOUNTED.mkdir()
    subprocess.run(["mount", "-t", "ext4", DISK, str(MOUNTED)], check=True)
    recorder = Recorder(MOUNTED / "recording", *OPTIONS)
    seen: set[str] = set()
    is_ready = False
    with spinner(cpu=1), CONSOLE.open("w") as console:
        while True:
            if recorder.process.poll() is not None:
                sys.exit(recorder.directory.with_suffix(".said").read_text())
            sealed = {path.name for path in recorder.directory.glob("*Z")}
            seen |= sealed
            if not is_ready and sealed < seen:
                is_ready = True
                print("ready", file=console)
            print(f"beat {time.time_ns()}", file=console, flush=True)
            time.sleep(0.1)


if __name__ == "__main__":
    main()
