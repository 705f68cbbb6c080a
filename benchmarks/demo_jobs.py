"""Jobs over nodes for the demo's fleet: some die because one of their nodes starves, a few by
themselves, most end well. All of it is drawn by lot around the real incident.
"""

from random import Random
from typing import Any

from demo_truth import DAY_MINUTES, DAYS, MINUTE_NS, GeneratedNode
from necroscope.model.units import NS_PER_S

Row = dict[str, Any]
RANKS = 4
GPUS = 8
HIT, WELL, RAISED = 24, 150, 5
# From the end of the incident to the others' time-out.
TIMEOUT_NS = 8 * NS_PER_S
PEER = "generated: RuntimeError: [gloo/pair.cc:553] Connection closed by peer [10.0.3.{rank}]:4711"
OWN = "generated: ValueError: loss is not finite"


def job_rows(
    nodes: list[GeneratedNode], incident: Row, minute_ns: int, now_ns: int
) -> dict[str, list[Row]]:
    """By node. `incident` is the real one, which begins in the minute `minute_ns`."""
    random = Random(18)
    rows: dict[str, list[Row]] = {}
    hits = sorted(
        (minute, node.name) for node in nodes if node.has_unit for minute in node.incidents
    )[:HIT]
    for number, (minute, name) in enumerate(hits, 4700):
        by_ns = now_ns - minute * MINUTE_NS - minute_ns
        others = [node.name for node in random.sample(nodes, RANKS) if node.name != name]
        places = [*others[: RANKS - 1], name]
        random.shuffle(places)
        span = incident["time"] + by_ns, incident["end"] + by_ns
        for rank, place in enumerate(places):
            rows.setdefault(place, []).append(
                _hit(number, rank, span, incident, is_held=place == name)
            )
    for number in range(WELL + RAISED):
        ended_ns = now_ns - random.randrange(1, DAYS * DAY_MINUTES) * MINUTE_NS
        length_ns = random.randrange(40, 600) * MINUTE_NS
        raises = number < RAISED
        for rank, node in enumerate(random.sample(nodes, RANKS)):
            row = _member(4000 + number, rank, ended_ns - length_ns, ended_ns)
            found = {"status": 256, "words": OWN if rank == 2 else PEER.format(rank=2)}
            rows.setdefault(node.name, []).append(row | (found if raises else {"status": 0}))
    return rows


def _hit(number: int, rank: int, held: tuple[int, int], incident: Row, *, is_held: bool) -> Row:
    ended_ns = held[1] + TIMEOUT_NS + (NS_PER_S if is_held else 0)
    row = _member(number, rank, held[0] - 210 * MINUTE_NS, ended_ns)
    stop = (
        {"stop_how": "starved", "stop_from": held[0] + NS_PER_S, "stop_to": held[1],
         "stop_core": incident["core"]}
        if is_held
        else {"stop_how": "waiting", "stop_from": held[0] + 3 * NS_PER_S, "stop_to": ended_ns}
    )  # fmt: skip
    return row | {"status": 256, "words": PEER.format(rank=rank)} | stop


def _member(number: int, rank: int, started_ns: int, ended_ns: int) -> Row:
    return {
        "time": ended_ns,
        "job": f"slurm/{number}",
        "kind": "torch",
        "role": "rank",
        "rank": rank,
        "world_size": RANKS,
        "pid": 2000 + rank,
        "comm": "python",
        "started_ns": started_ns,
        "gpus": GPUS,
        "ended_ns": ended_ns,
        "analysed_ns": ended_ns,
        "clock_offset_ns": 0,
        "clock_error_ns": 4_000_000,
    }
