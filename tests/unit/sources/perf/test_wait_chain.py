"""The chain of who waits for whom, followed on the live kernel through a lock, a socket and a stop."""

import fcntl
import mmap
import multiprocessing
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
from necroscope.sources.perf import btf
from necroscope.sources.perf.waits import Waits
from necroscope.sources.sysfs import cpus

COLUMNS = [column.name for column in TABLES["waits"].columns]
FILE_BYTES = 256 << 20
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


@pytest.mark.root
@pytest.mark.kernel
def test_who_reads_under_a_lock_that_another_wants_to_write_is_its_holder() -> None:
    """i_rwsem: a read past the page cache has it for as long as the disk takes, a write wants it."""
    if not btf.read(Path("/"), ("task_struct",)).has("task_struct", "blocker"):
        pytest.skip("this kernel does not say for which lock a task sleeps (6.16 may)")
    with tempfile.NamedTemporaryFile(dir="/var/tmp") as file:
        file.truncate(FILE_BYTES)
        for _ in range(FILE_BYTES >> 20):
            file.write(b"x" * (1 << 20))
        file.flush()

        def read_directly() -> None:
            descriptor = os.open(file.name, os.O_RDONLY | os.O_DIRECT)
            area = mmap.mmap(-1, FILE_BYTES)
            while True:
                os.preadv(descriptor, [area], 0)

        def write() -> None:
            descriptor = os.open(file.name, os.O_WRONLY)
            while True:
                os.pwrite(descriptor, b"y", 0)

        source = Waits(Path("/"), cpus.parse(POSSIBLE.read_text()), 20 * NS_PER_MS, lambda _: "f")
        source.read(Moment(0, time.monotonic_ns()))
        reader, writer = child(read_directly), child(write)
        holders: set[object] = set()
        deadline_s = time.monotonic() + 20
        try:
            while reader not in holders and time.monotonic() < deadline_s:
                time.sleep(0.02)
                moment = Moment(time.monotonic_ns(), time.monotonic_ns())
                rows = source.read(moment).rows["waits"]
                waits = [dict(zip(COLUMNS, row, strict=True)) for row in rows]
                own = [wait for wait in waits if wait["pid"] == writer and wait["is_open"]]
                holders |= {wait["by_pid"] for wait in own}
        finally:
            source.close()
            for pid in (reader, writer):
                os.kill(pid, signal.SIGKILL)
                os.waitpid(pid, 0)
    assert reader in holders


@pytest.mark.root
@pytest.mark.kernel
def test_who_has_a_lock_while_its_only_child_works_is_found_with_it() -> None:
    source = opened_source()
    with tempfile.NamedTemporaryFile() as file:
        ours, theirs = os.pipe()

        def hold() -> None:
            with open(file.name, "rb") as own:
                fcntl.flock(own, fcntl.LOCK_EX)
                worker = child(signal.pause)
                os.write(theirs, worker.to_bytes(4, "little"))
                os.waitpid(worker, 0)

        def want() -> None:
            with open(file.name, "rb") as own:
                fcntl.flock(own, fcntl.LOCK_EX)

        holder = child(hold)
        worker = int.from_bytes(os.read(ours, 4), "little")
        waiter = child(want)
        try:
            rows = rows_until(source, {"file_lock", "unanswered"})
        finally:
            source.close()
            for pid in (waiter, worker, holder):
                os.kill(pid, signal.SIGKILL)
            for pid in (waiter, holder):
                os.waitpid(pid, 0)
            os.close(ours)
            os.close(theirs)
    link = next(row for row in rows if row["kind"] == "unanswered")
    assert (link["pid"], link["by_pid"]) == (holder, worker)


def unserved(rows: list[dict[str, object]]) -> list[dict[str, object]]:
    return [row for row in rows if row["kind"] == "unserved"]


def rows_until(source: Waits, kinds: set[str], longest_s: float = 10) -> list[dict[str, object]]:
    """Of ticks until there is a row of each kind, for this long at most."""
    rows: list[dict[str, object]] = []
    until_s = time.monotonic() + longest_s
    while not kinds <= {str(row["kind"]) for row in rows} and time.monotonic() < until_s:
        time.sleep(0.25)
        moment = Moment(time.monotonic_ns(), time.monotonic_ns())
        read = source.read(moment).rows.get("waits", [])
        rows += [dict(zip(COLUMNS, row, strict=True)) for row in read]
    return rows


