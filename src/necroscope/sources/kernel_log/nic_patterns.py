"""Lines of the network core (net/sched/sch_generic.c) and of the other network drivers, kernels 4.4
to 7.3.
"""

from typing import Final

from necroscope.sources.kernel_log.pattern import NIC, Role, pattern

# `mlx5_core 0000:03:00.0 eth0: `, and of old drivers `i40e 0000:08:00.1: eth9: `; some are quoted
# without it.
_DEVICE: Final = (
    r"(?P<driver>[\w-]+) (?P<bus>(?=\S*\d)[\w.-]+(?::[\w.-]+)*):? (?P<device>[^\s/:]+): "
)
_NETDEV: Final = rf"(?:{_DEVICE})?"
# `ixgbe 0000:02:00.1 eth3: NIC Link is `, `mlx5_core 0000:03:00.0 eth0: Link `, `igb 0000:02:00.1
# p1: igb: p1 NIC Link is `, and of old drivers `igb: p1 NIC Link is `.
_LINK: Final = (
    rf"(?:{_DEVICE}(?:\S+: \S+ )?(?:NIC )?|(?P<driver__2>[\w-]+): (?P<device__2>[^\s/:]+) NIC )"
    r"Link "
)
_INTEL: Final = r"^(?P<driver>ixgbe|igb|igc|e1000e?) (?P<bus>\S+?)(?: (?P<device>\S+))?: "

