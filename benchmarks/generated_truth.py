"""Fleets whose cause is known: three zones, facts that follow the zone nearly or exactly, noise,
and one unit that matters.
"""

import numpy as np
from numpy.typing import NDArray

from necroscope.fleet.cohorts.columns import FactMatrix, matrix_of

UNIT = ("unit_outcome", "ecs-agent.service")


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
        columns["config_file", f"/etc/follows-{number}"] = ["1" if each else "2" for each in in_a]
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
