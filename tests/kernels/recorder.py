"""A recorder inside a guest: started as a user would, watched by what it says, ended by a signal or
by its own time.
"""

import json
import os
import subprocess
import sys
import time
from collections.abc import Callable
from pathlib import Path
from typing import Any

COMMAND = [sys.executable, "-m", "necroscope"]
# An emulated processor is slow: what is tested is not what it costs.
OPTIONS = [
    "--json",
    "--quiet",
    "--free-floor",
    "0",
    "--budget",
    "100",
    "--facts",
    "0s",
    "--hz",
    "49",
]
SPIN = "import ctypes\nctypes.CDLL(None).prctl(15, b'spinner-42', 0, 0, 0)\nwhile True: pass"


class Recorder:
    """`with Recorder(directory) as recorder:` records until the block ends."""

    def __init__(
        self, directory: Path, *options: str, deny: Callable[[], None] | None = None
    ) -> None:
        self.directory = directory
        command = [*COMMAND, "record", "--dir", str(directory), *OPTIONS, *options]
        with directory.with_suffix(".said").open("wb") as said:
            self.process = subprocess.Popen(command, stdout=said, stderr=said, preexec_fn=deny)

    def __enter__(self) -> "Recorder":
        self.wait_until_it_records()
        return self

    def __exit__(self, *_: object) -> None:
        self.process.terminate()
        self.wait()

    def wait_until_it_records(self) -> None:
        """Emulated, it takes its time to start: then its first rows are there, and the next come a
        second apart.
        """
        self.wait_for_flushes(2)

    def wait_for_flushes(self, count: int) -> None:
        """Each is three seconds of rows or more. By the clock alone a recorder on a slow machine
        may have seen nothing yet.
        """
        size_bytes = self._size_bytes()
        while count:
            if self.process.poll() is not None:
                raise SystemExit(
                    f"the recorder ended: {self.directory.with_suffix('.said').read_text()}"
                )
            time.sleep(0.1)
            if (latest := self._size_bytes()) != size_bytes:
                size_bytes, count = latest, count - 1

    def _size_bytes(self) -> int:
        return sum(
            path.stat().st_size for path in self.directory.glob("*.live/*") if path.is_file()
        )

    def wait(self) -> None:
        if self.process.wait():
            raise SystemExit(
                f"the recorder failed: {self.directory.with_suffix('.said').read_text()}"
            )


def record(
    directory: Path, flushes: int, *options: str, deny: Callable[[], None] | None = None
) -> None:
    """This many flushes after its start: three seconds each where the machine is not slower than
    that.
    """
    with Recorder(directory, *options, deny=deny) as recorder:
        recorder.wait_for_flushes(flushes)


def info(directory: Path) -> dict[str, Any]:
    output = subprocess.run(
        [*COMMAND, "info", "--json", str(directory)], stdout=subprocess.PIPE, check=True
    ).stdout
    return dict(json.loads(output))


def spinner(cpu: int) -> subprocess.Popen[bytes]:
    """A process that never sleeps on that core. Whoever starts it kills it."""
    return subprocess.Popen(
        [sys.executable, "-c", SPIN], preexec_fn=lambda: os.sched_setaffinity(0, {cpu})
    )