NIC_PATTERNS: Final = (
    # WARN_ONCE until 5.15: once per boot, later time-outs are silent. Only the driver's own line or
    # the sysfs counter shows them.
    pattern(
        "netdev.watchdog_old",
        "nic_tx_timeout",
        "WATCHDOG:",
        r"NETDEV WATCHDOG: (?P<device>\S+) \((?P<driver>[^)]+)\): transmit queue (?P<queue>\d+)"
        r" timed out(?: ",
        r"(?P<timeout_ms>\d+) ms)?$",
        family=NIC,
        weight=2,
        alarm=True,
        traced=True,
    ),
    # `CPU: N` is where the watchdog's timer ran (raw_smp_processor_id), not where the queue's NAPI
    # starves.
    pattern(
        "netdev.watchdog_new",
        "nic_tx_timeout",
        "WATCHDOG:",
        _DEVICE,
        r"NETDEV WATCHDOG: CPU: (?P<timer_cpu>\d+): ",
        r"transmit queue (?P<queue>\d+) timed out (?P<timeout_ms>\d+) ms",
        family=NIC,
        weight=2,
        alarm=True,
    ),
    pattern(
        "mlx5.tx_timeout",
        "nic_tx_timeout",
        "mlx5_core",
        r"^mlx5_core (?P<bus>\S+) (?P<device>\S+): TX timeout detected",
        family=NIC,
        weight=2,
        alarm=True,
    ),
    pattern(
        "mlx5.tx_timeout_q",
        "nic_tx_timeout",
        "timeout",
        _NETDEV,
        r"TX timeout on queue: (?P<queue>\d+), SQ: 0x(?P<sq_hex>[0-9a-f]+), CQ:"
        r" 0x(?P<cq_hex>[0-9a-f]+), ",
        r"SQ Cons: 0x(?P<consumer_hex>[0-9a-f]+) SQ Prod: 0x(?P<producer_hex>[0-9a-f]+)",
        r"(?:, usecs since last trans: (?P<transmit_us>\d+))?",
        family=NIC,
        weight=2,
        alarm=True,
    ),
    pattern(
        "mlx5.health",
        "nic_health",
        "mlx5_core",
        r"mlx5_core (?P<bus>\S+?): (?:\w+:\d+:\(pid \d+\): )?",
        r"(?P<health>device's health compromised - reached miss count",
        r"|starting health recovery flow|health recovery (?:failed|succeeded))",
        family=NIC,
        alarm=True,
    ),
    pattern(
        "i40e.tx_timeout",
        "nic_tx_timeout",
        "tx_timeout:",
        _NETDEV,
        r"tx_timeout: VSI_seid: (?P<vsi>\d+), Q (?P<queue>\d+), NTC: 0x(?P<clean_hex>[0-9a-f]+),"
        r" HWB: 0x",
        r"(?P<head_hex>[0-9a-f]+), ",
        r"NTU: 0x(?P<use_hex>[0-9a-f]+), TAIL: 0x(?P<tail_hex>[0-9a-f]+), INT:"
        r" 0x(?P<interrupt_hex>[0-9a-f]+)",
        family=NIC,
        weight=2,
        alarm=True,
    ),
    pattern(
        "ice.tx_timeout",
        "nic_tx_timeout",
        "tx_timeout:",
        _NETDEV,
        r"tx_timeout: VSI_num: (?P<vsi>\d+), Q (?P<queue>\d+), NTC: 0x(?P<clean_hex>[0-9a-f]+),"
        r" HW_HEAD: 0x",
        r"(?P<head_hex>[0-9a-f]+), ",
        r"NTU: 0x(?P<use_hex>[0-9a-f]+), INT: 0x(?P<interrupt_hex>[0-9a-f]+)",
        family=NIC,
        weight=2,
        alarm=True,
    ),
    # 1 resets the function, 2 the core, 3 the whole adapter (i40e and ice).
    pattern(
        "intel.recovery",
        "nic_reset",
        "recovery",
        _NETDEV,
        r"tx_timeout recovery level (?P<recovery_level>\d+)(?:, (?:hung_queue|txqueue)"
        r" (?P<queue>\d+))?",
        family=NIC,
        weight=3,
        alarm=True,
    ),
    pattern(
        "intel.recovery_failed",
        "nic_reset_failed",
        "recovery",
        _NETDEV,
        r"tx_timeout recovery unsuccessful, device is in (?:non-recoverable|unrecoverable) state",
        family=NIC,
        alarm=True,
    ),
    pattern(
        "intel.tx_hang",
        "nic_tx_hang",
        "Unit",
        _INTEL,
        r"Detected (?:Tx|Hardware) Unit Hang",
        family=NIC,
        weight=1,
        alarm=True,
        traced=True,
        multiline=True,
    ),
    pattern(
        "intel.tx_hang_queue",
        "nic_tx_hang",
        "Queue",
        r" *Tx Queue +<(?P<queue>\d+)>$",
        family=NIC,
        role=Role.JOINS,
        alarm=True,
    ),
    pattern(
        "intel.tx_hang_ring",
        "nic_tx_hang",
        "TDH TDH,",
        r" *TDH(?:, TDT)? +<(?P<head_hex>[0-9a-f]+)>(?:, <(?P<tail_hex>[0-9a-f]+)>)?$",
        family=NIC,
        role=Role.JOINS,
    ),
    pattern(
        "intel.reset",
        "nic_reset",
        "adapter reset",
        _INTEL,
        r"(?:initiating reset (?:due to tx timeout|to clear Tx work after link loss)|Reset"
        r" adapter(?: unexpectedly)?)$",
        family=NIC,
        weight=3,
        alarm=True,
    ),
    # The first time-out kicks the queue, a second one within 10 s resets. The first two formats
    # have no newline of their own.
    pattern(
        "gve.tx_timeout",
        "nic_tx_timeout",
        "gve",
        r"^gve (?P<bus>\S+) (?P<device>\S+): (?:Timeout on tx queue, (?P<queue>\d+)|Kicking queue"
        r" (?P<queue__2>\d+))",
        family=NIC,
        weight=2,
        alarm=True,
    ),
    pattern(
        "gve.reset",
        "nic_reset",
        "gve",
        r"^gve (?P<bus>\S+): Performing reset",
        family=NIC,
        weight=3,
        alarm=True,
    ),
    pattern(
        "virtio.tx_timeout",
        "nic_tx_timeout",
        "virtio_net",
        r"^virtio_net (?P<bus>\S+) (?P<device>\S+): TX timeout on queue: (?P<queue>\d+), sq:"
        r" (?P<sq>\S+), vq: 0x",
        r"(?P<vq_hex>[0-9a-f]+), ",
        r"name: (?P<ring>\S+), (?P<transmit_us>\d+) usecs ago",
        family=NIC,
        weight=2,
        alarm=True,
    ),
    pattern(
        "bnxt.tx_timeout",
        "nic_reset",
        "bnxt_en",
        r"^bnxt_en (?P<bus>\S+) (?P<device>\S+): TX timeout detected, starting reset task!",
        family=NIC,
        weight=3,
        alarm=True,
    ),
    pattern(
        "vmxnet3.hang",
        "nic_tx_timeout",
        "vmxnet3",
        r"^vmxnet3 (?P<bus>\S+) (?P<device>\S+): tx hang$",
        family=NIC,
        weight=2,
        alarm=True,
    ),
    pattern(
        "vmxnet3.reset",
        "nic_reset",
        "vmxnet3",
        r"^vmxnet3 (?P<bus>\S+) (?P<device>\S+): resetting$",
        family=NIC,
        weight=3,
        alarm=True,
    ),
    pattern(
        "nic.link_down",
        "nic_link_down",
        "Down down Down.",
        _LINK,
        r"(?:is [Dd]own\b|[Dd]own$)",
        family=NIC,
    ),
    # The way back from a reset or a lost link.
    pattern(
        "nic.link_up",
        "nic_link_up",
        "Up up Up,",
        _LINK,
        r"(?:is [Uu]p\b|[Uu]p$)",
        family=NIC,
        role=Role.ENDS,
    ),
    pattern(
        "conntrack.full",
        "conntrack_full",
        "nf_conntrack:",
        r"(?:nf_conntrack: )+table full(?: in netns \d+)?, dropping packet",
    ),
    pattern(
        "tcp.syn_flood",
        "syn_flood",
        "flooding",
        r"(?:TCP: )?(?:\w+: )?Possible SYN flooding on port (?P<port>\S+?)\. ",
        r"(?P<answer>Sending cookies|Dropping request)",
    ),
    pattern(
        "neighbour.overflow",
        "neighbour_overflow",
        "overflow! overflow",
        r"(?:neighbour: )?(?P<table>\w{1,64}): [Nn]eighbou?r(?:ing)? table overflow",
    ),
)
