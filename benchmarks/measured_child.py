"""Run a program and learn what it cost: CPU seconds with all its children, and the memory of the
largest and of all together.
"""

import os
import signal
import subprocess
import threading
import time
from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path


@dataclass(slots=True)
class Cost:
    cpu_s: float
    peak_rss_bytes: int
    """of the process itself"""
    tree_rss_bytes: int
    """largest sum over the process and its children at one moment"""
    last_rss_bytes: int
    tree_pss_bytes: int
    """the same, of pages that several processes share only this one's part"""


class MeasuredChild:
    """Started at once; `finish` ends it by a signal (or waits) and returns its cost."""

    def __init__(
        self,
        command: list[str],
        log: Path | None = None,
        environment: Mapping[str, str] | None = None,
    ) -> None:
        self._log = open(log, "wb") if log else None  # noqa: SIM115 - closed in finish
        output = self._log or subprocess.DEVNULL
        # As installed: byte code is kept, whatever the developer's shell says.
        kept = {
            name: value for name, value in os.environ.items() if name != "PYTHONDONTWRITEBYTECODE"
        }
        self._child = subprocess.Popen(
            command,
            stdin=subprocess.DEVNULL,
            stdout=output,
            stderr=output,
            env=kept | dict(environment or {}),
        )
        self.pid = self._child.pid
        self._peak = self._tree = self._last = self._shared_once = 0
        self._done = threading.Event()
        self._watch = threading.Thread(target=self._observe, daemon=True)
        self._watch.start()

    def cpu_s(self) -> float:
        """CPU seconds so far of the process, its ended children, and its living children."""
        ticks = os.sysconf("SC_CLK_TCK")
        own = _stat(self.pid)
        living = sum(_stat(pid)[0] for pid in children(self.pid))
        return (own[0] + own[1]) / ticks + living / ticks

    def finish(self, number: int | None = signal.SIGTERM, timeout_s: float = 120) -> Cost:
        if self._child.poll() is not None:
            raise SystemExit(f"error: {self._child.args} ended too early; see its log")
        if number is not None:
            self._child.send_signal(number)
        deadline = time.monotonic() + timeout_s
        while True:
            pid, _, usage = os.wait4(self.pid, os.WNOHANG)
            if pid:
                break
            if time.monotonic() > deadline:
                self._child.kill()
            time.sleep(0.02)
        self._child.returncode = 0
        self._done.set()
        self._watch.join()
        if self._log:
            self._log.close()
        return Cost(
            usage.ru_utime + usage.ru_stime, self._peak, self._tree, self._last, self._shared_once
        )

    def _observe(self) -> None:
        while not self._done.wait(0.25):
            own = _rss(self.pid)
            if own:
                self._last = own
                self._peak = max(self._peak, own)
                living = children(self.pid)
                self._tree = max(self._tree, own + sum(map(_rss, living)))
                self._shared_once = max(self._shared_once, sum(map(_pss, [self.pid, *living])))


def children(pid: int) -> list[int]:
    try:
        return [
            int(child)
            for path in Path(f"/proc/{pid}/task").iterdir()
            for child in (path / "children").read_text().split()
        ]
    except OSError:
        return []


def _rss(pid: int) -> int:
    try:
        return int(Path(f"/proc/{pid}/statm").read_text().split()[1]) * os.sysconf("SC_PAGE_SIZE")
    except (OSError, IndexError):
        return 0


def _pss(pid: int) -> int:
    try:
        lines = Path(f"/proc/{pid}/smaps_rollup").read_text().splitlines()
        return next(int(line.split()[1]) * 1024 for line in lines if line.startswith("Pss:"))
    except (OSError, StopIteration):
        return 0


def _stat(pid: int) -> tuple[int, int]:
    """Ticks of the process, and of its ended children."""
    try:
        fields = Path(f"/proc/{pid}/stat").read_text().rpartition(")")[2].split()
        return int(fields[11]) + int(fields[12]), int(fields[13]) + int(fields[14])
    except (OSError, IndexError):
        return 0, 0
