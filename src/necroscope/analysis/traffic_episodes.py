"""Episodes of traffic that is lost or held back: segments sent again, listeners and tables that
drop, an instance's allowance that is used up.

They are weak: a busy network loses packets every day. They are candidates of their own, because
they are of no core.
"""

from collections.abc import Iterator
from typing import Final

import numpy as np

from necroscope.analysis.columns import ColumnArrays, Floats, runs
from necroscope.analysis.core_time import usual
from necroscope.analysis.device_counters import CounterKind
from necroscope.analysis.episodes import Episode, EpisodeKind
from necroscope.analysis.node import Node
from necroscope.model.span import Span
from necroscope.model.tables import TABLES
from necroscope.model.units import NS_PER_S

RETRANSMITS: Final = "tcp_retransmits"
# Per second, and how it is reported.
_COUNTED: Final = {
    RETRANSMITS: (20.0, "{amount:,.0f} TCP segments were sent again"),
    "listen_drops": (5.0, "listeners dropped {amount:,.0f} connections"),
    "udp_receive_errors": (50.0, "{amount:,.0f} datagrams found their socket full"),
    "conntrack_drops": (
        1.0,
        "connection tracking dropped {amount:,.0f} packets: its table is full",
    ),
    "conntrack_early_drops": (
        5.0,
        "connection tracking evicted {amount:,.0f} connections for others",
    ),
    "conntrack_insert_failed": (
        1.0,
        "{amount:,.0f} connections were not tracked: their first packets raced",
    ),
}
_RETRANSMITTED: Final = 0.02
_TIMES: Final = 3.0
_LASTS_S: Final = 1.5
# Allowances are read every few seconds; a burst for a moment is shaped on every instance.
_ALLOWANCE_PER_S: Final = 10.0
_READ_NS: Final = round(TABLES["nics"].period_s * NS_PER_S)


def traffic_episodes(node: Node) -> Iterator[Episode]:
    rows = node.columns("network")
    if len(rows):
        for counter in _COUNTED:
            yield from _counter_episodes(rows, counter)
    yield from _allowance_episodes(node)


def _counter_episodes(rows: ColumnArrays, counter: str) -> Iterator[Episode]:
    least, words = _COUNTED[counter]
    per_s: Floats = np.nan_to_num(rows[counter] / rows["elapsed_ns"]) * NS_PER_S
    common = usual(per_s, rows["time"])
    is_high = (per_s >= least) & (per_s >= _TIMES * common)
    if counter == RETRANSMITS:
        sent = np.maximum(np.nan_to_num(rows["tcp_out_segments"]), 1.0)
        is_high &= np.nan_to_num(rows[counter]) / sent >= _RETRANSMITTED
    breaks = np.append(True, np.diff(rows["time"]) > 5 * NS_PER_S)
    for first, end in runs(is_high, breaks):
        if float(rows["elapsed_ns"][first:end].sum()) / NS_PER_S < _LASTS_S:
            continue
        span = Span(
            int(rows["time"][first] - rows["elapsed_ns"][first]), int(rows["time"][end - 1])
        )
        lost = float(np.nansum(rows[counter][first:end]))
        yield _episode(span, f"{words} ({common:,.0f} per second are usual)", counter, lost)


def _allowance_episodes(node: Node) -> Iterator[Episode]:
    for one in node.device_rises:
        if one.kind is CounterKind.ALLOWANCE and one.rise * NS_PER_S >= _ALLOWANCE_PER_S * _READ_NS:
            words = f"{one.device} held back or dropped {{amount:,.0f}} packets: {one.counter}"
            span = Span(one.time_ns - _READ_NS, one.time_ns)
            yield _episode(span, words, f"{one.device} {one.counter}", one.rise, "nics")


def _episode(
    span: Span, words: str, subject: str, amount: float, table: str = "network"
) -> Episode:
    return Episode(
        EpisodeKind.TRAFFIC_LOST,
        None,
        None,
        *span,
        0.3,
        words,
        table,
        is_strong=False,
        subject=subject,
        amount=amount,
    )
