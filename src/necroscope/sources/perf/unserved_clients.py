"""Who waits for a server of this node that has not even read the question: a BPF program that is
called for every open file of every task, when it is asked for (bpf_iter_task_file, Linux 5.8).

Asked for processes that were found stopped, blocked or without a core. A client is found from its
server's side, because a program that waits for an answer sleeps as one that is idle does. The first
walk finds the sockets of these processes in which bytes lie unread, and of those that wait to be
accepted the first. The second finds who has the other end, and whether the port is one that is
listened on: then the other end is the client. A write to a full socket says by itself which end
waits. A server's socket of UDP is asked for the datagram that came last: who sent it is the other
end, if its own socket is connected. Connections between network namespaces are found unless their
addresses are translated on the way.

    server's file --> sock: bytes unread --> addresses and ports -+-> file of a sock with the same
                           --> UNIX: the peer's file -------------+   ones the other way round
"""

import struct
from collections.abc import Iterable, Iterator, Sequence
from pathlib import Path
from typing import Final, NamedTuple

from necroscope.sources.perf import btf
from necroscope.sources.perf.bpf import IteratorProgram
from necroscope.sources.perf.file_walk import FileWalk
from necroscope.sources.perf.process_table import write_processes
from necroscope.sources.perf.unserved_program import (
    MAP_BYTES,
    MOST_CONNECTIONS,
    OF_DATAGRAMS,
    PEER_FILES,
    PORT_PAIRS,
    RECORD_BYTES,
    SOCK_BYTES,
    WALK,
    WANTED,
    SockPlaces,
    find_places,
    over_files,
)

_MOST_RECORDS: Final = 64
_HEAD: Final = struct.Struct("<QQQQQQ")
_AF_INET6: Final = 10
_LOOPBACK: Final = 127


class ClientConnection(NamedTuple):
    """A client, by its process and descriptor, and the server that has not read what it sent.
    `is_served`: it is known that this is the server, and not a client that has not read an answer.
    """

    server: int
    client: int
    descriptor: int
    is_datagram: bool = False
    is_served: bool = True


class Sock(NamedTuple):
    """As a walk writes it. `file` is its own, `peer_file` that of a UNIX socket's other end;
    `is_server` if that is known, `has_waiter`: a task sleeps or polls at it.
    """

    pid: int
    descriptor: int
    file: int
    peer_file: int
    is_server: bool
    has_waiter: bool
    family: int
    ports: tuple[int, int]
    addresses: tuple[bytes, bytes]
    namespace: int
    is_datagram: bool = False


class UnservedClients:
    """Opens at the first question; where it cannot, there is no answer."""

    def __init__(self, root: Path) -> None:
        self._walk_files = FileWalk(root, WANTED, MAP_BYTES, self._make_code)
        self._places: SockPlaces | None = None

    def find(self, servers: Iterable[int]) -> list[ClientConnection]:
        """Clients of these processes, of other processes."""
        walk = self._walk_files.open()
        if walk is None or self._places is None:
            return []
        walk.map.clear()
        write_processes(walk.map, servers)
        try:
            unread = self._walk(walk.files, self._places)[:MOST_CONNECTIONS]
            if not unread:
                return []
            for place, sock in enumerate(unread):
                walk.map.write_word(PEER_FILES + 8 * place, sock.peer_file)
                walk.map.write_word(PORT_PAIRS + 16 * place, pack_ports(other_way(sock.ports)))
                walk.map.write_word(PORT_PAIRS + 16 * place + 8, pack_ports((0, sock.ports[1])))
            walk.map.write_word(WALK, 1)
            return list(join(unread, self._walk(walk.files, self._places)))
        except OSError:  # more files than the kernel walks in one go
            return []

    def close(self) -> None:
        self._walk_files.close()

    def _walk(self, files: IteratorProgram, places: SockPlaces) -> list[Sock]:
        data = files.read(_MOST_RECORDS * RECORD_BYTES)
        whole = len(data) // RECORD_BYTES * RECORD_BYTES
        return [
            parse_sock(data[at : at + RECORD_BYTES], places) for at in range(0, whole, RECORD_BYTES)
        ]

    def _make_code(self, types: btf.KernelTypes, own_map: int) -> bytes:
        self._places = find_places(types)
        return over_files(self._places, own_map)


def parse_sock(record: bytes, places: SockPlaces) -> Sock:
    pid, descriptor, file, peer_file, is_server, has_waiter = _HEAD.unpack_from(record)
    sock = record[_HEAD.size : _HEAD.size + SOCK_BYTES]
    (family,) = struct.unpack_from("<H", sock, places.family)
    (far,) = struct.unpack_from(">H", sock, places.ports)
    (near,) = struct.unpack_from("<H", sock, places.ports + 2)
    (namespace,) = struct.unpack_from("<Q", sock, places.namespace)
    if family == _AF_INET6 and places.far_address6 is not None and places.near_address6 is not None:
        starts, size = (places.far_address6, places.near_address6), 16
    else:
        starts, size = (places.addresses, places.addresses + 4), 4
    far_address, near_address = (_without_mapping(sock[at : at + size]) for at in starts)
    return Sock(
        pid,
        descriptor,
        file,
        peer_file,
        bool(is_server),
        bool(has_waiter),
        family,
        (far, near),
        (far_address, near_address),
        namespace,
        is_server == OF_DATAGRAMS,
    )


def _without_mapping(address: bytes) -> bytes:
    """`::ffff:10.0.0.1` is 10.0.0.1."""
    return address[12:] if address[:12] == bytes(10) + b"\xff\xff" else address


def other_way(pair: tuple[int, int]) -> tuple[int, int]:
    return pair[1], pair[0]


def pack_ports(ports: tuple[int, int]) -> int:
    """As in the kernel: the far port in network order, then the near one (struct sock_common)."""
    return int.from_bytes(struct.pack(">H", ports[0]) + struct.pack("<H", ports[1]), "little")


def join(unread: Sequence[Sock], others: Sequence[Sock]) -> Iterator[ClientConnection]:
    """Of servers with what the second walk found; a server's own other ends are its affair."""
    for server in unread:
        is_served = server.is_server or any(_listens(other, server) for other in others)
        for other in others:
            if other.has_waiter and other.pid != server.pid and _is_peer(other, server):
                yield ClientConnection(
                    server.pid, other.pid, other.descriptor, server.is_datagram, is_served
                )


def _listens(other: Sock, server: Sock) -> bool:
    is_here = other.namespace == server.namespace
    return is_here and other.ports == (0, server.ports[1])


def _is_peer(client: Sock, server: Sock) -> bool:
    """127.0.0.1 is another one in each network namespace."""
    if server.peer_file:
        return client.file == server.peer_file
    far, near = server.addresses
    is_local = far[:1] == bytes([_LOOPBACK]) or len(far) > 4
    return (
        (client.ports, client.addresses) == (other_way(server.ports), (near, far))
        and bool(server.ports[0])
        and (client.namespace == server.namespace or not is_local)
    )
