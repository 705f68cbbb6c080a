"""Small files of /proc that tell how many objects of a kind exist, without a walk over them; each
parser gives numbers by kind.
"""

from collections.abc import Callable
from typing import Final, NamedTuple

Counts = dict[str, int]


class PopulationFile(NamedTuple):
    """`path` is below /proc; one below `net` is read in the network namespace of the node's first
    process.
    """

    path: str
    kinds: tuple[str, ...]
    parse: Callable[[bytes], Counts]


def parse_loadavg(data: bytes) -> Counts:
    """`0.1 0.2 0.3 1/234 5678`: all threads of the machine."""
    return {"threads": int(data.split()[3].partition(b"/")[2])}


def parse_sockstat(data: bytes) -> Counts:
    """TCP's `alloc` counts the sockets of all network namespaces, the others those of one
    (net/ipv4/proc.c).
    """
    words = {line.split(b":")[0]: line.split() for line in data.splitlines()}
    tcp = dict(zip(words[b"TCP"][1::2], words[b"TCP"][2::2], strict=True))
    return {
        "tcp-sockets": int(tcp[b"alloc"]),
        "time-wait-sockets": int(tcp[b"tw"]),
        "orphaned-tcp-sockets": int(tcp[b"orphan"]),
    }


def parse_protocols(data: bytes) -> Counts:
    """Sockets by protocol (net/core/sock.c); versions of one family are summed."""
    sums = dict.fromkeys(_FAMILIES.values(), 0)
    for line in data.splitlines()[1:]:
        name, _size, sockets, _rest = line.split(None, 3)
        family = _FAMILIES.get(name)
        if family is not None and sockets.isdigit():
            sums[family] += int(sockets)
    return sums


def parse_neighbours(data: bytes) -> Counts:
    """Entries of the ARP table in the first column, in hex, the same on each core's line."""
    return {"neighbours": int(data.splitlines()[1].split()[0], 16)}


def parse_neighbours6(data: bytes) -> Counts:
    return {"neighbours-ipv6": int(data.splitlines()[1].split()[0], 16)}


def parse_rt6_stats(data: bytes) -> Counts:
    """`fib_rt_entries` is the fourth number, in hex (net/ipv6/route.c)."""
    return {"routes-ipv6": int(data.split()[3], 16)}


def parse_conntrack_count(data: bytes) -> Counts:
    return {"conntrack-entries": int(data)}


def parse_file_nr(data: bytes) -> Counts:
    return {"open-files": int(data.split()[0])}


def parse_key_users(data: bytes) -> Counts:
    """`uid: usage nkeys/nikeys ...` (security/keys/proc.c)."""
    return {"keys": sum(int(line.split()[2].partition(b"/")[0]) for line in data.splitlines())}


_FAMILIES: Final = {
    b"UNIX": "unix-sockets",
    b"UNIX-STREAM": "unix-sockets",
    b"UDP": "udp-sockets",
    b"UDPv6": "udp-sockets",
    b"RAW": "raw-sockets",
    b"RAWv6": "raw-sockets",
    b"PACKET": "packet-sockets",
    b"NETLINK": "netlink-sockets",
}

FILES: Final = (
    PopulationFile("loadavg", ("threads",), parse_loadavg),
    PopulationFile(
        "net/sockstat",
        ("tcp-sockets", "time-wait-sockets", "orphaned-tcp-sockets"),
        parse_sockstat,
    ),
    PopulationFile("net/protocols", tuple(dict.fromkeys(_FAMILIES.values())), parse_protocols),
    PopulationFile("net/stat/arp_cache", ("neighbours",), parse_neighbours),
    PopulationFile("net/stat/ndisc_cache", ("neighbours-ipv6",), parse_neighbours6),
    PopulationFile("net/rt6_stats", ("routes-ipv6",), parse_rt6_stats),
    PopulationFile(
        "sys/net/netfilter/nf_conntrack_count", ("conntrack-entries",), parse_conntrack_count
    ),
    PopulationFile("sys/fs/file-nr", ("open-files",), parse_file_nr),
    PopulationFile("key-users", ("keys",), parse_key_users),
)
