"""The table of what the network did to traffic: TCP's retransmits and refusals, and connection
tracking.
"""

from typing import Final

from necroscope.model.table import Column, Table, Type

TCP_COLUMNS: Final = {
    "tcp_in_segments": "segments received",
    "tcp_out_segments": "segments sent, retransmits left out",
    "tcp_retransmits": "segments sent again",
    "tcp_active_opens": "connections opened from here",
    "tcp_passive_opens": "connections accepted",
    "tcp_attempt_fails": "connections that were not established",
    "tcp_established_resets": "established connections that were reset",
    "tcp_out_resets": "resets sent",
    "udp_receive_errors": "datagrams dropped because a socket's buffer was full",
    "listen_overflows": "connections dropped because a listener's queue was full",
    "listen_drops": "connections a listener dropped, for whatever reason",
    "tcp_timeouts": "retransmission timers that fired",
    "tcp_syn_retransmits": "requests for a connection sent again",
    "tcp_receive_collapsed": "segments collapsed because a socket's buffer was full",
    "tcp_aborts_on_timeout": "connections given up after too many retransmits",
}
CONNTRACK_COLUMNS: Final = {
    "conntrack_insert_failed": "connections not tracked: two packets raced, and one was dropped",
    "conntrack_drops": "packets dropped because the table was full",
    "conntrack_early_drops": "tracked connections given up to make room for another",
}

NETWORK_TABLES: Final = (
    Table(
        "network",
        "what TCP and connection tracking counted in the node's network since the row before",
        "/proc/net/snmp, /proc/net/netstat, /proc/net/stat/nf_conntrack",
        (
            Column("time", Type.INT64, "when, in ns UTC"),
            Column(
                "elapsed_ns",
                Type.INT64,
                "time since the row before: the denominator of every share",
            ),
            *(
                Column(name, Type.INT64, meaning, nullable=True)
                for name, meaning in (TCP_COLUMNS | CONNTRACK_COLUMNS).items()
            ),
            Column("conntrack_entries", Type.INT64, "connections tracked now", nullable=True),
        ),
    ),
)
