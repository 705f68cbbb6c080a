"""Commands run in turns, their wall times and peaks of memory, and the table of both."""

import os
import re
import statistics
import subprocess
import sys
import time
from collections.abc import Callable
from dataclasses import dataclass, field
from pathlib import Path

MIB = 1 << 20


@dataclass(slots=True)
class Runs:
    wall_s: list[float] = field(default_factory=list)
    peak_bytes: int = 0

    @property
    def median_s(self) -> float:
        return statistics.median(self.wall_s)

    @property
    def spread(self) -> str:
        return f"{min(self.wall_s):.2f}-{max(self.wall_s):.2f}"


def run(command: list[str] | str, runs: Runs) -> None:
    """One run; a text is for the shell. The peak is that of the largest process."""
    # Compiled modules are kept, as after an installation.
    environment = {
        name: value for name, value in os.environ.items() if name != "PYTHONDONTWRITEBYTECODE"
    }
    started = time.perf_counter()
    child = subprocess.Popen(
        command,
        shell=isinstance(command, str),
        stdout=subprocess.DEVNULL,
        stderr=subprocess.DEVNULL,
        env=environment,
    )
    _, status, usage = os.wait4(child.pid, 0)
    runs.wall_s.append(time.perf_counter() - started)
    runs.peak_bytes = max(runs.peak_bytes, usage.ru_maxrss * 1024)
    child.returncode = os.waitstatus_to_exitcode(status)
    if child.returncode:
        raise SystemExit(f"error: {command} ended with {child.returncode}")


def peak_bytes(command: list[str] | str) -> int:
    """Of all its processes at one moment, pages that they share counted once (Pss); a run of its
    own, because looking costs.
    """
    child = subprocess.Popen(
        command,
        shell=isinstance(command, str),
        stdout=subprocess.DEVNULL,
        stderr=subprocess.DEVNULL,
    )
    peak = 0
    while child.poll() is None:
        peak = max(peak, sum(_proportional_bytes(pid) for pid in _family(child.pid)))
        time.sleep(0.01)
    return peak


def _family(pid: int) -> list[int]:
    try:
        children = [
            int(word)
            for path in Path(f"/proc/{pid}/task").iterdir()
            for word in (path / "children").read_text().split()
        ]
    except OSError:
        return [pid]
    return [pid, *(each for child in children for each in _family(child))]


def _proportional_bytes(pid: int) -> int:
    try:
        return (
            int(
                re.search(
                    r"^Pss:\s+(\d+)", Path(f"/proc/{pid}/smaps_rollup").read_text(), re.MULTILINE
                )[1]
            )
            * 1024
        )
    except (OSError, TypeError):
        return 0


def in_turns(commands: dict[str, Callable[[], list[str] | str]], rounds: int) -> dict[str, Runs]:
    """After one round that does not count: it reads files into the page cache and compiles
    modules.
    """
    found = {name: Runs() for name in commands}
    for number in range(rounds + 1):
        for name, make in commands.items():
            run(make(), found[name] if number else Runs())
    return found


def table(title: str, head: list[str], rows: list[list[str]]) -> None:
    print(f"\n### {title}\n")
    for row in (head, ["---"] * len(head), *rows):
        print("| " + " | ".join(row) + " |")
    sys.stdout.flush()
