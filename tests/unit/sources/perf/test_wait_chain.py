"""The chain of who waits for whom, followed on the live kernel through a lock, a socket and a stop."""

import fcntl
import os
import signal
import socket
import tempfile
import time
from collections.abc import Callable
from pathlib import Path

import pytest

from necroscope.model.reading import Moment
from necroscope.model.tables import TABLES
from necroscope.model.units import NS_PER_MS, NS_PER_S
from necroscope.sources.perf.waits import Waits
from necroscope.sources.sysfs import cpus

COLUMNS = [column.name for column in TABLES["waits"].columns]
POSSIBLE = Path("/sys/devices/system/cpu/possible")


def child(body: Callable[[], object]) -> int:
    pid = os.fork()
    if pid == 0:
        body()
        os._exit(0)
    return pid


@pytest.mark.root
@pytest.mark.kernel
def test_from_a_lock_on_a_file_over_a_socket_to_a_process_that_is_stopped() -> None:
    ours, theirs = socket.socketpair()
    with tempfile.NamedTemporaryFile() as file:

        def hold() -> None:
            theirs.close()
            with open(file.name, "rb") as own:
                fcntl.flock(own, fcntl.LOCK_EX)
                ours.send(b"?")
                ours.recv(1)

        def stop() -> None:
            ours.close()
            theirs.recv(1)
            os.kill(os.getpid(), signal.SIGSTOP)

        def want() -> None:
            ours.close()
            theirs.close()
            time.sleep(0.1)
            with open(file.name, "rb") as own:
                fcntl.flock(own, fcntl.LOCK_EX)

        source = Waits(Path("/"), cpus.parse(POSSIBLE.read_text()), 20 * NS_PER_MS, lambda _: "f")
        source.read(Moment(0, time.monotonic_ns()))
        if source._probe is None or not source._probe.sees_calls:
            source.close()
            pytest.skip("this kernel does not tell in which system call a task sleeps (5.15 does)")
        backend, holder, waiter = child(stop), child(hold), child(want)
        ours.close()
        theirs.close()
        rows = []
        try:
            for _ in range(5):
                time.sleep(0.5)
                moment = Moment(time.monotonic_ns(), time.monotonic_ns())
                rows += source.read(moment).rows["waits"]
        finally:
            source.close()
            for pid in (waiter, holder, backend):
                os.kill(pid, signal.SIGKILL)
                os.waitpid(pid, 0)
    waits = {row[COLUMNS.index("kind")]: dict(zip(COLUMNS, row, strict=True)) for row in rows}
    chain = [(waits[kind]["pid"], waits[kind]["by_pid"]) for kind in ("file_lock", "unanswered")]
    assert chain == [(waiter, holder), (holder, backend)]
    assert waits["stopped"]["pid"] == backend
    assert isinstance(waits["unanswered"]["waited_ns"], int)
    assert waits["unanswered"]["waited_ns"] >= NS_PER_S // 2
