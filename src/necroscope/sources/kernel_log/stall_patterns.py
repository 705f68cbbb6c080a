"""Lines of a core or a task that gets nowhere: watchdog.c, tree_stall.h, hung_task.c, workqueue.c,
clocksource.c, 4.4 to 7.3.
"""

from typing import Final

from necroscope.sources.kernel_log.pattern import COMM, HUNG_TASK, LOCKUP, OOPS, RCU, Role, pattern

STALL_PATTERNS: Final = (
    # A comm may hold `:` and `]` itself, as in [runc:[1:CHILD]:358270]: greedy, to the last
    # `:pid]`.
    pattern(
        "lockup.soft",
        "soft_lockup",
        "lockup",
        r"(?:NMI )?watchdog: BUG: soft lockup - CPU#(?P<cpu>\d+) stuck for (?P<stuck_s>\d+)s!"
        rf" \[(?P<comm>{COMM}):(?P<pid>\d+)\]",
        family=LOCKUP,
        alarm=True,
        traced=True,
    ),
    pattern(
        "lockup.hard",
        "hard_lockup",
        "LOCKUP",
        r"(?:NMI )?watchdog: (?:CPU(?P<detected_by_cpu>\d+): )?Watchdog detected hard LOCKUP on cpu"
        r" (?P<cpu>\d+)",
        family=LOCKUP,
        weight=1,
        alarm=True,
        traced=True,
    ),
    pattern(
        "rcu.self",
        "rcu_stall",
        "self-detected",
        r"(?:rcu: )?INFO: (?P<flavor>\S+) self-detected (?:expedited )?stall on CPU",
        family=RCU,
        weight=2,
        alarm=True,
        traced=True,
    ),
    pattern(
        "rcu.other",
        "rcu_stall",
        "stalls",
        r"(?:rcu: )?INFO: (?P<flavor>\S+) detected (?:expedited )?stalls on CPUs/tasks:",
        family=RCU,
        weight=2,
        alarm=True,
        traced=True,
    ),
    pattern(
        "rcu.stalled_cpu",
        "rcu_stall",
        "GP) behind) ticks",
        r"^(?:rcu:)? *(?P<cpu>\d+)-\S+: \((?:(?P<ticks>\d+) ticks this"
        r" GP|(?P<grace_periods_behind>\d+) GPs behind)\)",
        family=RCU,
        role=Role.JOINS,
        weight=2,
        alarm=True,
    ),
    pattern(
        "rcu.stall_time",
        "rcu_stall",
        "jiffies jiffies,",
        r"^(?:rcu:)? *\((?:detected by (?P<detected_by_cpu>\d+), )?t=(?P<stalled_jiffies>\d+)"
        r" jiffies,? g=-?\d+",
        family=RCU,
        role=Role.JOINS,
        weight=2,
        traced=True,
    ),
    # The core is the one the kthread waits for: direct evidence that a kernel thread gets no time
    # there.
    pattern(
        "rcu.kthread_starved",
        "kthread_starved",
        "starved",
        r"^(?:rcu: )?(?P<flavor>\w+) kthread starved for (?P<starved_jiffies>\d+) jiffies!"
        r" .*->cpu=(?P<cpu>\d+)",
        family=RCU,
        weight=1,
        alarm=True,
        traced=True,
    ),
    pattern(
        "rcu.timer_wakeup",
        "timer_late",
        "wakeup",
        r"^(?:rcu: )?(?P<flavor>\w+) kthread timer wakeup didn't happen for (?P<late_jiffies>\d+)"
        r" jiffies!",
        family=RCU,
        weight=1,
        alarm=True,
    ),
    # The timer softirq of that core did not run: softirq starvation.
    pattern(
        "rcu.timer_issue",
        "timer_late",
        "handling",
        r"(?:rcu:)? *Possible timer handling issue on cpu=(?P<cpu>\d+)",
        r" timer-softirq=(?P<timer_softirqs>\d+)",
        family=RCU,
        weight=1,
        alarm=True,
    ),
    # In D state: waiting, not short of a core.
    pattern(
        "hung_task",
        "hung_task",
        "blocked",
        rf"INFO: task (?P<comm>{COMM}):(?P<pid>\d+) blocked(?: (?P<wait>in I/O wait))? for more"
        r" than (?P<blocked_s>\d+) seconds\.",
        family=HUNG_TASK,
        traced=True,
    ),
    pattern(
        "wq.lockup",
        "workqueue_lockup",
        "lockup",
        r"BUG: workqueue lockup - pool cpus=(?:(?P<cpu>\d+)(?= )|(?P<cpu_list>\S+))(?:"
        r" node=(?P<node>\d+))? flags=0x",
        r"(?P<flags_hex>[0-9a-f]+)",
        r"(?: bh\S*)?(?: nice=(?P<nice>-?\d+))? stuck for (?P<stuck_s>\d+)s!",
        alarm=True,
    ),
    pattern(
        "wq.hog",
        "workqueue_hog",
        "hogged",
        r"workqueue: (?P<function>\S+)(?: \[(?P<module>[^\]]+)\])? hogged CPU for"
        r" >(?P<hogged_us>\d+)us (?P<times>\d+) times",
    ),
    # A slow read-back means that the core was held for that long: stolen, or interrupts off.
    pattern(
        "clocksource",
        "clocksource_unstable",
        "clocksource:",
        r"clocksource: (?:timekeeping watchdog(?: on CPU(?P<cpu>\d+))?: )?",
        r"(?:Marking clocksource '?(?P<clocksource>[\w-]+)'? (?:as unstable because the skew is too"
        r" large|unst",
        r"able due to .* skew)",
        r"|(?P<clocksource__2>\S+) (?:retried (?P<retries>\d+) times before success|(?:wd-wd"
        r" )?read-back delay of ",
        r"(?P<read_back_ns>\d+)ns)",
        r"|(?P<clocksource__3>wd-\S+) excessive read-back delay)",
    ),
    # A mask of softirq vectors, in hex: 04 NET_TX, 08 NET_RX, 02 TIMER, 80 SCHED, 200 RCU. At most
    # ten per boot.
    pattern(
        "nohz",
        "softirq_pending",
        "NOHZ NOHZ:",
        r"NOHZ(?:: local_softirq_pending (?P<pending_hex>[0-9a-f]+)",
        r"| tick-stop error: (?:Non-RCU )?local softirq work is pending, handler"
        r" #(?P<pending_hex__2>[0-9a-f]+)!!!)",
    ),
    pattern(
        "perf.slow",
        "perf_slow",
        "perf_event_max_sample_rate kernel.perf_event_max_sample_rate",
        r"perf(?: samples|: interrupt| interrupt) to(?:o|ok too) long \((?P<took_ns>\d+) >"
        r" (?P<allowed_ns>\d+)\), ",
        r"lowering kernel\.perf_event_max_sample_rate to (?P<rate_hz>\d+)",
    ),
    pattern(
        "nmi.slow",
        "nmi_slow",
        "NMI",
        r"INFO: NMI handler \((?P<handler>[^)]*)\) took too long to run: (?P<took_ms>[\d.]+) msecs",
    ),
    # Once per boot: a stolen vCPU or a system management interrupt.
    pattern(
        "hrtimer.slow", "hrtimer_slow", "hrtimer:", r"hrtimer: interrupt took (?P<took_ns>\d+) ns"
    ),
    # Once per boot: a real-time task used 95 % of a core, which starves ksoftirqd.
    pattern("rt.throttle", "rt_throttled", "throttling", r"sched: RT throttling activated"),
    pattern(
        "kernel.panic",
        "kernel_panic",
        "panic",
        r"Kernel panic - not syncing: (?P<reason>.*)",
        family=OOPS,
        weight=2,
        traced=True,
    ),
    pattern(
        "kernel.oops",
        "kernel_oops",
        "BUG: BUG Oops: protection",
        r"BUG: (?P<oops>kernel NULL pointer dereference|unable to handle|Bad page \w+ in process"
        r"|scheduling while atomic)",
        r"|kernel BUG at (?P<place>\S+:\d+)!",
        r"|(?:Internal error: )?(?:Oops: )+(?P<oops__2>general protection fault[^\[]*: )?",
        r"(?P<error>[0-9a-f]{4,16}) \[#\d+\](?: [A-Z_]{3}|$)",
        r"|(?P<oops__3>general protection fault)[:,]",
        family=OOPS,
        weight=1,
        traced=True,
    ),
)
