"""The BPF program of `unserved_clients`: of every open file whether it is a socket with bytes that
its process has not read, or at the second walk one of those that are looked for.
"""

from typing import Final, NamedTuple

from necroscope.sources.perf import bpf_assembler as bpf
from necroscope.sources.perf import btf
from necroscope.sources.perf.file_walk import begin, follow, write_record
from necroscope.sources.perf.process_table import TABLE_BYTES, leave_out_others

WANTED: Final = (
    *("task_struct", "file", "inode", "socket", "sock", "sock_common", "unix_sock", "tcp_sock"),
    *("inet_connection_sock", "request_sock", "sk_buff", "socket_wq"),
)
# In the map: the table of processes; which walk it is; of up to eight connections the peers' files,
# and two pairs of ports: the client's and that of who listens; and a record.
WALK: Final = TABLE_BYTES
MOST_CONNECTIONS: Final = 8
PEER_FILES: Final = WALK + 8
PORT_PAIRS: Final = PEER_FILES + 8 * MOST_CONNECTIONS
_RECORD: Final = PORT_PAIRS + 16 * MOST_CONNECTIONS
# A record: process, descriptor, file, the peer's file, is it a server's (of datagrams: 2), does a
# task wait at it; and the beginning of the sock.
_PID, _DESCRIPTOR, _FILE, _PEER_FILE, _IS_SERVER, _HAS_WAITER, _SOCK = 0, 8, 16, 24, 32, 40, 48
SOCK_BYTES: Final = 136
OF_DATAGRAMS: Final = 2
RECORD_BYTES: Final = _SOCK + SOCK_BYTES
MAP_BYTES: Final = _RECORD + RECORD_BYTES
# On the program's stack: where `follow` reads to, the sock, the head of a queue, two numbers.
_SK, _HEAD, _NUMBERS = -16, -24, -32
_SOCKET_MODE: Final = 0xC0  # of the upper byte of a mode
_AF_UNIX, _AF_INET, _AF_INET6 = 1, 2, 10
_TCP, _UDP = 6, 17
# As in skb->protocol, in network order.
_IP, _IPV6 = 0x0008, 0xDD86
# Where a header of IP and one of IPv6 have the source, behind it the destination; their size.
_IP_ADDRESSES, _IPV6_ADDRESSES = (12, 8), (8, 32)
# include/net/tcp_states.h
_ESTABLISHED, _CLOSE_WAIT, _LISTEN = 1, 8, 10


class SockPlaces(NamedTuple):
    """Offsets; the first five in the beginning of a sock, that of IPv6 where the kernel has it."""

    family: int
    state: int
    ports: int
    addresses: int
    namespace: int
    far_address6: int | None
    near_address6: int | None
    tgid: int
    inode: int
    mode: int
    private: int
    sk: int
    protocol: int
    queue_length: int
    queue_first: int
    queue_last: int
    skb_sock: int
    skb_head: int
    skb_protocol: int
    skb_network: int
    skb_transport: int
    wait_queue: int
    wait_head: int
    sk_socket: int
    socket_file: int
    peer: int
    unix_address: int
    received: int
    copied: int
    accept_queue: int
    request_sock: int


