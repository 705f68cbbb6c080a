"""`fleet trial`: how often a treatment that does nothing is said to help, and how many hits it takes
to know.

`scripts/bench fleet trial [--runs 1000]`. Generated trials, looked at after every hit.
"""

import argparse

import numpy as np

from necroscope.fleet.cohorts.sequential import TrialFinding, TrialHit, TrialResult, judge_trial

RATIOS = (0.02, 0.2, 0.5, 1.0, 2.0)
MOST_FALSE = 0.05


def add_arguments(parser: argparse.ArgumentParser) -> None:
    parser.add_argument("--runs", type=int, default=1_000)
    parser.add_argument("--seed", type=int, default=1)


def run(arguments: argparse.Namespace) -> list[list[str]]:
    rng = np.random.default_rng(arguments.seed)
    rows = [["nodes on a side", "true rate", "said to help", "said not to", "hits to know, median"]]
    for nodes in (10, 20, 50, 200):
        for ratio in RATIOS:
            results = [_drawn(rng, ratio, nodes) for _ in range(arguments.runs)]
            known = [result.at_hit for result in results if result.at_hit is not None]
            shares = [
                sum(result.finding is finding for result in results) / arguments.runs
                for finding in (TrialFinding.HELPS, TrialFinding.DOES_NOT_HELP)
            ]
            must = f" (must be <= {MOST_FALSE:.0%})" if ratio == 1.0 else ""
            median = f"{np.median(known):.0f}" if known else "-"
            rows.append(
                [str(nodes), f"{ratio:.0%}", f"{shares[0]:.1%}{must}", f"{shares[1]:.1%}", median]
            )
    for row in rows:
        print(" | ".join(row))
    return rows


def _drawn(rng: np.random.Generator, ratio: float, nodes: int) -> TrialResult:
    """Hits come one after the other until every node had its first."""
    treated, untreated, hits = nodes, nodes, []
    while ratio * treated + untreated > 0:
        weight = ratio * treated
        is_treated = bool(rng.random() < weight / (weight + untreated))
        hits.append(TrialHit(is_treated, treated, untreated))
        treated, untreated = treated - is_treated, untreated - (not is_treated)
    return judge_trial(hits)
