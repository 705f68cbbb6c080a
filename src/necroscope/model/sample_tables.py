"""The tables of who ran: stack samples with their stacks and frames, and tasks that a trigger
described.
"""

from typing import Final

from necroscope.model.table import Column, Table, Type

SAMPLE_TABLES: Final = (
    Table(
        "samples",
        "one row per stack sample of a busy core; idle samples are dropped and counted",
        "perf_event_open, `cycles` or `cpu-clock`, all cores",
        (
            Column("time", Type.INT64, "when, in ns UTC"),
            Column("cpu", Type.INT16, "core number"),
            Column(
                "pid", Type.INT32, "process, in the node's own pid namespace; 0 is the idle task"
            ),
            Column("tid", Type.INT32, "thread"),
            Column("comm", Type.CATEGORY, "the thread's name at that moment"),
            Column(
                "cgroup", Type.CATEGORY, "cgroup path (v1: of the memory controller)", nullable=True
            ),
            Column("stack", Type.INT32, "row of `stacks` of the same segment"),
            Column("weight", Type.INT32, "sample periods it stands for: 1 unless imported"),
        ),
    ),
    Table(
        "sampling",
        "what one sample stands for, written when it changes and at the start of a segment",
        "the recorder: `--hz`, or less where that would cost more than its budget",
        (
            Column("time", Type.INT64, "from when on, in ns UTC"),
            Column("period_ns", Type.INT64, "time of a busy core between two samples"),
        ),
    ),
    Table(
        "stacks",
        "call stacks as a tree: a stack is its caller's stack plus one frame",
        "interned per segment at function level",
        (
            Column(
                "stack",
                Type.INT32,
                "id, counted from 0 in this segment; a parent's is smaller than its children's",
            ),
            Column("parent", Type.INT32, "the caller's stack, or -1 at the outermost frame"),
            Column("frame", Type.INT32, "row of `frames` of the same segment"),
        ),
    ),
    Table(
        "frames",
        "functions that stacks are made of",
        "kallsyms, ELF symbols, perf maps; resolved on the node while the process lives",
        (
            Column("frame", Type.INT32, "id, counted from 0 in this segment"),
            Column(
                "function",
                Type.UTF8,
                "function name, demangled; None if no symbol covers the address",
                nullable=True,
            ),
            Column("module", Type.CATEGORY, "file, [kernel], [module], [vdso], [jit] or [unknown]"),
            Column("kind", Type.CATEGORY, "kernel, user or jit"),
            Column(
                "offset",
                Type.INT64,
                "file offset (kernel: address), only where `function` is None",
                nullable=True,
            ),
            Column("build_id", Type.CATEGORY, "of the module, where it has one", nullable=True),
        ),
    ),
    Table(
        "tasks",
        "who was on a core, or stood still, when a trigger fired",
        "samples of the last second, /proc/PID through the lookup process, py-spy",
        (
            Column("time", Type.INT64, "when the trigger fired, in ns UTC"),
            Column("cpu", Type.INT16, "core number"),
            Column(
                "trigger",
                Type.CATEGORY,
                "saturated, softirq_stall, kernel_log, task_waits (an ordinary task got no core),"
                " user_busy (full of user code), io_blocked"
                " (in state D while work stalls for I/O) or io_hung (still there 6 s later, and has"
                " not run)",
            ),
            Column("pid", Type.INT32, "process"),
            Column("tid", Type.INT32, "thread"),
            Column("comm", Type.CATEGORY, "thread name"),
            Column("samples", Type.INT32, "samples of that thread on that core in the last second"),
            Column(
                "argv0",
                Type.UTF8,
                "the program (never its arguments, which may hold secrets)",
                nullable=True,
            ),
            Column("cgroup", Type.CATEGORY, "cgroup path", nullable=True),
            Column("state", Type.CATEGORY, "one letter, as in /proc/PID/stat", nullable=True),
            Column(
                "policy",
                Type.CATEGORY,
                "other, batch, idle, fifo, rr, deadline or ext",
                nullable=True,
            ),
            Column("priority", Type.INT32, "real-time priority, or nice value", nullable=True),
            Column("cpus_allowed", Type.CATEGORY, "cores it may run on", nullable=True),
            Column(
                "syscall",
                Type.CATEGORY,
                "system call it was in, by its kernel frames",
                nullable=True,
            ),
            Column(
                "file", Type.UTF8, "file behind the system call's first argument", nullable=True
            ),
            Column(
                "stack",
                Type.UTF8,
                "its commonest stack, innermost first, separated by `;`",
                nullable=True,
            ),
            Column(
                "python_stack",
                Type.UTF8,
                "Python frames, innermost first, separated by `;`",
                nullable=True,
            ),
        ),
    ),
)