def find_places(types: btf.KernelTypes) -> SockPlaces:
    def common(name: str) -> int:
        return types.offset("sock_common", name)

    def address6(name: str) -> int | None:
        return common(name) if types.has("sock_common", name) else None

    return SockPlaces(
        family=common("skc_family"),
        state=common("skc_state"),
        ports=common("skc_portpair"),
        addresses=common("skc_addrpair"),
        namespace=common("skc_net.net"),
        far_address6=address6("skc_v6_daddr"),
        near_address6=address6("skc_v6_rcv_saddr"),
        tgid=types.offset("task_struct", "tgid"),
        inode=types.offset("file", "f_inode"),
        mode=types.offset("inode", "i_mode"),
        private=types.offset("file", "private_data"),
        sk=types.offset("socket", "sk"),
        protocol=types.offset("sock", "sk_protocol"),
        queue_length=types.offset("sock", "sk_receive_queue.qlen"),
        queue_first=types.offset("sock", "sk_receive_queue.next"),
        queue_last=types.offset("sock", "sk_receive_queue.prev"),
        skb_sock=types.offset("sk_buff", "sk"),
        skb_head=types.offset("sk_buff", "head"),
        skb_protocol=types.offset("sk_buff", "protocol"),
        skb_network=types.offset("sk_buff", "network_header"),
        skb_transport=types.offset("sk_buff", "transport_header"),
        wait_queue=types.offset("sock", "sk_wq"),
        wait_head=types.offset("socket_wq", "wait.head"),
        sk_socket=types.offset("sock", "sk_socket"),
        socket_file=types.offset("socket", "file"),
        peer=types.offset("unix_sock", "peer"),
        unix_address=types.offset("unix_sock", "addr"),
        received=types.offset("tcp_sock", "rcv_nxt"),
        copied=types.offset("tcp_sock", "copied_seq"),
        accept_queue=types.offset("inet_connection_sock", "icsk_accept_queue.rskq_accept_head"),
        request_sock=types.offset("request_sock", "sk"),
    )


def over_files(places: SockPlaces, own_map: int) -> bytes:
    """R6 = the context, R7 = the task, R8 = the file, R9 = the map."""
    program = bpf.Program()
    begin(program)
    program.load64(bpf.R1, bpf.R8, places.inode)
    program.load8(bpf.R1, bpf.R1, places.mode + 1)
    program.keep_bits(bpf.R1, 0xF0)
    program.jump_if_not_equal(bpf.R1, _SOCKET_MODE, "out")
    program.load_map_value(bpf.R9, own_map)
    program.load64(bpf.R1, bpf.R9, WALK)
    program.jump_if_not_equal(bpf.R1, 0, "second walk")
    program.load32(bpf.R1, bpf.R7, places.tgid)
    leave_out_others(program, own_map)
    _describe(program, places)
    _look_for_unread(program, places)
    program.label("second walk")
    _describe(program, places)
    _match(program, places)
    program.label("write")
    write_record(program, _RECORD, RECORD_BYTES)
    program.label("out")
    program.move_constant(bpf.R0, 0)
    program.leave()
    return program.code()


def _describe(program: bpf.Program, places: SockPlaces) -> None:
    """Into the record whose file R8 is, and the beginning of its sock."""
    program.load32(bpf.R1, bpf.R7, places.tgid)
    program.store64(bpf.R9, _RECORD + _PID, bpf.R1)
    program.load32(bpf.R1, bpf.R6, 16)
    program.store64(bpf.R9, _RECORD + _DESCRIPTOR, bpf.R1)
    program.store64(bpf.R9, _RECORD + _FILE, bpf.R8)
    for field in (_PEER_FILE, _IS_SERVER, _HAS_WAITER):
        program.store64_constant(bpf.R9, _RECORD + field, 0)
    program.load64(bpf.R3, bpf.R8, places.private)
    follow(program, places.sk)
    program.store64(bpf.R10, _SK, bpf.R3)
    _copy_sock(program)


def _copy_sock(program: bpf.Program) -> None:
    """The sock R3 into the record."""
    program.jump_if_equal(bpf.R3, 0, "out")
    program.move(bpf.R1, bpf.R9)
    program.add_constant(bpf.R1, _RECORD + _SOCK)
    program.move_constant(bpf.R2, SOCK_BYTES)
    program.call(bpf.PROBE_READ_KERNEL)
    program.jump_if_not_equal(bpf.R0, 0, "out")


def _load_part(program: bpf.Program, register: int, place: int, bits: int) -> None:
    """Of the sock in the record."""
    program.load32(register, bpf.R9, _RECORD + _SOCK + place)
    program.keep_bits(register, bits)


