"""The tables of who did not run: single waits that were long, and how long tasks usually wait for a
core.
"""

from typing import Final

from necroscope.model.table import Column, Table, Type

# Bucket 0: below 2 us, then each twice as long; the last holds all from 8.6 s.
RUN_DELAY_BUCKETS: Final = 24

WAIT_TABLES: Final = (
    Table(
        "waits",
        "waits over the threshold: a task that wanted a core, or slept for something that was held",
        "BPF programs at sched_switch and sched_waking, and once per tick over all tasks; without"
        " BPF /proc/PID/stat and schedstat",
        (
            Column("time", Type.INT64, "when it ended, or was seen to go on, in ns UTC"),
            Column("waited_ns", Type.INT64, "how long it had lasted by then"),
            Column(
                "kind",
                Type.CATEGORY,
                "runnable (wanted a core and had none), blocked (uninterruptible sleep, or one for"
                " an answer of another), futex (a lock of user space), semaphore (one that"
                " processes share), file_lock (flock(2), fcntl(2)), unread (wrote to a pipe or"
                " socket whose other end did not read), stopped (by a signal, a tracer or the"
                " freezer of its cgroup), unserved (slept for the answer of a server of this node"
                " that was held up and had not read the question), unanswered (had what others"
                " waited for, and slept to read a pipe or socket or until its child ended) or"
                " asleep (may have had the semaphore that its relatives waited for, and slept until"
                " a timer ended)",
            ),
            Column(
                "is_open",
                Type.BOOL,
                "it went on; written when it has become twice as long as in the row before",
            ),
            Column("cpu", Type.INT16, "core it was queued on, or slept on last"),
            Column("pid", Type.INT32, "process"),
            Column("tid", Type.INT32, "thread"),
            Column("comm", Type.CATEGORY, "thread name"),
            Column("cgroup", Type.CATEGORY, "cgroup path", nullable=True),
            Column(
                "policy",
                Type.CATEGORY,
                "other, batch, idle, fifo, rr, deadline or ext; kernel for a thread of the kernel",
                nullable=True,
            ),
            Column("priority", Type.INT32, "real-time priority, or nice value"),
            Column("cores_allowed", Type.INT32, "how many cores it may run on", nullable=True),
            Column(
                "stack",
                Type.UTF8,
                "the kernel's functions it slept in, innermost first, separated by `;`; of kind"
                " runnable those of the sleep it was woken from",
                nullable=True,
            ),
            Column(
                "futex", Type.INT64, "address of the lock of user space or semaphore", nullable=True
            ),
            Column(
                "by_pid",
                Type.INT32,
                "process that had the core longest of late, or that woke it up; of a sleep that"
                " went on who had what it waits for, where that could be found",
                nullable=True,
            ),
            Column("by_tid", Type.INT32, "its thread", nullable=True),
            Column("by_comm", Type.CATEGORY, "its thread's name", nullable=True),
            Column("by_cgroup", Type.CATEGORY, "its cgroup path", nullable=True),
            Column("by_policy", Type.CATEGORY, "as `policy`, of who had the core", nullable=True),
            Column(
                "by_ran_ns",
                Type.INT64,
                "how long it had the core without a break",
                nullable=True,
            ),
            Column(
                "by_stack",
                Type.UTF8,
                "the kernel's functions from which it was woken up; of a sleep that went on those"
                " that `by` was in",
                nullable=True,
            ),
        ),
    ),
    Table(
        "late_beats",
        "threads that kept a steady rhythm of sleeps and were late",
        "a BPF program over all tasks, once per tick; without BPF none",
        (
            Column("time", Type.INT64, "when it had come, or was seen to be missing, in ns UTC"),
            Column("late_ns", Type.INT64, "how much later than its rhythm it was by then"),
            Column("period_ns", Type.INT64, "its usual time from one sleep to the next"),
            Column("is_open", Type.BOOL, "it had not come yet; then `late_ns` is a lower bound"),
            Column("pid", Type.INT32, "process"),
            Column("tid", Type.INT32, "thread"),
            Column("comm", Type.CATEGORY, "thread name"),
            Column("cgroup", Type.CATEGORY, "cgroup path", nullable=True),
            Column(
                "stack",
                Type.UTF8,
                "the kernel's functions it was in, innermost first, separated by `;`",
                nullable=True,
            ),
        ),
    ),
    Table(
        "run_delay",
        "how long tasks waited for their core, all of them",
        "the BPF program at sched_switch",
        (
            Column("time", Type.INT64, "when, in ns UTC"),
            Column("cpu", Type.INT16, "core"),
            Column("count", Type.INT64, "tasks that got the core since the row before"),
            Column("worst_ns", Type.INT64, "longest wait that ended since the row before"),
            Column(
                "histogram",
                Type.INT32_LIST,
                "waits by length: below 2.048 us, then each bucket twice as long; without the zeros"
                " at its end",
            ),
        ),
    ),
)
