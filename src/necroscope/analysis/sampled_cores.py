"""How cores spent their time, estimated from samples alone: for a capture of another tool, which has no /proc/stat beside it."""

from typing import Final

import numpy as np

from necroscope.analysis.call_tree import CallTree
from necroscope.analysis.columns import Columns, Span
from necroscope.analysis.functions import FunctionNames, functions
from necroscope.analysis.recording import Recording
from necroscope.analysis.stacks import SOFTIRQ, Stacks, period_of, stacks_of
from necroscope.model.idle import IDLE_FUNCTIONS
from necroscope.model.tables import TABLES
from necroscope.model.units import NS_PER_S

# How much is read at once: what bounds memory.
_SLICE_NS: Final = 30 * NS_PER_S
_IDLE: Final = functions(" ".join(sorted(IDLE_FUNCTIONS)))
_NAMES: Final = tuple(column.name for column in TABLES["cores"].columns)


def cores_from_samples(recording: Recording, span: Span, names: FunctionNames) -> Columns:
    """Rows of `cores`, one a core and second, in order of core and time."""
    parts: list[Columns] = []
    period_ns = 0.0
    for from_ns in range(span[0], span[1], _SLICE_NS):
        stacks = stacks_of(recording.samples(from_ns, min(from_ns + _SLICE_NS, span[1])), names, 0.0, 0.0)
        if stacks.total:
            period_ns = period_ns or period_of(stacks.columns.time, stacks.columns.cpu) * NS_PER_S
            parts.append(_seconds(stacks, from_ns, period_ns))
    if not parts:
        return Columns("cores", {name: np.zeros(0, dtype=np.int64 if name in ("time", "cpu") else np.float64) for name in _NAMES})
    whole = Columns("cores", {name: np.concatenate([part[name] for part in parts]) for name in _NAMES})
    return whole.at(np.lexsort((whole["time"], whole["cpu"])))


def _seconds(stacks: Stacks, from_ns: int, period_ns: float) -> Columns:
    """Each sample stands for its period; what no sample stands for was idle."""
    columns, tree = stacks.columns, stacks.tree
    cpus, core = np.unique(columns.cpu, return_inverse=True)
    seconds = int((columns.time.max() - from_ns) // NS_PER_S) + 1
    cell = core * seconds + (columns.time - from_ns) // NS_PER_S
    is_mode = _modes(tree, columns.stack)
    held = {
        name: np.minimum(np.bincount(cell, weights=columns.weight * flags, minlength=len(cpus) * seconds) * period_ns, NS_PER_S)
        for name, flags in is_mode.items()
    }
    rows = len(cpus) * seconds
    busy = np.minimum(sum(held.values(), np.zeros(rows)), NS_PER_S)
    values = {name: np.zeros(rows) for name in _NAMES} | held
    values["time"] = np.tile(from_ns + np.arange(1, seconds + 1, dtype=np.int64) * NS_PER_S, len(cpus))
    values["cpu"] = np.repeat(cpus, seconds)
    values["elapsed_ns"] = np.full(rows, float(NS_PER_S))
    values["idle_ns"] = NS_PER_S - busy
    return Columns("cores", values)


def _modes(
    tree: CallTree, stack: np.ndarray[tuple[int], np.dtype[np.int64]]
) -> dict[str, np.ndarray[tuple[int], np.dtype[np.bool_]]]:
    is_idle = tree.is_in(_IDLE)[stack]
    is_softirq = tree.holds(SOFTIRQ)[stack] & ~is_idle
    is_kernel = tree.is_kernel[stack] & ~is_softirq & ~is_idle
    return {"user_ns": ~(is_idle | is_softirq | is_kernel), "system_ns": is_kernel, "softirq_ns": is_softirq}