def _look_for_unread(program: bpf.Program, places: SockPlaces) -> None:
    """Goes on to write the record if bytes lie unread in its sock, or in one that waits to be
    accepted.
    """
    _load_part(program, bpf.R1, places.family, 0xFFFF)
    program.jump_if_equal(bpf.R1, _AF_UNIX, "unix")
    program.load64(bpf.R3, bpf.R10, _SK)
    follow(program, places.protocol)
    program.keep_bits(bpf.R3, 0xFFFF)
    program.jump_if_equal(bpf.R3, _UDP, "udp")
    program.jump_if_not_equal(bpf.R3, _TCP, "out")
    _load_part(program, bpf.R1, places.state, 0xFF)
    program.jump_if_equal(bpf.R1, _ESTABLISHED, "connected")
    program.jump_if_equal(bpf.R1, _CLOSE_WAIT, "connected")
    program.jump_if_not_equal(bpf.R1, _LISTEN, "out")
    program.store64_constant(bpf.R9, _RECORD + _IS_SERVER, 1)
    program.load64(bpf.R3, bpf.R10, _SK)
    follow(program, places.accept_queue)
    follow(program, places.request_sock)
    program.store64(bpf.R10, _SK, bpf.R3)
    _copy_sock(program)
    program.label("connected")
    for place, kept in ((places.received, _NUMBERS), (places.copied, _NUMBERS - 8)):
        program.load64(bpf.R3, bpf.R10, _SK)
        follow(program, place)
        program.store64(bpf.R10, kept, bpf.R3)
    program.load32(bpf.R1, bpf.R10, _NUMBERS)
    program.load32(bpf.R2, bpf.R10, _NUMBERS - 8)
    program.jump_if_differs(bpf.R1, bpf.R2, "write")
    program.jump("out")
    _look_for_unread_datagram(program, places)
    _look_for_unread_unix(program, places)


def _look_for_unread_datagram(program: bpf.Program, places: SockPlaces) -> None:
    """A server's socket of UDP is connected to nobody. In the record it is made so to who sent the
    latest datagram: who sent earlier ones may have given up.
    """
    program.label("udp")
    _load_part(program, bpf.R1, places.ports, 0xFFFF)
    program.jump_if_not_equal(bpf.R1, 0, "out")
    program.load64(bpf.R3, bpf.R10, _SK)
    follow(program, places.queue_length)
    program.shift_left(bpf.R3, 32)
    program.jump_if_equal(bpf.R3, 0, "out")
    program.load64(bpf.R3, bpf.R10, _SK)
    follow(program, places.queue_last)
    program.store64(bpf.R10, _HEAD, bpf.R3)
    follow(program, places.skb_head)
    program.move(bpf.R7, bpf.R3)
    _find_header(program, places.skb_transport)
    follow(program, 0)
    program.keep_bits(bpf.R3, 0xFFFF)
    program.load32(bpf.R1, bpf.R9, _RECORD + _SOCK + places.ports)
    program.add(bpf.R1, bpf.R3)
    program.store32(bpf.R9, _RECORD + _SOCK + places.ports, bpf.R1)
    program.store64_constant(bpf.R9, _RECORD + _IS_SERVER, OF_DATAGRAMS)
    program.load64(bpf.R3, bpf.R10, _HEAD)
    follow(program, places.skb_protocol)
    program.keep_bits(bpf.R3, 0xFFFF)
    program.jump_if_equal(bpf.R3, _IPV6, "udp over ipv6")
    program.jump_if_not_equal(bpf.R3, _IP, "out")
    _copy_addresses(program, places, _AF_INET, places.addresses, _IP_ADDRESSES)
    program.label("udp over ipv6")
    if places.far_address6 is None:
        program.jump("out")
    else:
        _copy_addresses(program, places, _AF_INET6, places.far_address6, _IPV6_ADDRESSES)


def _find_header(program: bpf.Program, offset: int) -> None:
    """R3 = the header of the datagram whose buffer begins at R7."""
    program.load64(bpf.R3, bpf.R10, _HEAD)
    follow(program, offset)
    program.keep_bits(bpf.R3, 0xFFFF)
    program.add(bpf.R3, bpf.R7)


