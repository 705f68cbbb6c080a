"""Which population a kernel function is likely to walk, by its name: a hint, and never more. What a
recording shows of both (`walk_history`) is asked first.

Kernel functions bear the name of what they handle (`inotify_show_fdinfo`, `neigh_seq_next`), and so
do slab caches: words in common are a hint without any list. `_OTHER_WORDS` has what is called
differently.
"""

import re
from collections.abc import Iterable, Sequence
from functools import cache
from typing import Final

from necroscope.analysis.populations import Population

# Verbs, types and places that say nothing of the object.
_EMPTY: Final = frozenset(
    [
        "show",
        "seq",
        "start",
        "next",
        "stop",
        "get",
        "put",
        "read",
        "write",
        "file",
        "files",
        "cache",
        "entry",
        "list",
        "info",
        "proc",
        "sys",
        "do",
        "the",
        "inode",
        "inodes",
        "rcu",
        "alloc",
        "free",
        "new",
        "old",
        "add",
        "del",
        "find",
        "init",
        "release",
        "close",
        "open",
        "walk",
        "dump",
        "fill",
        "all",
        "node",
        "nodes",
        "struct",
        "table",
        "tables",
        "slab",
        "objects",
        "by",
        "for",
        "each",
        "try",
        "lookup",
        "check",
        "copy",
        "data",
        "page",
        "pages",
        "user",
        "kernel",
        "range",
        "event",
        "events",
        "fast",
        "slow",
        "path",
        "dir",
        "call",
        "one",
        "size",
        "head",
        "common",
        "generic",
    ]
)
# Words of functions on the left mean what the populations on the right are called, any of them.
_OTHER_WORDS: Final = {
    "vma": "vm_area_struct",
    "mmap": "vm_area_struct",
    "smap": "vm_area_struct",
    "smaps": "vm_area_struct",
    "map_vma": "vm_area_struct",
    "mas": "vm_area_struct",
    "vmi": "vm_area_struct",
    "unmap": "vm_area_struct",
    "pgtables": "vm_area_struct",
    "ct": "nf_conntrack conntrack-entries",
    "nfct": "nf_conntrack conntrack-entries",
    "ctnetlink": "nf_conntrack conntrack-entries",
    "mount": "mnt_cache mounts",
    "umount": "mnt_cache mounts",
    "mnt": "mnt_cache mounts",
    "propagate": "mnt_cache mounts",
    "inet": "tcp",
    "established": "tcp",
    "listening": "tcp",
    "leaf": "ip_fib_trie",
    "flock": "file_lock_cache",
    "posix_lock": "file_lock_cache",
    "locks": "file_lock_cache",
    "ep": "eventpoll_epi",
    "epoll": "eventpoll_epi",
    "keyring": "keys key_jar",
    "shm": "shared-memory-segments",
    "sem": "semaphore-sets",
    "msg": "message-queues",
    "htab": "bpf-maps",
    "trie": "bpf-maps",
    "vs": "ipvs-services",
    "pid": "threads task_struct",
    "tgid": "threads task_struct",
    "task": "threads task_struct",
    "timer": "posix_timers_cache",
    "timers": "posix_timers_cache",
    "dcache": "dentries",
    "dentry": "dentries",
    "evict": "inodes",
    "memcg": "dead-cgroups",
    "css": "cgroups",
    "rtnl": "network-devices",
    "dev": "network-devices",
    "ifaddr": "network-devices",
    "fd": "open-files",
    "filp": "open-files",
    "packet": "packet-sockets",
    "tpacket": "packet-sockets",
    "netlink": "netlink-sockets",
    "unix": "unix-sockets",
    "udp": "udp-sockets",
    "udp4": "udp-sockets",
    "truncate": "page-cache-pages",
    "shmem": "page-cache-pages",
    "filemap": "page-cache-pages",
}
_PRIMITIVES: Final = re.compile(
    r"_*raw_.*|mutex_.*|rcu_.*|__rcu.*|down_.*|up_.*|seq_.*|vsnprintf|format_decode|number|string.*"
    r"|put_dec.*|mem(cpy|set|cmp).*|_?copy_.*|kmem_.*|__?k[vm]?alloc.*|k?v?free.*|___?slab.*"
    # Context tracking has the letters of connection tracking.
    r"|_*ct_(idle|irq|nmi|kernel|user|state|cpu).*|context_tracking.*"
    r"|_?_?cond_resched.*|security_.*|selinux_.*|avc_.*|num_to_str|mangle_path|d_path|strn?c.*"
)
_SHORTEST: Final = 4


def likeness(path: Iterable[str], population: Population) -> int:
    """How many functions of a path name the population; 0 if none does."""
    return sum(
        _is_named(function, population.names)
        for function in path
        if not _PRIMITIVES.fullmatch(function)
    )


def _is_named(function: str, names: Sequence[str]) -> bool:
    words = _words(function)
    meant = [
        _words(name)
        for word in words
        if word in _OTHER_WORDS
        for name in _OTHER_WORDS[word].split()
    ]
    # A name from the list has to be met in full, a word in common may be a part.
    return any(
        any(name <= _words(known) for name in meant)
        or any(
            _is_same(a, b)
            for a in words - _EMPTY - set(_OTHER_WORDS)
            for b in _words(known) - _EMPTY
        )
        for known in names
    )


@cache
def _words(name: str) -> frozenset[str]:
    return frozenset(word for word in re.split(r"[^a-z0-9]+", name.lower()) if word)


def _is_same(one: str, other: str) -> bool:
    one, other = one.rstrip("s"), other.rstrip("s")
    shorter, longer = sorted((one, other), key=len)
    return shorter == longer if len(shorter) < _SHORTEST else longer.startswith(shorter)
