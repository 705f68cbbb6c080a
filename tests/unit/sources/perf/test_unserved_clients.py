"""Clients of a server that has not read what they sent, asked of the live kernel."""

import os
import signal
import socket
import time
from collections.abc import Callable, Iterator
from contextlib import ExitStack, contextmanager, suppress
from pathlib import Path

import pytest

from necroscope.model.units import NS_PER_S
from necroscope.sources.perf.asleep_tasks import AsleepTask
from necroscope.sources.perf.unserved_clients import ClientConnection, Sock, UnservedClients, join
from necroscope.sources.perf.wait_clients import longest_asleep
from necroscope.sources.perf.wait_records import WaitTask

LISTENERS: dict[str, Callable[[Path], socket.socket]] = {
    "ipv4": lambda _: socket.create_server(("127.0.0.1", 0)),
    "ipv6": lambda _: socket.create_server(("::1", 0), family=socket.AF_INET6),
    "both": lambda _: socket.create_server(("::", 0), family=socket.AF_INET6, dualstack_ipv6=True),
    "unix": lambda folder: _listening(str(folder / "socket")),
}


def _listening(path: str) -> socket.socket:
    own = socket.socket(socket.AF_UNIX)
    own.bind(path)
    own.listen()
    return own


@contextmanager
def child(body: Callable[[], object]) -> Iterator[int]:
    pid = os.fork()
    if pid == 0:
        body()
        os._exit(0)
    try:
        yield pid
    finally:
        os.kill(pid, signal.SIGKILL)
        os.waitpid(pid, 0)


def connect(listener: socket.socket) -> socket.socket:
    own = socket.socket(socket.AF_UNIX if listener.family == socket.AF_UNIX else socket.AF_INET6)
    address = listener.getsockname()
    if listener.family == socket.AF_INET or address[0] == "::":
        own = socket.socket(socket.AF_INET)
        address = ("127.0.0.1", address[1])
    own.connect(address)
    return own


def find_clients(server: int, client: int) -> list[ClientConnection]:
    """As soon as the client sleeps to read."""
    unserved = UnservedClients(Path("/"))
    until = time.monotonic() + 10
    try:
        while "recv" not in Path(f"/proc/{client}/stack").read_text():
            if time.monotonic() > until:
                pytest.fail("the client does not come to sleep")
            os.sched_yield()
        return unserved.find({server})
    finally:
        unserved.close()


@pytest.mark.root
@pytest.mark.kernel
@pytest.mark.parametrize("kind", LISTENERS)
@pytest.mark.parametrize("accepts", [True, False])
def test_a_client_whose_question_lies_unread_is_found(
    kind: str, accepts: bool, tmp_path: Path
) -> None:
    with ExitStack() as opened:
        listener = opened.enter_context(LISTENERS[kind](tmp_path))

        def serve() -> None:
            accepted = listener.accept()[0] if accepts else None
            signal.pause()
            del accepted

        def ask() -> None:
            own = connect(listener)
            listener.close()
            own.send(b"a question")
            own.recv(1)

        server = opened.enter_context(child(serve))
        client = opened.enter_context(child(ask))
        listener.close()
        found = find_clients(server, client)
    assert [(one.server, one.client) for one in found] == [(server, client)]


@pytest.mark.root
@pytest.mark.kernel
@pytest.mark.parametrize("kind", ["ipv4", "unix"])
def test_a_client_that_has_asked_nothing_is_idle(kind: str, tmp_path: Path) -> None:
    with ExitStack() as opened:
        listener = opened.enter_context(LISTENERS[kind](tmp_path))

        def serve() -> None:
            client, _ = listener.accept()
            client.recv(1)
            signal.pause()

        def ask() -> None:
            own = connect(listener)
            own.send(b"x")
            own.recv(1)

        server = opened.enter_context(child(serve))
        client = opened.enter_context(child(ask))
        listener.close()
        until = time.monotonic() + 10
        while "recv" in Path(f"/proc/{server}/stack").read_text() and time.monotonic() < until:
            os.sched_yield()
        assert find_clients(server, client) == []


@pytest.mark.root
@pytest.mark.kernel
def test_a_server_that_waits_for_the_next_question_of_a_stopped_client_is_idle() -> None:
    with ExitStack() as opened:
        listener = opened.enter_context(LISTENERS["ipv4"](Path()))

        def serve() -> None:
            own, _ = listener.accept()
            own.send(b"an answer")
            own.recv(1)

        def ask() -> None:
            own = connect(listener)
            listener.close()
            signal.pause()
            del own

        server = opened.enter_context(child(serve))
        client = opened.enter_context(child(ask))
        assert not any(one.is_served for one in find_clients(client, server))


