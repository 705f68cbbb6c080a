"""Episodes in how cores spend their time: held in a kernel mode, held by user code next to idle
cores, time in no mode.

Shares are of elapsed time. What is much is judged by the machine's own usual: the median of the
core over the stretch, or of all cores if that is lower, so that a core that was held all the time
still stands out from its neighbours. In a short recording the incident itself may be most of it:
there the lower quarter stands for the usual. Nine tenths of a core in the kernel for seconds are an
episode whatever is usual.
"""

from collections.abc import Iterator
from typing import Final

import numpy as np

from necroscope.analysis.columns import runs
from necroscope.analysis.core_time import MODES, CoreShares, usual
from necroscope.analysis.episodes import Episode, EpisodeKind
from necroscope.analysis.node import Node
from necroscope.model.definitions import SATURATED_RATIO, USER_BUSY_RATIO
from necroscope.model.units import NS_PER_MS, NS_PER_S

# A core is held from here on; rows that are part of such a stretch may have less, because it begins
# and ends between two ticks.
_PART: Final = 0.5
_ABOVE_USUAL: Final = 0.25
_HELD_S: Final = 0.9
_HELD_OFTEN_S: Final = 5.0
_ELEVATED_S: Final = 1.8
_USER_S: Final = 4.0
_OTHERS_IDLE: Final = 0.5
_MISSING: Final = 0.3
_MISSING_ABOVE_USUAL: Final = 0.2
# Jiffies are 10 ms: in a short tick the rounding of nine modes looks like lost time.
_MISSING_TICK_NS: Final = 900 * NS_PER_MS
_MACHINE: Final = 0.25
_MACHINE_S: Final = 2.5
_KERNEL_MODES: Final = ("system", "irq", "softirq", "steal")


def core_episodes(node: Node) -> Iterator[Episode]:
    cores = node.core_shares
    if not len(cores.rows):
        return
    yield from _held(cores)
    yield from _held_by_user(cores, node)
    yield from _machine_elevated(cores)
    if node.has_core_times:
        yield from _missing(cores)


def _held(cores: CoreShares) -> Iterator[Episode]:
    kernel, common = cores.shares["kernel"], cores.usual("kernel")
    # A core that the kernel has to itself is never well, however usual that is here.
    flags = (kernel >= _PART) & (kernel >= np.minimum(common + _ABOVE_USUAL, SATURATED_RATIO))
    for first, end in runs(flags, cores.breaks):
        peak, held_s = float(kernel[first:end].max()), cores.held_s("kernel", first, end)
        # Where the kernel has much of the core all day, a second of all of it is nothing special.
        least_s = _HELD_S if common[first] < _PART else _HELD_OFTEN_S
        is_strong = peak >= SATURATED_RATIO and held_s >= least_s
        if not is_strong and held_s < _ELEVATED_S:
            continue
        mode = max(_KERNEL_MODES, key=lambda name: cores.held_s(name, first, end))
        yield _core_episode(cores, first, end, mode, is_strong, float(common[first]))


def _core_episode(
    cores: CoreShares, first: int, end: int, mode: str, is_strong: bool, common: float
) -> Episode:
    cpu, span = int(cores.rows["cpu"][first]), cores.span(first, end, "kernel")
    # The first and the last row are cut by the ticks: the level is that of what lies between them.
    inner = slice(first + 1, end - 1) if end - first > 2 else slice(first, end)
    level = float(cores.shares["kernel"][inner].mean())
    seconds = cores.held_s("kernel", first, end)
    kind, word = (EpisodeKind.SATURATED, "held") if is_strong else (EpisodeKind.ELEVATED, "busy")
    words = (
        f"core {{cpu}} was {word} {{level:.0%}} in the kernel, mostly {{mode}}, for {{amount:.1f}}"
        " s (usual: {reference:.0%})"
    )
    return Episode(
        kind, cpu, mode, *span, level, words, "cores", is_strong, amount=seconds, reference=common
    )


def _held_by_user(cores: CoreShares, node: Node) -> Iterator[Episode]:
    """One core full of user code while others have nothing to do: one thread, or one that may run
    nowhere else.
    """
    user = cores.shares["user"]
    flags = (
        (user + cores.shares["kernel"] >= USER_BUSY_RATIO)
        & (user >= _PART)
        & (cores.usual("user") < _PART)
    )
    for first, end in runs(flags, cores.breaks):
        held_s = cores.held_s("user", first, end)
        if held_s < _USER_S:
            continue
        cpu, span = int(cores.rows["cpu"][first]), cores.span(first, end)
        others = cores.rows.within([span])
        others = others.at(others["cpu"] != cpu)
        elapsed_ns = others.total("elapsed_ns")
        idle = (others.total(*MODES["idle"]) or 0.0) / elapsed_ns if elapsed_ns else 1.0
        if node.cores > 1 and idle < _OTHERS_IDLE:
            continue
        level = float(user[first:end].mean())
        words = (
            "core {cpu} was busy {level:.0%} in user mode for {amount:.1f} s while other cores were"
            " {reference:.0%} idle"
        )
        yield Episode(
            EpisodeKind.USER_BUSY,
            cpu,
            "user",
            *span,
            level,
            words,
            "cores",
            False,
            amount=held_s,
            reference=idle,
        )


def _machine_elevated(cores: CoreShares) -> Iterator[Episode]:
    """The kernel's share of all cores together, for what spreads itself over them."""
    ticks, place = np.unique(cores.rows["time"] // NS_PER_S, return_inverse=True)
    elapsed_ns = np.bincount(place, weights=cores.rows["elapsed_ns"])
    kernel = np.bincount(
        place, weights=cores.shares["kernel"] * cores.rows["elapsed_ns"]
    ) / np.maximum(elapsed_ns, 1)
    common = usual(kernel, ticks * NS_PER_S)
    flags = (kernel >= _MACHINE) & (kernel >= 2 * common + 0.1)
    for first, end in runs(flags, np.append(True, np.diff(ticks) > 2)):
        if end - first < _MACHINE_S:
            continue
        level = float(kernel[first:end].mean())
        span = int(ticks[first]) * NS_PER_S - NS_PER_S, int(ticks[end - 1] + 1) * NS_PER_S
        words = (
            "all cores together were {level:.0%} in the kernel for {amount:.0f} s (usual:"
            " {reference:.0%})"
        )
        yield Episode(
            EpisodeKind.ELEVATED,
            None,
            "system",
            *span,
            level,
            words,
            "cores",
            False,
            amount=end - first,
            reference=common,
        )


def _missing(cores: CoreShares) -> Iterator[Episode]:
    """A tick that comes late books one tick: time with interrupts off, or while the machine itself
    stood still, is in no mode.
    """
    missing = 1.0 - cores.shares["all"]
    common = usual(missing, cores.rows["time"])
    long_enough = cores.rows["elapsed_ns"] >= _MISSING_TICK_NS
    flags = (missing >= _MISSING) & (missing >= common + _MISSING_ABOVE_USUAL) & long_enough
    for first, end in runs(flags, cores.breaks):
        cpu, span = int(cores.rows["cpu"][first]), cores.span(first, end)
        lost_s = float((missing[first:end] * cores.rows["elapsed_ns"][first:end]).sum()) / NS_PER_S
        words = (
            "the kernel charged {amount:.2f} s of core {cpu} to no mode: interrupts were off"
            " there, or the machine stood still"
        )
        level = float(missing[first:end].max())
        yield Episode(
            EpisodeKind.TIME_MISSING,
            cpu,
            None,
            *span,
            level,
            words,
            "cores",
            is_strong=lost_s >= 0.5,
            amount=lost_s,
        )
