"""The stored schema: every table and column of a recording, its type, unit and meaning. Docs and
format read it here.
"""

from typing import Final

from necroscope.model.core_shares import MEAN_MODES, WORST_MODES
from necroscope.model.job_tables import JOB_TABLES
from necroscope.model.network_tables import NETWORK_TABLES
from necroscope.model.population_tables import POPULATION_TABLES
from necroscope.model.sample_tables import SAMPLE_TABLES
from necroscope.model.service_tables import SERVICE_TABLES
from necroscope.model.table import Column, Table, Type
from necroscope.model.wait_tables import RUN_DELAY_BUCKETS, WAIT_TABLES

__all__ = [
    "RUN_DELAY_BUCKETS",
    "SCHEMA_VERSION",
    "SOFTIRQ_DELAY_BUCKETS",
    "SOFTIRQ_VECTORS",
    "TABLES",
    "Column",
    "Table",
    "Type",
]

SCHEMA_VERSION: Final = 1

# The kernel's softirq vectors in their order (include/linux/interrupt.h); also the columns of
# `softirqs`.
SOFTIRQ_VECTORS: Final = (
    "hi",
    "timer",
    "net_tx",
    "net_rx",
    "block",
    "irq_poll",
    "tasklet",
    "sched",
    "hrtimer",
    "rcu",
)
# Upper bounds of the softirq delay histogram: bucket i counts delays below 2**(i+1) us, the last
# one all above.
SOFTIRQ_DELAY_BUCKETS: Final = 24


def _time(meaning: str = "when, in ns UTC") -> Column:
    return Column("time", Type.INT64, meaning)


def _cpu(meaning: str = "core number") -> Column:
    return Column("cpu", Type.INT16, meaning)


def _elapsed() -> Column:
    return Column(
        "elapsed_ns", Type.INT64, "time since the row before it: the denominator of every share"
    )


def _ints(names: str, meaning: str, *, nullable: bool = False) -> tuple[Column, ...]:
    return tuple(
        Column(name, Type.INT64, meaning.format(name=name), nullable) for name in names.split()
    )


def _share(name: str, meaning: str) -> Column:
    return Column(name, Type.INT16, f"{meaning}, in 1/10000; null without a tick", nullable=True)


