"""Episodes of softirqs that do not run: raised and waiting, frozen on a busy core, their threads
without a core, packets lost.

No single signal sees all of them. A thread's run delay is booked only when the wait ends; and of
ksoftirqd it is a stall only where softirqs do not run without it: since v6.5 (commit d15121be7485)
they run at every interrupt exit, and its delay is a false alarm. That is decided by what the data
shows, never by the kernel's version: the core's softirqs must have stopped too.
"""

from collections.abc import Iterator
from typing import Final

import numpy as np

from necroscope.analysis.columns import ColumnArrays, Flags, Floats, core_breaks, runs
from necroscope.analysis.episodes import Episode, EpisodeKind
from necroscope.analysis.node import Node
from necroscope.model.definitions import (
    BUSY_RATIO,
    FROZEN_NS,
    LONG_WAIT_NS,
    STALL_NS,
    STARVING_RATIO,
)
from necroscope.model.span import Span
from necroscope.model.tables import SOFTIRQ_VECTORS
from necroscope.model.units import NS_PER_S

_SLOWED: Final = 0.1
_DROPPED_PER_S: Final = 20


def softirq_episodes(node: Node) -> Iterator[Episode]:
    yield from _delay_episodes(node.columns("softirq_delay"))
    frozen = list(_blackout_episodes(node))
    yield from frozen
    yield from _threads(node, frozen)
    yield from _drop_episodes(node.columns("softnet"))


def _delay_episodes(rows: ColumnArrays) -> Iterator[Episode]:
    if not len(rows):
        return
    wait_ns = np.fmax(np.nan_to_num(rows["worst_ns"]), np.nan_to_num(rows["pending_ns"]))
    for row in np.flatnonzero(wait_ns >= LONG_WAIT_NS):
        cpu, vector, wait_s = (
            int(rows["cpu"][row]),
            rows["vector"][row],
            float(wait_ns[row]) / NS_PER_S,
        )
        time_ns = int(rows["time"][row])
        is_over = rows["pending_ns"][row] < rows["worst_ns"][row]
        words = (
            f"{vector} on core {{cpu}} {'waited' if is_over else 'has waited'} {{wait_ms:.0f}} ms"
            " for its handler"
        )
        start_ns = time_ns - int(wait_ns[row]) - (NS_PER_S if is_over else 0)
        is_strong = bool(wait_ns[row] >= STALL_NS)
        yield Episode(
            EpisodeKind.SOFTIRQ_DELAYED,
            cpu,
            None,
            start_ns,
            time_ns,
            wait_s,
            words,
            "softirq_delay",
            is_strong,
        )


def _blackout_episodes(node: Node) -> Iterator[Episode]:
    """A busy core takes timer interrupts, and these raise softirqs: none in a second means they are
    held back.

    A nohz_full core in user mode takes none while it is well: there the core must be in the kernel,
    or a wait measured.
    """
    rows = node.columns("softirqs")
    if not len(rows) or not node.has_core_times:
        return
    busy, kernel = _shares_at(node, rows)
    is_measured = len(node.columns("softirq_delay")) > 0
    flags = (_count_softirqs(rows) == 0) & (busy >= BUSY_RATIO) & (_is_counted(rows))
    for first, end in runs(flags, core_breaks(rows["cpu"])):
        frozen_ns = float(rows["elapsed_ns"][first:end].sum())
        cpu = int(rows["cpu"][first])
        span = Span(
            int(rows["time"][first] - rows["elapsed_ns"][first]), int(rows["time"][end - 1])
        )
        if frozen_ns < FROZEN_NS or (
            kernel[first:end].mean() < 0.5 and not _has_stall(node, cpu, span)
        ):
            continue
        if is_measured and not _has_stall(node, cpu, span):
            continue
        words, frozen_s = (
            "no softirq of any kind ran on busy core {cpu} for {amount:.1f} s",
            frozen_ns / NS_PER_S,
        )
        yield Episode(
            EpisodeKind.SOFTIRQ_FROZEN,
            cpu,
            None,
            *span,
            frozen_s,
            words,
            "softirqs",
            amount=frozen_s,
        )


