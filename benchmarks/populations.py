"""What the table `populations` costs on a node with 100,000 cgroups and 50,000 sockets, which are
really made and removed again; needs root.

`scripts/bench populations [SECONDS]`. The source is read as the recorder reads it, once with all
numbers still and once with mounts and sockets that come and go; CPU is that of the process, the
background thread included.
"""

import os
import resource
import signal
import socket
import sys
import time
from collections.abc import Callable, Iterator
from contextlib import closing, contextmanager
from pathlib import Path
from typing import NoReturn

from necroscope.model.reading import Moment
from necroscope.sources.procfs.populations import Populations

CGROUPS, SOCKETS = 100_000, 50_000
BAR = 0.002
_HIERARCHIES = ("/sys/fs/cgroup/unified", "/sys/fs/cgroup")
_FANOUT = 500
_EACH = 4_000


@contextmanager
def many_cgroups(count: int) -> Iterator[int]:
    """Empty ones of the unified hierarchy."""
    root = next(Path(one) for one in _HIERARCHIES if Path(one, "cgroup.procs").exists())
    top = root / f"bench-populations-{os.getpid()}"
    try:
        top.mkdir()
        for number in range(count):
            parent = top / str(number // _FANOUT)
            if number % _FANOUT == 0:
                parent.mkdir()
            (parent / str(number)).mkdir()
        yield count
    finally:
        for directory, _, _ in os.walk(top, topdown=False):
            os.rmdir(directory)


class Sockets:
    """Held by children, as many as one process may have each: half of TCP, half of UNIX."""

    def __init__(self) -> None:
        self._children: list[int] = []

    def hold(self, count: int) -> None:
        for first in range(0, count, _EACH):
            ready, said = os.pipe()
            child = os.fork()
            if child == 0:
                _hold_sockets(min(_EACH, count - first), said)
            os.close(said)
            os.read(ready, 1)
            os.close(ready)
            self._children.append(child)

    def close(self) -> None:
        for child in self._children:
            os.kill(child, signal.SIGKILL)
            os.waitpid(child, 0)


def _hold_sockets(count: int, said: int) -> NoReturn:
    _, hard = resource.getrlimit(resource.RLIMIT_NOFILE)
    resource.setrlimit(resource.RLIMIT_NOFILE, (hard, hard))
    held = [socket.socket(socket.AF_INET if n % 2 else socket.AF_UNIX) for n in range(count)]
    os.write(said, b"1")
    # It ends with its parent, whatever happens to that.
    while held and os.getppid() != 1:
        time.sleep(1)
    os._exit(0)


def measure(seconds: float, disturb: Callable[[], None]) -> tuple[float, int, int, float]:
    """Of a core, reads, rows, and the longest read in ms."""
    source = Populations(Path("/"))
    started_s, cpu_s, reads, rows, longest_s = time.monotonic(), time.process_time(), 0, 0, 0.0
    spent_s = 0.0
    while time.monotonic() - started_s < seconds:
        before_s = time.process_time()
        disturb()
        spent_s += time.process_time() - before_s
        now = Moment(time.time_ns(), time.monotonic_ns())
        if source.idle_until_ns <= now.monotonic_ns:
            begin_s = time.monotonic()
            rows += len(source.read(now).rows["populations"])
            longest_s = max(longest_s, time.monotonic() - begin_s)
            reads += 1
        time.sleep(source.period_s)
    share = (time.process_time() - cpu_s - spent_s) / (time.monotonic() - started_s)
    source.close()
    return share, reads, rows, longest_s * 1e3


def main(seconds: float = 60.0) -> None:
    print("| node | of a core | bar | reads | rows | longest read |")
    print("| --- | --- | --- | --- | --- | --- |")

    def report(name: str, disturb: Callable[[], None] = lambda: None) -> bool:
        share, reads, rows, longest_ms = measure(seconds, disturb)
        print(
            f"| {name} | {share:.3%} | {BAR:.1%} | {reads} | {rows} | {longest_ms:.1f} ms |",
            flush=True,
        )
        return share <= BAR

    is_met = report("as it is")
    sockets = Sockets()
    with many_cgroups(CGROUPS), closing(sockets):
        sockets.hold(SOCKETS)
        large = f"{CGROUPS:,} cgroups, {SOCKETS:,} sockets"
        is_met &= report(large)
        is_met &= report(f"{large}, 2,000 more every 2 s", lambda: sockets.hold(2_000))
    sys.exit(0 if is_met else 1)


if __name__ == "__main__":
    main(*map(float, sys.argv[1:2]))
