"""Whose network devices an ioctl of ours reaches: /proc/PID/ns/net (fs/proc/namespaces.c,
fs/nsfs.c).

A namespace is a file of nsfs, the same from whichever /proc it is looked at. To look at that of
another user's process takes CAP_SYS_PTRACE, which the recorder gives up. Neither changes, so the
answer is kept.
"""

import functools
import os
from pathlib import Path


@functools.cache
def is_network_of_node(root: Path) -> bool:
    """Whether we are in the network namespace of the node's first process."""
    try:
        own, node = os.stat("/proc/self/ns/net"), os.stat(root / "proc/1/ns/net")
    except OSError:
        # Who sees the node below a mount is in a container, which mostly has a network of its own.
        return root == Path("/")
    return os.path.samestat(own, node)
