"""Deaths of jobs drawn into a lake: three ranks on three nodes, one of which is starved while the
others wait for it.
"""

from typing import Any

from tests.fleet_lakes import NS, DrawnLake, moment

PEER = "RuntimeError: [gloo/pair.cc:553] Connection closed by peer [10.0.0.2]:4711."
NODES = ("gpu-0", "gpu-1", "gpu-2")


def draw_death(
    drawn: DrawnLake,
    job: str,
    day: float,
    offsets_s: tuple[float, ...] = (0, 0, 0),
    cause: str = "rt-hog",
    nodes: tuple[str, ...] = NODES,
    **clock: Any,
) -> None:
    """Rank 1 wants core 3 from 20 s before the end and does not get it; `offsets_s` is the
    collector's clock minus each node's. Everything is written by the nodes' own clocks.
    """
    for rank, (node, offset_s) in enumerate(zip(nodes, offsets_s, strict=True)):
        held = (
            {"stop_how": "starved", "stop_from": -20, "stop_to": 0, "stop_core": 3,
             "stop_by": "hog[666]", "stop_by_pid": 666}
            if rank == 1
            else {"stop_how": "waiting", "stop_from": -19, "stop_to": 0}
        )  # fmt: skip
        own = day - offset_s / 86400
        drawn.member(
            node, job, rank, own, status=256, words=PEER, world_size=len(nodes), gpus=8,
            clock_offset_ns=round(offset_s * NS), **held, **clock,
        )  # fmt: skip
    begin = day - (offsets_s[1] + 21) / 86400
    drawn.incident(
        nodes[1], f"{job}-{day}", cause, begin, end=moment(begin) + 20 * NS, culprit_comm="hog",
        culprit_pid=666,
    )  # fmt: skip
