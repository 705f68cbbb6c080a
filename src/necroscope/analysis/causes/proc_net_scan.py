"""A process reads the tables of all sockets as text.

Signature: system time on one core at a reader's period (netstat, an agent), in the functions that
walk the socket hash tables and write a line for each socket: tcp4_seq_show, established_get_next
and their like, below a read of /proc/net/tcp.
Confirming signal: these functions have a quarter of what runs on that core, below a read.
Source: collectd pull request 113 (2.5 s by /proc/net/tcp, 0.04 s by netlink); Diamond #660 (58 s at
115,000 connections); telegraf #6559; net/ipv4/tcp_ipv4.c.
"""

from typing import Final

from necroscope.analysis.case import Case
from necroscope.analysis.cause import Assessment, Cause, Signature
from necroscope.analysis.evidence import file_of
from necroscope.analysis.functions import functions
from necroscope.analysis.report import WillNotHelp
from necroscope.analysis.task_origin import origin_of
from necroscope.analysis.thresholds import Threshold
from necroscope.analysis.walk_numbers import describe_walk

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
SIGNATURE: Final = Signature(
    SCAN,
    "writing a line for each socket",
    inside=READS,
    least=Threshold(0.15, "an agent that reads a short table each second stays below it"),
    confirmed=Threshold(0.25, "from a quarter of a core on the scan is what the core is busy with"),
)


def assess(case: Case) -> Assessment | None:
    found = SIGNATURE.match(case)
    if found is None:
        return None
    walked, numbers = describe_walk(case, SCAN, ("tcp-sockets", "unix-sockets", "udp-sockets"))
    return found.assessment(
        walked=walked,
        summary=(
            f"{found.who} reads all socket tables as text, {found.share:.0%} of what {case.place}"
            f" does{case.beat}"
        ),
        origin=origin_of(found.culprit),
        evidence=[*file_of(case, found.culprit), *numbers],
        fix=(
            (
                f"have {found.who} use netlink (`ss`, inet_diag), which filters in the kernel, or"
                " read /proc/net/sockstat for counts"
            ),
        ),
    )


CAUSE = Cause(
    slug="proc-net-scan",
    title="all socket tables are read as text",
    confirming=(
        "the walk over sockets is a quarter of the core's samples, below a read of /proc/net/tcp"
        " or similar"
    ),
    would_confirm="the lines of /proc/net/tcp and the time of one read of it",
    assess=assess,
    signature=SIGNATURE,
    fix=(
        "read less often: a count of connections is not needed every few seconds",
        (
            "find which process holds that many sockets (`ss -s`): idle and TIME_WAIT connections"
            " are lines of that file too"
        ),
    ),
    verify=(
        (
            "one read of /proc/net/tcp takes milliseconds, or no process reads it: the functions"
            " are gone from the core's samples"
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
