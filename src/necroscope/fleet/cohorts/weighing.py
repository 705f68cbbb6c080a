"""How the evidence is shared out among differences that compete: which of them would make the
failures least surprising.

Each difference gets the chance of the failures as they are if nodes that have it fail at one rate
and the others at another, both unknown (two beta-binomials). Every name counts once. A place counts
for more: it also carries what nobody recorded.
"""

from collections.abc import Sequence
from typing import Final

import numpy as np
from numpy.typing import NDArray

from necroscope.fleet.cohorts.candidates import Candidate
from necroscope.fleet.cohorts.fisher import log_factorials
from necroscope.fleet.cohorts.stratified import Table

# Things of a place that nobody recorded (its power, its switches, its mirror), each as likely as a
# fact that was.
_UNRECORDED: Final = 10
# A difference is named only if it carries this much of the evidence.
SURE: Final = 0.95


def shares(candidates: Sequence[Candidate]) -> NDArray[np.float64]:
    """What each carries of all of the evidence; together 1."""
    if not candidates:
        return np.zeros(0)
    names = np.array(
        [len(each.predicates) + _UNRECORDED * bool(each.places) for each in candidates]
    )
    weights = np.array([_log_likelihood(each.table) for each in candidates])
    found = np.exp(weights - weights.max()) * names
    return np.asarray(found / found.sum())


def cannot_be_excluded(share: NDArray[np.float64]) -> set[int]:
    """The fewest that together carry enough of the evidence."""
    order = np.argsort(-share, kind="stable")
    needed = int(np.searchsorted(np.cumsum(share[order]), SURE)) + 1
    return set(order[:needed].tolist())


def _log_likelihood(table: Table) -> float:
    logs = log_factorials(table.nodes + 1)
    return sum(
        float(logs[failed] + logs[well] - logs[failed + well + 1])
        for failed, well in (
            (table.affected_with, table.well_with),
            (table.affected_without, table.well_without),
        )
    )
