"""Where the programs that time waits find things: the offsets in this kernel's structures, and the
bytes of the records they write.
"""

import platform
from typing import Final, NamedTuple

from necroscope.errors import SourceUnavailable
from necroscope.sources.perf.btf import KernelTypes
from necroscope.sources.perf.system_calls import sleeps_by_call

RUNNABLE, BLOCKED, LOCKED = 0, 1, 2
# In the table of sleepers only: awake since then, whatever the kernel says (`wait_code`).
AWAKE: Final = 3
# A lock on a file, and a pipe or socket whose other end does not take what is written.
FILE_LOCKED, UNREAD = 4, 5
# Stopped by a signal, a tracer or the freezer of its cgroup; and in a record only, a thread that
# kept a rhythm and is late.
STOPPED, LATE = 6, 7
# A semaphore that processes share, found by the walk over all tasks only.
SEMAPHORE: Final = 8
SLEEPERS: Final = 1 << 15
SLEEPER_BYTES: Final = 32
# What is known of the rhythm of threads, by thread number (`wait_rhythm`).
RHYTHMS: Final = 1 << 14
RHYTHM_BYTES: Final = 64
# A core's words: its histogram, its longest wait since the last look, records without a place in
# the ring, and who had the core longest of late; eight cache lines, so that no two cores share one.
CORE_BYTES: Final = 512
WORST: Final = 8 * 30
LOST: Final = 8 * 31
STACK_BYTES: Final = 24 * 8

# A record: what kind of wait on which core, when it ended, how long it was, who waited ...
KIND, CPU, END, WAITED, TASK = 0, 4, 8, 16, 24
# ... who was in the way: on the core, or the one that woke it, and for how long it had the core ...
OTHER, OTHER_RAN = 72, 120
# ... the word in memory that a lock of user space is, or the descriptor of a file, pipe or socket;
# and two stacks with their lengths, of which one that wanted a core has its own only.
ADDRESS, STACK_LENGTH, OTHER_STACK_LENGTH, STACK = 128, 136, 144, 152
OPEN_BYTES: Final = STACK + STACK_BYTES
BLOCKED_BYTES: Final = OPEN_BYTES + STACK_BYTES
# Of a task in a record.
TID, PID, COMM, CGROUP, POLICY, PRIORITY, ALLOWED, FLAGS = 0, 4, 8, 24, 32, 36, 40, 44

WANTED: Final = (
    *("task_struct", "rq", "cfs_rq", "css_set", "cgroup", "kernfs_node", "pt_regs"),
    *("mutex", "rw_semaphore"),
    *("btf_trace_sched_switch", "btf_trace_sched_waking", "bpf_iter_task"),
)


class SystemCalls(NamedTuple):
    """Where the registers of a system call lie, and of each call, by its number, what one sleeps
    for in it (`system_calls`).
    """

    number: int
    first: int
    second: int
    third: int
    sleeps: bytes


class Blocker(NamedTuple):
    """Since 6.16 (3cf67d61ff98) a kernel with CONFIG_DETECT_HUNG_TASK_BLOCKER knows for which lock
    a task sleeps, and the lock knows its owner.
    """

    lock: int
    mutex_owner: int
    rwsem_owner: int


class Places(NamedTuple):
    """Offsets in the running kernel's structures."""

    tid: int
    pid: int
    comm: int
    state: int
    on_cpu: int
    on_queue: int
    delayed: int | None
    policy: int
    priority: int
    allowed: int
    flags: int
    job_control: int
    switches: int
    last_queued: int
    last_arrival: int
    cgroups: int
    default_cgroup: int
    cgroup_node: int
    node_id: int
    task_queue: int
    queue: int
    clock: int
    queue_cpu: int
    running: int
    has_state_argument: bool
    calls: SystemCalls | None
    blocker: Blocker | None


def find_places(types: KernelTypes, machine: str = "") -> Places:
    def task(path: str) -> int:
        return types.offset("task_struct", path)

    _, arguments = types.tracepoint("sched_switch")
    return Places(
        tid=task("pid"),
        pid=task("tgid"),
        comm=task("comm"),
        # Since 5.14 (2f064a59a11f) it has two underscores.
        state=task("__state" if types.has("task_struct", "__state") else "state"),
        on_cpu=task("on_cpu"),
        on_queue=task("on_rq"),
        # Since 6.12 (152e11f6df29) one that sleeps may stay queued for a while.
        delayed=task("se.sched_delayed") if types.has("task_struct", "se.sched_delayed") else None,
        policy=task("policy"),
        priority=task("prio"),
        allowed=task("nr_cpus_allowed"),
        flags=task("flags"),
        job_control=task("jobctl"),
        switches=task("nvcsw"),
        last_queued=task("sched_info.last_queued"),
        last_arrival=task("sched_info.last_arrival"),
        cgroups=task("cgroups"),
        default_cgroup=types.offset("css_set", "dfl_cgrp"),
        cgroup_node=types.offset("cgroup", "kn"),
        node_id=types.offset("kernfs_node", "id"),
        task_queue=task("se.cfs_rq"),
        queue=types.offset("cfs_rq", "rq"),
        clock=types.offset("rq", "clock"),
        queue_cpu=types.offset("rq", "cpu"),
        running=types.offset("rq", "curr"),
        has_state_argument=arguments > 3,
        calls=_find_calls(types, machine or platform.machine()),
        blocker=_find_blocker(types),
    )


def _find_calls(types: KernelTypes, machine: str) -> SystemCalls | None:
    def register(name: str) -> int:
        return types.offset("pt_regs", name)

    sleeps = sleeps_by_call(machine)
    if sleeps is None:
        return None
    try:
        if machine == "x86_64":
            places = register("orig_ax"), register("di"), register("si"), register("dx")
        else:
            first = register("regs")
            places = register("syscallno"), register("orig_x0"), first + 8, first + 16
        return SystemCalls(*places, sleeps)
    except SourceUnavailable:
        return None


def _find_blocker(types: KernelTypes) -> Blocker | None:
    try:
        return Blocker(
            types.offset("task_struct", "blocker"),
            types.offset("mutex", "owner.counter"),
            types.offset("rw_semaphore", "owner.counter"),
        )
    except SourceUnavailable:
        return None


class WaitMaps(NamedTuple):
    """Descriptors; all values but the ring's are addressed directly (Linux 5.2)."""

    cores: int
    sleepers: int
    ring: int
    scratch: int
    rhythms: int
    calls: int
    core_count: int
