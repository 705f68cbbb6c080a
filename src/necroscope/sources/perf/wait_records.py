"""The records that the programs of `wait_programs` and `wait_scan` write, as Python reads them."""

import struct
from typing import Final, NamedTuple

from necroscope.model.names import clean
from necroscope.sources.perf import wait_layout as layout

KINDS: Final = {
    layout.RUNNABLE: "runnable",
    layout.BLOCKED: "blocked",
    layout.LOCKED: "futex",
    layout.FILE_LOCKED: "file_lock",
    layout.UNREAD: "unread",
    layout.STOPPED: "stopped",
    layout.LATE: "late",
    layout.SEMAPHORE: "semaphore",
}
# include/uapi/linux/sched.h; 4 is reserved.
_POLICIES: Final = {0: "other", 1: "fifo", 2: "rr", 3: "batch", 5: "idle", 6: "deadline", 7: "ext"}
# The kernel's own order (include/linux/sched/prio.h).
_FIRST_ORDINARY, _NICE_0 = 100, 120
_PF_KTHREAD: Final = 0x00200000
_HEAD: Final = struct.Struct("<IiQQ")
# The same, and the number of the thread.
_OUTLINE: Final = struct.Struct("<IiQQI")
_TASK: Final = struct.Struct("<II16sQIiII")
_TAIL: Final = struct.Struct("<Qqq")


class WaitTask(NamedTuple):
    tid: int
    pid: int
    comm: str
    cgroup_id: int
    policy: str | None
    priority: int
    cores_allowed: int


class WaitRecord(NamedTuple):
    """`other` is who had the core, or who woke it; of a sleep that goes on who has the lock, where
    the kernel knows. `address` is a lock's in memory, or a descriptor. Stacks are addresses of 64
    bits, innermost first. Of one that is late `address` is its period, and `other_ran_ns` how many
    beats came since the last look.
    """

    kind: str
    cpu: int
    end_ns: int
    waited_ns: int
    task: WaitTask
    other: WaitTask | None
    other_ran_ns: int
    address: int
    stack: bytes
    other_stack: bytes


def waited_ns(record: bytes) -> int:
    """Enough to choose by."""
    return int.from_bytes(record[layout.WAITED : layout.WAITED + 8], "little")


def is_late(record: bytes) -> bool:
    """It describes a rhythm, not a wait."""
    return int.from_bytes(record[layout.KIND : layout.KIND + 4], "little") == layout.LATE


def tenant(record: bytes) -> int:
    """To whom its row is charged: the cgroup, or the process where there is one hierarchy for all
    (cgroup v1).
    """
    start = layout.TASK + layout.CGROUP
    cgroup_id = int.from_bytes(record[start : start + 8], "little")
    if cgroup_id > 1:
        return cgroup_id
    return -int.from_bytes(record[layout.TASK + layout.PID : layout.TASK + layout.COMM], "little")


class WaitOutline(NamedTuple):
    """What tells one wait that goes on from another. `has_come`: of one that is late, it is there
    again.
    """

    key: tuple[int, int]
    end_ns: int
    waited_ns: int
    has_come: bool


def outline(record: bytes) -> WaitOutline:
    kind, _, end_ns, waited, tid = _OUTLINE.unpack_from(record)
    is_late = kind == layout.LATE
    has_come = is_late and any(record[layout.OTHER_RAN : layout.OTHER_RAN + 8])
    return WaitOutline((kind, tid), end_ns, waited, has_come)


def parse(record: bytes) -> WaitRecord:
    kind, cpu, end_ns, waited, *_ = _HEAD.unpack_from(record)
    other = parse_task(record, layout.OTHER)
    (ran_ns,) = struct.unpack_from("<Q", record, layout.OTHER_RAN)
    address, length, other_length = _TAIL.unpack_from(record, layout.ADDRESS)
    is_core = kind == layout.RUNNABLE
    return WaitRecord(
        KINDS[kind],
        cpu,
        end_ns,
        waited,
        parse_task(record, layout.TASK),
        other if other.tid else None,
        ran_ns if kind == layout.LATE or (is_core and other.tid) else 0,
        address,
        _stack(record, layout.STACK, length),
        _stack(record, layout.OPEN_BYTES, other_length),
    )


def parse_task(record: bytes, at: int) -> WaitTask:
    tid, pid, comm, cgroup_id, policy, rank, allowed, flags = _TASK.unpack_from(record, at)
    name = "kernel" if flags & _PF_KTHREAD else _POLICIES.get(policy)
    priority = rank - _NICE_0 if rank >= _FIRST_ORDINARY else _FIRST_ORDINARY - 1 - rank
    return WaitTask(tid, pid, clean(comm.partition(b"\0")[0]), cgroup_id, name, priority, allowed)


def addresses(stack: bytes) -> tuple[int, ...]:
    return struct.unpack(f"<{len(stack) // 8}Q", stack)


def _stack(record: bytes, at: int, length: int) -> bytes:
    """`length` is an error's number where the kernel could not walk it."""
    size_bytes = max(0, min(length, layout.STACK_BYTES, len(record) - at))
    return record[at : at + size_bytes // 8 * 8]