@pytest.mark.root
@pytest.mark.kernel
@pytest.mark.parametrize(
    ("listens_at", "asks_at"),
    [("127.0.0.1", "127.0.0.1"), ("0.0.0.0", "127.0.0.1"), ("::1", "::1"), ("::", "127.0.0.1")],
)
def test_who_asked_a_resolver_that_reads_nothing_is_found_and_who_gave_up_is_not(
    listens_at: str, asks_at: str
) -> None:
    with ExitStack() as opened:
        family = socket.AF_INET6 if ":" in listens_at else socket.AF_INET
        resolver = opened.enter_context(socket.socket(family, socket.SOCK_DGRAM))
        resolver.bind((listens_at, 0))

        def ask() -> None:
            port = resolver.getsockname()[1]
            resolver.close()
            for lasts_s in (0, 60):
                with socket.socket(
                    socket.AF_INET6 if ":" in asks_at else socket.AF_INET, socket.SOCK_DGRAM
                ) as own:
                    own.connect((asks_at, port))
                    own.send(b"a question")
                    own.settimeout(None if lasts_s else 0.001)
                    with suppress(TimeoutError):
                        own.recv(1)

        server = opened.enter_context(child(signal.pause))
        client = opened.enter_context(child(ask))
        resolver.close()
        found = find_clients(server, client)
    assert [(one.server, one.client, one.is_datagram) for one in found] == [(server, client, True)]


def sock(pid: int, ports: tuple[int, int], namespace: int = 1, **rest: bool) -> Sock:
    home = bytes([127, 0, 0, 1])
    waits = rest.get("has_waiter", True)
    return Sock(
        pid, 3, 0, 0, rest.get("is_server", False), waits, 2, ports, (home, home), namespace
    )


def test_the_same_addresses_in_another_network_namespace_are_another_connection() -> None:
    server = sock(80, (40000, 443))
    listener = sock(80, (0, 443))
    here, elsewhere = sock(71, (443, 40000)), sock(72, (443, 40000), 2)
    assert list(join([server], [elsewhere, listener])) == []
    assert list(join([server], [here, listener])) == [ClientConnection(80, 71, 3)]
    (either,) = join([server], [here])
    assert not either.is_served, "nobody listens there: either may be the server"
    assert list(join([server], [listener, sock(71, (443, 40000), has_waiter=False)])) == []


def test_a_thread_waits_for_a_connection_if_it_reads_it_or_polls() -> None:
    task = WaitTask(71, 71, "client", 0, "other", 0, 2)
    connection = ClientConnection(80, 71, 3)
    reads, other = (AsleepTask(task, 5 * NS_PER_S, 0, first, 0) for first in (3, 4))
    assert longest_asleep(connection, [other, reads]) == reads
    assert longest_asleep(connection, [other]) is None
    writes = AsleepTask(task, 5 * NS_PER_S, 1, 3, 0)
    either = connection._replace(is_served=False)
    assert longest_asleep(either, [reads, writes]) == writes
    assert longest_asleep(either, [reads]) is None, "it may be the server of the other"
    polls = AsleepTask(task, 5 * NS_PER_S, 7, 0x7F00, 1)
    assert longest_asleep(connection, [polls]) == polls
    assert longest_asleep(connection, [polls._replace(asleep_ns=NS_PER_S // 2)]) is None


@pytest.mark.parametrize(
    ("machine", "poll", "epoll"), [("x86_64", 7, 232), ("x86_64", 271, 281), ("aarch64", 73, 22)]
)
def test_who_sends_metrics_and_waits_for_all_it_has_open_is_no_client_of_who_reads_them(
    machine: str, poll: int, epoll: int, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("platform.machine", lambda: machine)
    task = WaitTask(71, 71, "client", 0, "other", 0, 2)
    polls, loops = (AsleepTask(task, 5 * NS_PER_S, call, 7, 0) for call in (poll, epoll))
    metrics = ClientConnection(80, 71, 3, is_datagram=True)
    assert longest_asleep(metrics, [loops]) is None
    assert longest_asleep(metrics, [loops, polls]) == polls
    assert longest_asleep(metrics._replace(is_datagram=False), [loops]) == loops


def test_a_kernel_without_btf_has_no_answer(tmp_path: Path) -> None:
    assert UnservedClients(tmp_path).find([1]) == []