def _copy_addresses(
    program: bpf.Program, places: SockPlaces, family: int, to: int, addresses: tuple[int, int]
) -> None:
    """Who sent the datagram and where to, into the sock of the record, which has both together as
    well; then it is written.
    """
    begin_at, size_bytes = addresses
    # Over the state as well, which is no longer asked for.
    program.store32_constant(bpf.R9, _RECORD + _SOCK + places.family, family)
    _find_header(program, places.skb_network)
    program.add_constant(bpf.R3, begin_at)
    program.move(bpf.R1, bpf.R9)
    program.add_constant(bpf.R1, _RECORD + _SOCK + to)
    program.move_constant(bpf.R2, size_bytes)
    program.call(bpf.PROBE_READ_KERNEL)
    program.jump_if_not_equal(bpf.R0, 0, "out")
    program.jump("write")


def _look_for_unread_unix(program: bpf.Program, places: SockPlaces) -> None:
    """The socket that was accepted has the name that it was listened on, the client's has none."""
    program.label("unix")
    program.load64(bpf.R3, bpf.R10, _SK)
    follow(program, places.queue_length)
    program.shift_left(bpf.R3, 32)
    program.jump_if_equal(bpf.R3, 0, "out")
    program.load64(bpf.R3, bpf.R10, _SK)
    follow(program, places.unix_address)
    program.jump_if_equal(bpf.R3, 0, "out")
    program.store64_constant(bpf.R9, _RECORD + _IS_SERVER, 1)
    program.load64(bpf.R3, bpf.R10, _SK)
    _load_part(program, bpf.R1, places.state, 0xFF)
    program.jump_if_not_equal(bpf.R1, _LISTEN, "accepted")
    follow(program, places.queue_first)
    follow(program, places.skb_sock)
    program.label("accepted")
    follow(program, places.peer)
    program.store64(bpf.R10, _HEAD, bpf.R3)
    follow(program, places.unix_address)
    program.jump_if_not_equal(bpf.R3, 0, "out")
    program.load64(bpf.R3, bpf.R10, _HEAD)
    follow(program, places.sk_socket)
    follow(program, places.socket_file)
    program.jump_if_equal(bpf.R3, 0, "out")
    program.store64(bpf.R9, _RECORD + _PEER_FILE, bpf.R3)
    program.jump("write")


def _match(program: bpf.Program, places: SockPlaces) -> None:
    """Goes on to write the record if it is one of those that are looked for, and says whether a
    task waits at it.
    """
    for place in range(MOST_CONNECTIONS):
        program.load64(bpf.R1, bpf.R9, PEER_FILES + 8 * place)
        program.jump_if_equal(bpf.R1, 0, f"not file {place}")
        program.jump_if_differs(bpf.R1, bpf.R8, f"not file {place}")
        program.jump("matched")
        program.label(f"not file {place}")
    _load_part(program, bpf.R1, places.family, 0xFFFF)
    program.jump_if_equal(bpf.R1, _AF_UNIX, "out")
    program.load32(bpf.R2, bpf.R9, _RECORD + _SOCK + places.ports)
    for place in range(2 * MOST_CONNECTIONS):
        program.load64(bpf.R1, bpf.R9, PORT_PAIRS + 8 * place)
        program.jump_if_equal(bpf.R1, 0, f"not ports {place}")
        program.jump_if_differs(bpf.R1, bpf.R2, f"not ports {place}")
        program.jump("matched")
        program.label(f"not ports {place}")
    program.jump("out")
    program.label("matched")
    program.load64(bpf.R3, bpf.R10, _SK)
    follow(program, places.wait_queue)
    program.move(bpf.R7, bpf.R3)
    program.add_constant(bpf.R7, places.wait_head)
    follow(program, places.wait_head)
    program.jump_if_differs(bpf.R3, bpf.R7, "waited for")
    program.jump("write")
    program.label("waited for")
    program.store64_constant(bpf.R9, _RECORD + _HAS_WAITER, 1)
