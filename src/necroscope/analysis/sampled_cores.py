"""How cores spent their time, estimated from samples alone: for a capture of another tool, which
has no /proc/stat with it.
"""

from typing import Any, Final

import numpy as np
from numpy.typing import NDArray

from necroscope.analysis.call_tree import CallTree
from necroscope.analysis.columns import ColumnArrays
from necroscope.analysis.functions import FunctionNames, functions
from necroscope.analysis.recording import Recording
from necroscope.analysis.stacks import SOFTIRQ, Stacks, stacks_of
from necroscope.model.idle import IDLE_FUNCTIONS
from necroscope.model.span import Span
from necroscope.model.tables import TABLES
from necroscope.model.units import NS_PER_S
from necroscope.stacks.samples import Samples, sample_period_ns
from necroscope.stacks.tree import Flags, Numbers

# How much is read at once: what bounds memory.
_SLICE_NS: Final = 30 * NS_PER_S
_IDLE: Final = functions(" ".join(sorted(IDLE_FUNCTIONS)))
_NAMES: Final = tuple(column.name for column in TABLES["cores"].columns)
_MODES: Final = ("user_ns", "system_ns", "softirq_ns")
# No recorder samples more seldom: where a core has fewer, it rests.
_LONGEST_PERIOD_S: Final = 0.1


def cores_from_samples(recording: Recording, span: Span, names: FunctionNames) -> ColumnArrays:
    """Rows of `cores`, one per core and second, in order of core and time."""
    parts: list[ColumnArrays] = []
    busiest, period_s = 0, _LONGEST_PERIOD_S
    for from_ns in range(span[0], span[1], _SLICE_NS):
        stacks = stacks_of(
            recording.samples(from_ns, min(from_ns + _SLICE_NS, span[1])), names, 0.0, 0.0
        )
        if stacks.total:
            count, found_s = _busiest_second(stacks.samples, from_ns)
            busiest, period_s = max((busiest, period_s), (count, found_s), key=lambda one: one[0])
            parts.append(_count_by_second(stacks, from_ns))
    if not parts:
        return ColumnArrays(
            "cores",
            {
                name: np.zeros(0, dtype=np.int64 if name in ("time", "cpu") else np.float64)
                for name in _NAMES
            },
        )
    whole = ColumnArrays(
        "cores", {name: np.concatenate([part[name] for part in parts]) for name in _NAMES}
    )
    return _as_time(
        whole.at(np.lexsort((whole["time"], whole["cpu"]))),
        min(period_s, _LONGEST_PERIOD_S) * NS_PER_S,
    )


def _busiest_second(samples: Samples, from_ns: int) -> tuple[int, float]:
    """Samples of the core and second that has most, and how far apart they are: a core that rests
    leaves holes.
    """
    second = (samples.time_ns - from_ns) // NS_PER_S
    _, place, counts = np.unique(
        samples.cpu * NS_PER_S + second, return_inverse=True, return_counts=True
    )
    inside = place == int(np.argmax(counts))
    return int(counts.max()), sample_period_ns(
        samples.time_ns[inside], samples.cpu[inside]
    ) / NS_PER_S


def _count_by_second(stacks: Stacks, from_ns: int) -> ColumnArrays:
    """Samples by core and second, in place of the time they stand for."""
    samples, tree = stacks.samples, stacks.tree
    cpus, core = np.unique(samples.cpu, return_inverse=True)
    seconds = int((samples.time_ns.max() - from_ns) // NS_PER_S) + 1
    cell = core * seconds + (samples.time_ns - from_ns) // NS_PER_S
    rows = len(cpus) * seconds
    values: dict[str, NDArray[Any]] = {name: np.zeros(rows) for name in _NAMES}
    for name, flags in _modes(tree, samples.stack).items():
        values[name] = np.bincount(cell, weights=samples.weight * flags, minlength=rows)
    values["time"] = np.tile(
        from_ns + np.arange(1, seconds + 1, dtype=np.int64) * NS_PER_S, len(cpus)
    )
    values["cpu"] = np.repeat(cpus, seconds)
    return ColumnArrays("cores", values)


def _as_time(counted: ColumnArrays, period_ns: float) -> ColumnArrays:
    """Each sample stands for its period; what no sample stands for was idle."""
    held = {name: np.minimum(counted[name] * period_ns, NS_PER_S) for name in _MODES}
    busy = np.minimum(sum(held.values(), np.zeros(len(counted))), NS_PER_S)
    elapsed = np.full(len(counted), float(NS_PER_S))
    return ColumnArrays(
        "cores", {**counted.values, **held, "elapsed_ns": elapsed, "idle_ns": elapsed - busy}
    )


def _modes(tree: CallTree, stack: Numbers) -> dict[str, Flags]:
    is_idle = tree.is_in(_IDLE)[stack]
    is_softirq = tree.holds(SOFTIRQ)[stack] & ~is_idle
    is_kernel = tree.is_kernel[stack] & ~is_softirq & ~is_idle
    return dict(
        zip(_MODES, (~(is_idle | is_softirq | is_kernel), is_kernel, is_softirq), strict=True)
    )