_TABLES = (
    *SAMPLE_TABLES,
    Table(
        "cores",
        "how each core spent its time since the row before",
        "/proc/stat",
        (
            _time(),
            _cpu(),
            _elapsed(),
            *_ints(
                "user_ns nice_ns system_ns idle_ns iowait_ns irq_ns softirq_ns steal_ns guest_ns",
                "time in mode {name}; the nine exclude each other: user and nice are without"
                " guests",
            ),
        ),
    ),
    Table(
        "core_minutes",
        "each core minute by minute, for pictures of days; a row is of the ticks that touch its"
        " minute",
        "`cores` and `softirq_delay`, when a segment is sealed; the minute between two segments has"
        " a row in both",
        (
            _time("start of the minute, in ns UTC"),
            _cpu(),
            Column(
                "ticks",
                Type.INT16,
                "ticks that touch it: one across its edge is counted on both sides",
            ),
            *(_share(f"mean_{mode}", f"share of time in mode {mode}") for mode in MEAN_MODES),
            *(
                _share(f"worst_{mode}", f"largest share of a tick in mode {mode}")
                for mode in WORST_MODES
            ),
            Column(
                "worst_delay_ns",
                Type.INT64,
                "longest wait of a softirq, ended or not; null if none was seen",
                nullable=True,
            ),
        ),
        is_derived=True,
    ),
    Table(
        "softirqs",
        "softirqs handled by each core since the row before, by vector",
        "/proc/softirqs",
        (
            _time(),
            _cpu(),
            _elapsed(),
            *_ints(" ".join(SOFTIRQ_VECTORS), "softirqs of vector {name}", nullable=True),
        ),
    ),
    Table(
        "softirq_delay",
        "how long raised softirqs waited for their handler; only cores and vectors with any",
        "BPF on irq:softirq_raise and irq:softirq_entry. While no softirq waits 10 ms, and the"
        " probe would cost a core more than 1 %, it rests for up to 14 ticks of 15, until counters"
        " show a stall: each rest is a gap, and then a tick is measured",
        (
            _time(),
            _cpu(),
            Column("vector", Type.CATEGORY, "softirq vector, as the columns of `softirqs`"),
            Column("count", Type.INT64, "softirqs entered since the row before"),
            Column("worst_ns", Type.INT64, "longest wait that ended since the row before"),
            Column(
                "pending_ns",
                Type.INT64,
                "age of a raise that still waits, 0 if none: a stall in progress",
            ),
            Column(
                "histogram",
                Type.INT32_LIST,
                "waits by power of two: item i counts those below 2**(i+1) us",
            ),
        ),
    ),
    Table(
        "runqueue",
        "how long the softirq threads ran and waited for a core since the row before",
        "/proc/PID/schedstat and stat of ksoftirqd/* and napi/*",
        (
            _time(),
            _cpu("core it last ran on"),
            Column("pid", Type.INT32, "thread"),
            Column("comm", Type.CATEGORY, "thread name"),
            Column(
                "state",
                Type.CATEGORY,
                "one letter, as in /proc/PID/stat: R with no run time is starving now",
            ),
            _elapsed(),
            *_ints(
                "run_ns delay_ns",
                "{name} since the row before; a delay is booked only when the wait ends",
            ),
            Column("slices", Type.INT64, "times it got a core since the row before"),
        ),
    ),
    Table(
        "softnet",
        "network receive processing by core since the row before",
        "/proc/net/softnet_stat",
        (
            _time(),
            _cpu(),
            _elapsed(),
            *_ints(
                "processed dropped time_squeeze received_rps",
                "packets or events: {name}",
                nullable=True,
            ),
            *_ints("flow_limit backlog", "{name} (backlog: its length now)", nullable=True),
        ),
    ),
    Table(
        "interrupts",
        "interrupts by core since the row before; only those that came, and each with its affinity"
        " at the first row",
        "/proc/interrupts, /proc/irq/N/effective_affinity_list; also when a trigger fires",
        (
            _time(),
            _cpu(),
            Column("irq", Type.CATEGORY, "number or name (LOC, TLB, CAL)"),
            Column(
                "action", Type.CATEGORY, "what /proc/interrupts calls it, for example eth0-Tx-Rx-3"
            ),
            Column("device", Type.CATEGORY, "network device it belongs to", nullable=True),
            Column("queue", Type.INT32, "that device's queue", nullable=True),
            Column("affinity", Type.CATEGORY, "cores that may take it", nullable=True),
            _elapsed(),
            Column("count", Type.INT64, "interrupts since the row before"),
        ),
        period_s=10.0,
    ),
    Table(
        "nics",
        "counters of each network device, written when they change and at the start of a segment",
        "/sys/class/net, ethtool ioctls",
        (
            _time(),
            Column("device", Type.CATEGORY, "network device"),
            Column("driver", Type.CATEGORY, "its driver", nullable=True),
            Column("firmware", Type.CATEGORY, "driver and firmware version", nullable=True),
            Column(
                "counter",
                Type.CATEGORY,
                "for example tx-3/tx_timeout, rx_dropped, suspected_poll_starvation",
            ),
            Column("value", Type.INT64, "as the device counts: since it came up"),
        ),
        period_s=5.0,
    ),
    *NETWORK_TABLES,
    Table(
        "pressure",
        "time that work stalled because a resource was short, since the row before",
        "/proc/pressure",
        (
            _time(),
            Column("resource", Type.CATEGORY, "cpu, memory, io or irq"),
            _elapsed(),
            *_ints("some_ns full_ns", "time in which {name} stalled", nullable=True),
        ),
    ),
    Table(
        "memory",
        "memory figures that distinguish the causes: events since the row before, and amounts now",
        "/proc/vmstat, /proc/meminfo, /proc/sys/fs/dentry-state, /proc/sys/fs/inode-nr",
        (
            _time(),
            _elapsed(),
            *_ints(
                "pgscan_kswapd pgscan_direct pgsteal_kswapd pgsteal_direct allocstall compact_stall"
                " compact_fail compact_success compact_migrate_scanned compact_free_scanned pgfault"
                " pgmajfault pswpin pswpout workingset_refault thp_fault_alloc thp_fault_fallback"
                " thp_split_page numa_pages_migrated pgmigrate_success drop_pagecache drop_slab"
                " slabs_scanned oom_kill",
                "events of /proc/vmstat: {name}, summed over zones and kinds",
                nullable=True,
            ),
            *_ints(
                "free_bytes available_bytes cached_bytes dirty_bytes writeback_bytes anon_bytes"
                " shmem_bytes slab_bytes slab_reclaimable_bytes percpu_bytes page_tables_bytes"
                " kernel_stack_bytes swap_used_bytes total_bytes",
                "{name} of /proc/meminfo now",
                nullable=True,
            ),
            *_ints(
                "dentries dentries_unused dentries_negative inodes", "{name} now", nullable=True
            ),
        ),
    ),
    Table(
        "cgroups",
        "cgroups alive and dead, and what their limits did; the row of path `/` is the whole"
        " hierarchy",
        "/proc/cgroups, cgroup directories, cgroup.stat, cpu.stat, memory.events",
        (
            _time(),
            Column(
                "controller",
                Type.CATEGORY,
                "controller (memory, cpu, ...) or `unified` for all of cgroup v2",
            ),
            Column("path", Type.CATEGORY, "cgroup path"),
            Column(
                "tracked",
                Type.INT64,
                "cgroups the kernel holds below and with this path, dead ones included",
                nullable=True,
            ),
            Column("visible", Type.INT64, "directories below and with this path", nullable=True),
            Column("dying", Type.INT64, "cgroups removed but not released: zombies", nullable=True),
            *_ints(
                "nr_throttled throttled_ns memory_high_events memory_max_events oom_kills",
                "{name} since the row before of this path",
                nullable=True,
            ),
        ),
        period_s=10.0,
    ),
    Table(
        "cgroup_ledger",
        "every cgroup made, removed and released; removed and not released is a zombie",
        "tracepoints cgroup:cgroup_mkdir, cgroup_rmdir, cgroup_release",
        (
            _time(),
            Column("action", Type.CATEGORY, "made, removed or released"),
            Column(
                "hierarchy", Type.INT32, "hierarchy id as in /proc/cgroups; 0 or 1 is cgroup v2"
            ),
            Column("cgroup_id", Type.INT64, "kernel id, unique within the hierarchy"),
            Column("level", Type.INT32, "depth below the root"),
            Column("path", Type.UTF8, "cgroup path"),
        ),
    ),
    *WAIT_TABLES,
    *POPULATION_TABLES,
    *SERVICE_TABLES,
    *JOB_TABLES,
    Table(
        "events",
        "things that happened at a moment",
        "/dev/kmsg, systemd, container runtimes, Ray's logs, and the recorder itself",
        (
            _time(),
            Column(
                "kind",
                Type.CATEGORY,
                "for example nic_reset, oom_kill, unit_restart, container_die, ray_node_dead,"
                " clock_step",
            ),
            Column("pattern", Type.CATEGORY, "id of the pattern that matched", nullable=True),
            Column("cpu", Type.INT16, "core it names, if it names the right one", nullable=True),
            Column("device", Type.CATEGORY, "device it names", nullable=True),
            Column("queue", Type.INT32, "queue it names", nullable=True),
            Column("pid", Type.INT32, "process it names", nullable=True),
            Column("comm", Type.CATEGORY, "process name it names", nullable=True),
            Column("severity", Type.INT16, "syslog level, 0 to 7"),
            Column(
                "by_kernel",
                Type.BOOL,
                "written by the kernel itself; False: any user may have written it",
            ),
            Column(
                "sequence",
                Type.INT64,
                "kernel log sequence number of the first line, or its stamp in us",
                nullable=True,
            ),
            Column("message", Type.UTF8, "first line"),
            Column("lines", Type.UTF8, "all lines, separated by newlines", nullable=True),
            Column("fields", Type.UTF8, "what the pattern caught, as JSON", nullable=True),
        ),
    ),
    Table(
        "log",
        "kernel log records as they came, of every facility, rate-limited; \\x0a is a newline",
        "/dev/kmsg, journalctl or a syslog file",
        (
            _time(),
            Column(
                "sequence",
                Type.INT64,
                "kernel log sequence number, or the line's stamp in us where a log does not"
                " keep it",
                nullable=True,
            ),
            Column("severity", Type.INT16, "syslog level, 0 to 7"),
            Column("facility", Type.INT16, "syslog facility; 0 is the kernel"),
            Column("message", Type.UTF8, "the line"),
        ),
    ),
    Table(
        "gaps",
        "stretches that should have been recorded and were not",
        "the recorder",
        (
            _time("start of the stretch, in ns UTC"),
            Column("end", Type.INT64, "end of the stretch, in ns UTC"),
            Column("table", Type.CATEGORY, "table that misses rows, or `*` for all"),
            Column("cause", Type.CATEGORY, "why"),
            Column("cpu", Type.INT16, "core, if only one misses", nullable=True),
            Column("lost", Type.INT64, "records lost, where that is known", nullable=True),
        ),
    ),
    Table(
        "anchors",
        "the clocks side by side, so that every source's time can be laid on one line",
        "clock_gettime; the log's clock by a perf event of our own",
        (
            _time("the recording's time line: monotonic plus an offset that never steps back"),
            *_ints("realtime_ns monotonic_ns boottime_ns", "{name} clock at that moment"),
            Column(
                "log_clock_ns",
                Type.INT64,
                "the clock of kernel log lines at that moment",
                nullable=True,
            ),
        ),
    ),
)

TABLES: Final[dict[str, Table]] = {table.name: table for table in _TABLES}
