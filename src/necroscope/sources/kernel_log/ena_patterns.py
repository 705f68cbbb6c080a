"""Lines of Amazon's ENA driver, out-of-tree 1.1.2 to 2.17.0 and in-tree 4.15 to 7.3 (amzn-drivers
ena_netdev.c).
"""

from typing import Final

from necroscope.sources.kernel_log.pattern import NIC, Role, pattern

_ENA: Final = r"^ena (?P<bus>\S+) (?P<device>\S+): "

ENA_PATTERNS: Final = (
    # Counters at reset time: about 30 lines, and until 2.13 about 30 more for each queue.
    pattern(
        "ena.stat_dump",
        "nic_counters",
        "ena",
        _ENA,
        r"(?P<counter>(?:queue_\d+_(?:tx|rx)_|total_(?:tx|rx)_)?[a-z_]+): (?P<value>\d+)$",
        family=NIC,
        role=Role.JOINS,
    ),
    # One line for each packet: storms of hundreds.
    pattern(
        "ena.tx_not_completed",
        "nic_tx_late",
        "wasn't hasn't",
        _ENA,
        r"(?:Found a Tx that wasn't completed on time|TX hasn't completed), qid:? (?P<queue>\d+),"
        r" index:? \d+[.,]",
        r"(?: (?P<napi_us>\d+) usecs (?:have passed since|from) last napi execution)?",
        r"(?: (?P<interrupt_ms>\d+) msecs since (?:last )?interrupt, (?P<napi_ms>\d+) msecs since"
        r" (?:last )?napi",
        r"(?: execution)?)?",
        r"(?:, napi scheduled: (?P<napi_scheduled>[01]))?",
        r"(?:\. Missing Tx timeout value (?P<completion_timeout_ms>\d+) msecs)?",
        family=NIC,
        weight=1,
        alarm=True,
    ),
    pattern(
        "ena.tx_q_paused",
        "nic_tx_timeout",
        "paused",
        _ENA,
        r"TX q (?P<queue>\d+) is paused for too long \(threshold (?P<threshold_us>\d+)\)\. ",
        r"(?:Time since last napi (?P<napi_us>\d+) usec|usecs since napi (?P<napi_us__2>\d+))\."
        r" napi scheduled: ",
        r"(?P<napi_scheduled>[01])",
        r"(?:\. napi CPU: (?P<cpu>-?\d+))?(?:\. msecs since (?:last )?interrupt:"
        r" (?P<interrupt_ms>\d+))?",
        family=NIC,
        weight=2,
        alarm=True,
    ),
    # Only when NAPI is scheduled and did not run for longer than the watchdog's limit: reset reason
    # SUSPECTED_POLL_STARVATION.
    pattern(
        "ena.napi_starved",
        "nic_napi_starved",
        "napi",
        _ENA,
        r"napi handler hasn't been called for a long time but is scheduled",
        family=NIC,
        weight=1,
        alarm=True,
    ),
    pattern(
        "ena.tx_timeout_old",
        "nic_tx_timeout",
        "Transmit",
        _ENA,
        "Transmit time out$",
        family=NIC,
        weight=2,
        alarm=True,
    ),
    pattern(
        "ena.new_missed",
        "nic_tx_late",
        "completions,",
        _ENA,
        r"\[1/2\] (?P<missed>\d+) new missed TX completions, qid: (?P<queue>\d+),"
        r" (?P<interrupt_ms>\d+) msecs since interrupt, ",
        r"(?P<napi_ms>\d+) msecs since napi, napi scheduled: (?P<napi_scheduled>[01])",
        family=NIC,
        weight=1,
        alarm=True,
    ),
    pattern(
        "ena.new_missed_2",
        "nic_tx_late",
        "[2/2]",
        _ENA,
        r"\[2/2\] qid: (?P<queue>\d+), highest TX completion pending time \(msec\):"
        r" (?P<pending_ms>\d+), ",
        r"napi sched changes: (?P<napi_schedule_changes>\d+), napi CPU: (?P<cpu>-?\d+)",
        family=NIC,
        role=Role.JOINS,
        weight=1,
        alarm=True,
    ),
    pattern(
        "ena.lost_tx",
        "nic_tx_timeout",
        "completions",
        _ENA,
        r"(?:\[1/2\] )?(?:The number of lost tx completions is|Lost TX completions are) above"
        r" (?:the )?threshold ",
        r"\((?P<lost>\d+) > (?P<lost_limit>\d+)\)",
        r"(?:[.,] [Cc]ompletion (?:transmission )?timeout: (?P<completion_timeout_ms>\d+))?(?:"
        r" \(msec\))?",
        r"(?:[.,] (?P<interrupt_ms>\d+) msecs since (?:last )?interrupt, (?P<napi_ms>\d+) msecs"
        r" since (?:last )?napi",
        r"(?: execution)?)?",
        r"(?:[.,] qid:? (?P<queue>\d+))?",
        family=NIC,
        weight=2,
        alarm=True,
    ),
    # 2.17.0 passes (cpu, qid) to this format: the two numbers stand in each other's place.
    # `Sequence` puts them right.
    pattern(
        "ena.lost_tx_2",
        "nic_tx_timeout",
        "[2/2]",
        _ENA,
        r"\[2/2\] qid: (?P<cpu>-?\d+), napi CPU: (?P<queue>-?\d+)$",
        family=NIC,
        role=Role.JOINS,
        weight=2,
        alarm=True,
    ),
    pattern(
        "ena.keepalive",
        "nic_keepalive_timeout",
        "Keep",
        _ENA,
        r"Keep alive watchdog timeout(?:\.|, (?P<keepalive_ms>\d+) msecs since last keep alive\.)",
        family=NIC,
        weight=1,
        alarm=True,
    ),
    pattern(
        "ena.admin_queue",
        "nic_admin_queue_stopped",
        "admin",
        _ENA,
        "ENA admin queue is not in running state!",
        family=NIC,
        weight=1,
        alarm=True,
    ),
    pattern(
        "ena.reset_start",
        "nic_reset",
        "Trigger",
        _ENA,
        "Trigger reset is on",
        family=NIC,
        weight=3,
        alarm=True,
    ),
    # Until 2.13.0 it says `successfully` even after `Reset attempt failed`. It has no interface
    # name.
    pattern(
        "ena.reset_done",
        "nic_reset_done",
        "completed completed,",
        r"^ena (?P<bus>\S+): Device reset completed(?: successfully)?(?:, status:"
        r" (?P<status>-?\d+))?(?:, Driver info: ",
        r"(?P<driver_info>.*))?$",
        family=NIC,
        role=Role.ENDS,
    ),
    pattern(
        "ena.reset_fail",
        "nic_reset_failed",
        "attempt",
        r"^ena (?P<bus>\S+?)(?: (?P<device>\S+))?: Reset attempt failed\. Can not reset the device",
        family=NIC,
        alarm=True,
    ),
    pattern(
        "ena.msix",
        "nic_lost_interrupt",
        "MSIX",
        _ENA,
        r"Potential MSIX issue on (?P<direction>Rx|Tx) side Queue = (?P<queue>\d+)\.",
        family=NIC,
        weight=1,
        alarm=True,
    ),
)
