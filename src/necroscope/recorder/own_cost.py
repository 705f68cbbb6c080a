"""What the recorder itself costs: the CPU time of this process, its ended children and the lookup
process.
"""

import os
import time
from collections.abc import Iterable
from pathlib import Path


def own_cpu_ns(lookup_pids: Iterable[int]) -> int:
    """CPU time used so far. An abandoned lookup process that nobody reaped yet still counts."""
    children = os.times()
    ended_ns = round((children.children_user + children.children_system) * 1e9)
    return time.process_time_ns() + ended_ns + sum(_process_cpu_ns(pid) for pid in lookup_pids)


def _process_cpu_ns(pid: int) -> int:
    """Field 1 of /proc/PID/schedstat (the main thread's run time; the lookup process has no
    other).
    """
    try:
        return int(Path(f"/proc/{pid}/schedstat").read_text().split()[0])
    except (OSError, ValueError, IndexError):
        return 0
