"""Somebody reads the tables of all sockets as text.

Signature: system time on one core at a reader's period (netstat, an agent), in the functions that
walk the socket hash tables and write a line for each socket: tcp4_seq_show, established_get_next
and their like, below a read of /proc/net/tcp.
Confirming signal: these functions have a quarter of what runs on that core, below a read.
Source: collectd pull request 113 (2.5 s by /proc/net/tcp, 0.04 s by netlink); Diamond #660 (58 s at
115,000 connections); telegraf #6559; net/ipv4/tcp_ipv4.c.
"""

from typing import Final

from necroscope.analysis.case import Case
from necroscope.analysis.cause import Assessment, Cause
from necroscope.analysis.evidence_texts import file_of, in_samples, suffering, what_held_the_core
from necroscope.analysis.functions import functions
from necroscope.analysis.periodicity import told
from necroscope.analysis.report import WillNotHelp
from necroscope.analysis.task_origin import origin_of

SCAN: Final = functions(
    "tcp4_seq_show tcp6_seq_show tcp_seq_start tcp_seq_next tcp_seq_stop tcp_get_idx"
    " tcp_seek_last_pos established_get_* listening_get_* get_tcp4_sock get_tcp6_sock"
    " get_timewait4_sock get_timewait6_sock get_openreq4 get_openreq6 udp4_seq_show udp6_seq_show"
    " udp4_format_sock udp_seq_* udp_get_* raw_seq_* raw_get_* unix_seq_* unix_get_* packet_seq_*"
    " netlink_seq_* bpf_iter_tcp_* bpf_iter_udp_*"
)
READS: Final = functions(
    "seq_read seq_read_iter proc_reg_read proc_reg_read_iter vfs_read ksys_read __x64_sys_read"
    " __arm64_sys_read"
)
_LEAST: Final = 0.15
_CONFIRMED: Final = 0.25


def assess(case: Case) -> Assessment | None:
    held = case.now.share(SCAN, inside=READS)
    if held < _LEAST:
        return None
    culprit = case.culprit(SCAN)
    who = culprit.comm if culprit else "a task"
    beat = f", {told(case.period_s)}" if case.period_s else ""
    place = f"core {case.core}" if case.core is not None else "the node"
    return Assessment(
        explains=held,
        is_confirmed=held >= _CONFIRMED,
        evidence=[
            in_samples(case, SCAN, "writing a line for each socket"),
            *file_of(case, culprit),
            *what_held_the_core(case),
            *suffering(case),
        ],
        would_confirm="the lines of /proc/net/tcp and the time of one read of it",
        summary=(
            f"{who} reads the tables of all sockets as text, {held:.0%} of what {place} does{beat}"
        ),
        culprit=culprit,
        origin=origin_of(culprit),
        fix=(
            (
                f"let {who} ask by netlink (`ss`, inet_diag), which filters in the kernel, or read"
                " /proc/net/sockstat for counts"
            ),
        ),
    )


CAUSE = Cause(
    slug="proc-net-scan",
    title="the tables of all sockets are read as text",
    confirming=(
        "the walk over sockets has a quarter of the core's samples, below a read of /proc/net/tcp"
        " or its like"
    ),
    assess=assess,
    fix=(
        "read less often: a count of connections is not needed every few seconds",
        (
            "find who holds so many sockets (`ss -s`): connections in TIME_WAIT and idle ones are"
            " lines of that file too"
        ),
    ),
    verify=(
        (
            "one read of /proc/net/tcp takes milliseconds, or nobody reads it: the functions are"
            " gone from the core's samples"
        ),
    ),
    will_not_help=(
        WillNotHelp(
            "a faster parser in the agent", "the time is spent in the kernel, writing the text"
        ),
        WillNotHelp(
            "a larger read buffer", "the kernel hands out a page at a time, whatever is asked for"
        ),
    ),
)
