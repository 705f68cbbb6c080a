"""An agent lists the keys of the kernel, and a service has left tens of thousands.

What it does: a service adds a key for each session or mount (Kerberos tickets, encrypted
directories, containers of some runtimes) and lets none expire. An agent reads /proc/keys every
moment: the kernel walks the tree of all keys of the machine and asks for each whether the reader
may see it.

Seen in the wild: moby #10939 and runc's session keyrings (one for each container, quota exceeded);
Kerberos caches in KEYRING; security/keys/proc.c.

What must be seen: one core in system mode in `proc_keys_show` and `proc_keys_next` below a read;
keys that grow; the service that adds them. The twin reads the same file as hard with few keys.
"""

import ctypes

from necroscope.lab.actor import Actor
from necroscope.lab.stage import Stage
from necroscope.lab.state_walk import StateWalk, growing
from necroscope.perf_abi.syscalls import syscall

_JOIN_SESSION_KEYRING = 1
_SESSION = -3


def add_keys(first: int, more_per_s: float, directory: str) -> None:
    """In a session keyring of its own: they are collected when it ends."""
    syscall("keyctl", _JOIN_SESSION_KEYRING, None)
    kind, value = (ctypes.create_string_buffer(text) for text in (b"user", b"x"))
    for number in growing(first, more_per_s, directory):
        name = ctypes.create_string_buffer(f"session:{number}".encode())
        syscall("add_key", kind, name, value, 1, _SESSION)


class KeyWalk(StateWalk):
    name = "key-walk"
    twin = "key-walk-few"
    population = ("keys", "slab:key_jar")
    first, more_per_s = 150_000, 7_000
    needs = ("/proc/keys",)

    def start_maker(self, stage: Stage, first: int, more_per_s: int) -> Actor:
        return stage.start(add_keys, first, more_per_s, str(stage.scratch), cpu=stage.other_cores)

    def start_walker(self, stage: Stage) -> Actor:
        return self.start_reader(stage, "/proc/keys")