def _threads(node: Node, frozen: list[Episode]) -> Iterator[Episode]:
    rows = node.columns("runqueue")
    if not len(rows):
        return
    order = np.lexsort((rows["time"], rows["pid"]))
    rows = rows.at(order)
    breaks = np.append(True, np.diff(rows["pid"]) != 0)
    is_starving = (rows["state"] == "R") & (rows["run_ns"] == 0) & (rows["elapsed_ns"] >= STALL_NS)
    is_starving &= np.append(False, is_starving[:-1]) & ~breaks
    share = np.nan_to_num(rows["delay_ns"] / rows["elapsed_ns"])
    flags = ((share >= STARVING_RATIO) & (rows["delay_ns"] >= STALL_NS)) | is_starving
    for first, end in runs(flags, breaks):
        cpu, comm = int(rows["cpu"][first]), str(rows["comm"][first])
        delay_s = _waited_s(
            rows["delay_ns"][first:end], np.where(is_starving, rows["elapsed_ns"], 0.0)[first:end]
        )
        # What was booked now had begun before.
        span = Span(
            int(rows["time"][first] - max(rows["elapsed_ns"][first], rows["delay_ns"][first])),
            int(rows["time"][end - 1]),
        )
        if comm.startswith("ksoftirqd/") and not _softirqs_stopped(node, cpu, span, frozen):
            continue
        words = "{subject} was runnable on core {cpu} and got no time for {amount:.2f} s"
        yield Episode(
            EpisodeKind.THREAD_DELAYED,
            cpu,
            None,
            *span,
            delay_s,
            words,
            "runqueue",
            subject=comm,
            amount=delay_s,
        )


def _waited_s(booked_ns: Floats, starving_ns: Floats) -> float:
    """What was booked, and what goes on since then: a wait is booked as a whole when it ends, its
    seconds before are in it.
    """
    last = int(np.flatnonzero(booked_ns > 0).max(initial=-1))
    return float(np.nansum(booked_ns) + starving_ns[last + 1 :].sum()) / NS_PER_S


def _drop_episodes(rows: ColumnArrays) -> Iterator[Episode]:
    """Packets that the core's backlog had no room for."""
    if not len(rows):
        return
    per_s = np.nan_to_num(rows["dropped"] / rows["elapsed_ns"]) * NS_PER_S
    for first, end in runs(per_s >= _DROPPED_PER_S, core_breaks(rows["cpu"])):
        cpu = int(rows["cpu"][first])
        span = Span(
            int(rows["time"][first] - rows["elapsed_ns"][first]), int(rows["time"][end - 1])
        )
        lost = int(rows["dropped"][first:end].sum())
        words = "{amount:,.0f} packets were dropped from the backlog of core {cpu}"
        yield Episode(
            EpisodeKind.PACKETS_DROPPED,
            cpu,
            None,
            *span,
            0.5,
            words,
            "softnet",
            is_strong=False,
            amount=lost,
        )


def _count_softirqs(rows: ColumnArrays) -> Floats:
    handled: Floats = np.sum([np.nan_to_num(rows[vector]) for vector in SOFTIRQ_VECTORS], axis=0)
    return handled


def _is_counted(rows: ColumnArrays) -> Flags:
    known: Flags = np.any([np.isfinite(rows[vector]) for vector in SOFTIRQ_VECTORS], axis=0)
    return known


def _shares_at(node: Node, rows: ColumnArrays) -> tuple[Floats, Floats]:
    """The busy and the kernel's share of each row's core at that time: the row of `cores` of the
    same tick.
    """
    cores = node.core_shares
    if not len(cores.rows):
        return np.zeros(len(rows)), np.zeros(len(rows))
    key = cores.rows["cpu"].astype(np.float64) * 1e10 + cores.rows["time"] / NS_PER_S % 1e10
    wanted = rows["cpu"].astype(np.float64) * 1e10 + rows["time"] / NS_PER_S % 1e10
    place = np.clip(np.searchsorted(key, wanted - 0.05), 0, len(key) - 1)
    busy = 1.0 - cores.shares["idle"]
    is_same = np.abs(key[place] - wanted) < 0.5
    return np.where(is_same, busy[place], 0.0), np.where(
        is_same, cores.shares["kernel"][place], 0.0
    )


def _has_stall(node: Node, cpu: int, span: Span) -> bool:
    rows = (
        node.columns("softirq_delay").of_core(cpu).within([Span(span[0], span[1] + 2 * NS_PER_S)])
    )
    return bool(len(rows)) and bool(
        (np.fmax(rows["worst_ns"], rows["pending_ns"]) >= STALL_NS).any()
    )


def _softirqs_stopped(node: Node, cpu: int, span: Span, frozen: list[Episode]) -> bool:
    """Whether the core's softirqs stood still or nearly so in that time, or one was measured to
    wait.
    """
    if any(
        episode.cpu == cpu and episode.from_ns < span[1] and episode.to_ns > span[0]
        for episode in frozen
    ):
        return True
    if _has_stall(node, cpu, span):
        return True
    if len(node.columns("softirq_delay")):
        return False
    rows = node.columns("softirqs").of_core(cpu)
    if not len(rows):
        return False
    common = float(np.median(_count_softirqs(rows) / rows["elapsed_ns"]))
    then = rows.within([span])
    return (
        bool(len(then))
        and float(np.median(_count_softirqs(then) / then["elapsed_ns"])) < _SLOWED * common
    )
