"""Dentries and inodes in memory: /proc/sys/fs/dentry-state and inode-nr (fs/dcache.c,
fs/inode.c).
"""

from typing import Final

COLUMNS: Final = ("dentries", "dentries_unused", "dentries_negative")


def parse_dentry_state(data: bytes) -> list[int | None]:
    """All, unused and negative dentries.

    The fifth number counts negative dentries since 5.0 and is a constant 0 before. A machine that
    ran for a second has some, so 0 means that the kernel does not count them.
    """
    numbers = [int(word) for word in data.split()]
    if len(numbers) < 6:
        raise ValueError("it is empty or cut")
    return [numbers[0], numbers[1], numbers[4] or None]


def parse_inode_nr(data: bytes) -> int:
    """Inodes in memory, free ones included."""
    inodes, _free = data.split()
    return int(inodes)
