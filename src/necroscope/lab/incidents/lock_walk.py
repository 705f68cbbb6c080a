"""An agent lists all file locks of the machine, and a database holds a hundred thousand.

What it does: a program (a key-value store, a mail server) locks ranges of many files, one lock for
each record. An agent reads /proc/locks every moment, as `lslocks` does. The kernel walks the locks
of all cores and writes a line for each.

Seen in the wild: `lslocks` and lsof next to Samba, dovecot and BerkeleyDB; fs/locks.c.

What must be seen: one core in system mode in `locks_show`, `lock_get_status` and `locks_next` below
a read; file locks (slab cache file_lock_cache) that grow; the program that holds them.
"""

import fcntl
import os

from necroscope.lab.actor import Actor
from necroscope.lab.stage import Stage
from necroscope.lab.state_walk import StateWalk, growing

# A new lock is compared with the others of its file.
_IN_A_FILE = 500


def lock_ranges(tree: str, first: int, more_per_s: float, directory: str) -> None:
    """One byte each, with a byte between them."""
    file = -1
    for number in growing(first, more_per_s, directory):
        place = number % _IN_A_FILE
        if place == 0 or file < 0:
            file = os.open(f"{tree}/{number // _IN_A_FILE}", os.O_CREAT | os.O_RDWR, 0o600)
        fcntl.lockf(file, fcntl.LOCK_EX, 1, 2 * place)


class LockWalk(StateWalk):
    name = "lock-walk"
    twin = "lock-walk-few"
    population = ("slab:file_lock_cache",)
    first, more_per_s = 80_000, 4_000
    needs = ("/proc/locks",)

    def start_maker(self, stage: Stage, first: int, more_per_s: int) -> Actor:
        tree = stage.mount_tmpfs(64 << 20)
        arguments = (str(tree), first, more_per_s, str(stage.scratch))
        return stage.start(lock_ranges, *arguments, cpu=stage.other_cores)

    def start_walker(self, stage: Stage) -> Actor:
        return self.start_reader(stage, "/proc/locks")
