"""Fleets whose cause is known: three zones, facts that follow the zone nearly or exactly, noise,
and one unit that matters.
"""

import numpy as np
from numpy.typing import NDArray

from necroscope.fleet.cohorts.columns import FactMatrix, matrix_of
from necroscope.fleet.cohorts.fact_rules import Predicate
from necroscope.fleet.cohorts.mechanism import Link, Origins, link_of

UNIT = ("unit_outcome", "ecs-agent.service")
_FOLLOWING = ("config_file", "unit_file", "package", "container")
# What a verdict names where it is wrong.
_ELSEWHERE = [("process", "python"), ("unit", "kubelet.service"), ("cgroup", "/system.slice")]


def generated_truth(
    rng: np.random.Generator,
    *,
    nodes: int = 200,
    disagree: int = 20,
    exact: int = 10,
    near: int = 10,
    noise: int = 300,
) -> tuple[FactMatrix, NDArray[np.bool_]]:
    """Nodes with the unit fail with probability 0.25, others with 0.01; on `disagree` nodes unit
    and zone disagree.
    """
    zone = rng.integers(0, 3, nodes)
    in_a = zone == 0
    has_unit = in_a.copy()
    odd = rng.choice(nodes, disagree, replace=False)
    has_unit[odd] = ~has_unit[odd]
    columns: dict[tuple[str, str], list[str | None]] = {
        ("label", "zone"): ["abc"[each] for each in zone],
        UNIT: ["crash-loop" if each else "never-started" for each in has_unit],
    }
    for number in range(exact):
        kind = _FOLLOWING[number % len(_FOLLOWING)]
        columns[kind, f"follows-{number}"] = ["1" if each else "2" for each in in_a]
    for number in range(near):
        follows = in_a ^ (rng.random(nodes) < 0.02)
        columns["package", f"nearly-{number}"] = ["1" if each else "2" for each in follows]
    for number in range(noise):
        shares = rng.dirichlet(np.ones(int(rng.integers(2, 5))))
        columns["sysctl", f"noise-{number}"] = [
            str(each) for each in rng.choice(len(shares), nodes, p=shares)
        ]
    affected = rng.random(nodes) < np.where(has_unit, 0.25, 0.01)
    return matrix_of([f"gpu-{number:03d}" for number in range(nodes)], columns), affected


def generated_origins(
    rng: np.random.Generator,
    matrix: FactMatrix,
    affected: NDArray[np.bool_],
    *,
    answer: float = 0.85,
    right: float = 0.9,
    shuffled: str | None = None,
) -> Origins:
    """Verdicts of affected nodes: the container that leaks and the unit that makes it, or something
    else. Shuffled they are of other nodes, or name any fact.
    """
    row = matrix.pair[matrix.facts.index(UNIT)]
    has_unit = np.array([matrix.values[pair] == "crash-loop" for pair in row])
    others = [
        link
        for kind, name in matrix.facts
        if (link := link_of(Predicate(kind, name, None))) and kind in (*_FOLLOWING, "unit_outcome")
    ] + _ELSEWHERE
    chains: dict[int, list[Link]] = {}
    for node in np.flatnonzero(affected & (rng.random(len(affected)) < answer)).tolist():
        is_right = has_unit[node] and rng.random() < right and shuffled != "names"
        wrong = others[rng.integers(len(others))]
        chains[node] = [("container", "ecs-agent"), ("unit", UNIT[1])] if is_right else [wrong]
    if shuffled == "nodes":
        places = rng.choice(len(affected), len(chains), replace=False)
        chains = dict(zip(places.tolist(), chains.values(), strict=True))
    return Origins.of(len(affected), chains)