def opened_source() -> Waits:
    source = Waits(Path("/"), cpus.parse(POSSIBLE.read_text()), 20 * NS_PER_MS, lambda _: "f")
    source.read(Moment(0, time.monotonic_ns()))
    if source._probe is None or not source._probe.sees_calls:
        source.close()
        pytest.skip("this kernel does not tell in which system call a task sleeps (5.15 does)")
    return source


@pytest.mark.root
@pytest.mark.kernel
def test_a_process_that_waits_for_a_semaphore_is_found_with_a_relative_that_sleeps() -> None:
    """multiprocessing.Lock is a semaphore, and knows no owner."""
    semaphore = multiprocessing.Semaphore(0)
    source = opened_source()
    sleeper, waiter = child(lambda: time.sleep(30)), child(semaphore.acquire)
    try:
        rows = rows_until(source, {"semaphore", "asleep"})
        semaphore.release()
        os.waitpid(waiter, 0)
        rows += rows_until(source, set())
        last = source.read(Moment(time.monotonic_ns(), time.monotonic_ns())).rows["waits"]
        rows += [dict(zip(COLUMNS, row, strict=True)) for row in last]
    finally:
        source.close()
        os.kill(sleeper, signal.SIGKILL)
        os.waitpid(sleeper, 0)
    own = [row for row in rows if row["kind"] == "semaphore" and row["pid"] == waiter]
    assert own[0]["is_open"]
    assert own[0]["futex"]
    assert (own[-1]["is_open"], own[-1]["by_pid"]) == (False, os.getpid())
    naps = {row["pid"]: row["waited_ns"] for row in rows if row["kind"] == "asleep"}
    assert isinstance(naps[sleeper], int)
    assert NS_PER_S // 2 <= naps[sleeper] < 20 * NS_PER_S


@pytest.mark.root
@pytest.mark.kernel
def test_a_client_of_a_server_that_is_stopped_is_found() -> None:
    source = opened_source()
    with socket.create_server(("127.0.0.1", 0)) as listener:

        def serve() -> None:
            client, _ = listener.accept()
            os.kill(os.getpid(), signal.SIGSTOP)
            client.recv(1)

        def ask() -> None:
            address = listener.getsockname()
            listener.close()
            with socket.create_connection(address) as own:
                own.send(b"?")
                own.recv(1)

        server = child(serve)
        client = child(ask)
    try:
        rows = rows_until(source, {"unserved"})
        until_s = time.monotonic() + 10
        while len(unserved(rows)) < 3 and time.monotonic() < until_s:
            rows += rows_until(source, {"another tick"}, 0.3)
    finally:
        source.close()
        for pid in (client, server):
            os.kill(pid, signal.SIGKILL)
            os.waitpid(pid, 0)
    assert {(row["pid"], row["by_pid"]) for row in unserved(rows)} == {(client, server)}
    waited = [row["waited_ns"] for row in unserved(rows)]
    assert isinstance(waited[0], int)
    assert NS_PER_S <= waited[0] < 10 * NS_PER_S
    assert len(waited) == 3, "it is said again as it becomes longer"
    assert waited == sorted(waited)  # type: ignore[type-var]


@pytest.mark.root
@pytest.mark.kernel
def test_who_writes_to_a_full_tcp_socket_is_found_with_who_has_not_read_it() -> None:
    source = opened_source()
    with socket.create_server(("127.0.0.1", 0)) as listener:

        def ask() -> None:
            address = listener.getsockname()
            listener.close()
            with socket.create_connection(address) as own:
                os.kill(os.getpid(), signal.SIGSTOP)
                own.recv(1)

        def serve() -> None:
            client, _ = listener.accept()
            listener.close()
            client.sendall(bytes(64 << 20))

        server = child(serve)
        client = child(ask)

    def is_told(rows: list[dict[str, object]]) -> bool:
        return any((row["pid"], row["by_pid"]) == (server, client) for row in rows)

    rows: list[dict[str, object]] = []
    try:
        until_s = time.monotonic() + 20
        while not is_told(rows) and time.monotonic() < until_s:
            rows += rows_until(source, {"another tick"}, 0.3)
    finally:
        source.close()
        for pid in (client, server):
            os.kill(pid, signal.SIGKILL)
            os.waitpid(pid, 0)
    assert is_told(rows)
    assert {row["kind"] for row in rows if row["pid"] == server} == {"unread"}
