"""Lakes of fleets that do not exist, as a collector writes them: facts of many nodes, a month of
events, an hour of stacks.
"""

from collections.abc import Sequence
from datetime import UTC, datetime
from pathlib import Path
from typing import Any

import numpy as np
import pyarrow as pa
import pyarrow.parquet as pq
from numpy.typing import NDArray

from necroscope.fleet.lake_tables import LAKE_TABLES
from necroscope.model.units import NS_PER_S

DAY_NS = 86400 * NS_PER_S
START_NS = int(datetime(2026, 4, 1, tzinfo=UTC).timestamp()) * NS_PER_S
CLUSTER = "measured"
FILES = 10
OWN_FACTS = 5


def write_file(lake: Path, table: str, day: int, columns: dict[str, Any], number: int = 0) -> None:
    """Missing columns are null; sorted by node and time, as the collector's files are."""
    schema = LAKE_TABLES[table]
    rows = len(columns["node"])
    columns = {"cluster": texts(np.zeros(rows, np.int32), [CLUSTER]), **columns}
    arrays = [
        columns[field.name] if field.name in columns else pa.nulls(rows, field.type)
        for field in schema
    ]
    ordered = (
        pa.table(arrays, names=schema.names)
        .cast(schema)
        .sort_by([("node", "ascending"), ("time", "ascending")])
    )
    place = (
        lake
        / f"tables/{table}/date={datetime.fromtimestamp((START_NS + day * DAY_NS) // NS_PER_S, UTC):%Y-%m-%d}/cluster={CLUSTER}"
    )
    place.mkdir(parents=True, exist_ok=True)
    file = place / f"{number:020d}-generated-{rows}.parquet"
    pq.write_table(ordered, file, compression="zstd", write_page_checksum=True, store_schema=False)


def texts(codes: NDArray[Any], values: Sequence[str]) -> pa.Array:
    return pa.DictionaryArray.from_arrays(
        pa.array(codes.astype(np.int32)), pa.array(values, pa.string())
    )


def names(count: int) -> list[str]:
    return [f"gpu-{number:05d}" for number in range(count)]


def fact_lake(lake: Path, nodes: int, facts: int, seed: int = 0) -> None:
    """All facts vary: half nearly follow the zone, half are noise, a few are of one node. A unit
    near the zone matters.
    """
    rng = np.random.default_rng(seed)
    zone = rng.integers(0, 3, nodes)
    has_unit = (zone == 0) ^ (rng.random(nodes) < 0.1)
    value = np.empty((facts, nodes), np.int32)
    for fact in range(facts):
        follows = (zone == 0) ^ (rng.random(nodes) < 0.02)
        value[fact] = (
            follows if fact % 2 else rng.integers(0, rng.integers(2, 6), nodes)
        ) + fact % 30
    value[0], value[1] = zone, has_unit
    kinds = ["label", "unit_outcome", "package", "sysctl", "unit_file", "nic"]
    kind = np.array([0, 1, *(2 + fact % 4 for fact in range(2, facts))], np.int32)
    fact_names = ["zone", "leaky.service", *(f"fact-{fact}" for fact in range(2, facts))]
    for number, some in enumerate(np.array_split(np.arange(nodes), FILES)):
        _write_facts(lake, number, some, nodes, value, kind, kinds, fact_names, rng)
    affected = np.flatnonzero(rng.random(nodes) < np.where(has_unit, 0.25, 0.01))
    times = START_NS + 9 * DAY_NS + rng.integers(0, DAY_NS, len(affected))
    write_file(
        lake, "events", 9, _events(affected, times, np.zeros(len(affected), np.int32), nodes)
    )
    for day in range(1, 10):
        write_file(lake, "pulses", day, _pulses(np.arange(nodes), day, nodes))
        write_file(lake, "gauges", day, _gauges(nodes, day, has_unit, rng))


def _gauges(
    nodes: int, day: int, has_unit: NDArray[np.bool_], rng: np.random.Generator
) -> dict[str, Any]:
    """As nodes send them: those that grow three times per day, the others daily."""
    gauges = ("uptime_s", "dead_cgroups", "live_cgroups", "dentries", "inodes", "slab_bytes")
    looks = [(gauge, look) for gauge in range(len(gauges)) for look in range(3 if gauge < 2 else 1)]
    node = np.tile(np.arange(nodes), len(looks))
    gauge = np.repeat([gauge for gauge, _ in looks], nodes)
    time_days = day + np.repeat([look for _, look in looks], nodes) / 3
    leak = np.where(has_unit, 9_000.0, 5.0) * (1 + np.arange(nodes) % 7 / 10)
    value = np.where(gauge == 0, time_days * 86_400, time_days * leak[node])
    value = np.where(gauge > 1, rng.uniform(1_000, 2_000, len(node)), value)
    return {
        "node": texts(node, names(nodes)),
        "time": pa.array(START_NS + (time_days * DAY_NS).astype(np.int64)),
        "name": texts(gauge, gauges),
        "value": pa.array(value),
    }


def _write_facts(
    lake: Path,
    number: int,
    some: NDArray[Any],
    nodes: int,
    value: NDArray[Any],
    kind: NDArray[Any],
    kinds: list[str],
    fact_names: list[str],
    rng: np.random.Generator,
) -> None:
    facts = len(fact_names)
    node, fact = np.repeat(some, facts), np.tile(np.arange(facts), len(some))
    own = np.repeat(some, OWN_FACTS)
    started = rng.integers(0, 3600 * NS_PER_S, nodes)
    own_name = np.tile(np.arange(OWN_FACTS), len(some))
    values = [f"value-{each}" for each in range(40)] + [
        f"own-{each}-{name}" for each, name in zip(own, own_name, strict=True)
    ]
    columns = {
        "node": texts(np.concatenate([node, own]), names(nodes)),
        # A node tells all of its facts when its recorder starts.
        "time": pa.array(START_NS + started[np.concatenate([node, own])]),
        "kind": texts(np.concatenate([kind[fact], np.zeros(len(own), np.int32)]), kinds),
        "name": texts(
            np.concatenate([fact, facts + own_name]),
            [*fact_names, *(f"own-{each}" for each in range(OWN_FACTS))],
        ),
        "value": texts(np.concatenate([value[fact, node], 40 + np.arange(len(own))]), values),
    }
    write_file(lake, "facts", 0, columns, number)


def event_lake(
    lake: Path, nodes: int, days: int, events_a_day: int, pulses_a_day: int, seed: int = 0
) -> None:
    """Events of ten kinds, pulses, incidents, jobs, a few labels and facts, one of which changes on
    half of the nodes.
    """
    rng = np.random.default_rng(seed)
    everybody = np.arange(nodes)
    _write_fleet_facts(lake, nodes, days, rng)
    for day in range(days):
        node = rng.integers(0, nodes, events_a_day * nodes)
        times = START_NS + day * DAY_NS + rng.integers(0, DAY_NS, len(node))
        write_file(lake, "events", day, _events(node, times, rng.integers(0, 10, len(node)), nodes))
        write_file(lake, "pulses", day, _pulses(np.repeat(everybody, pulses_a_day), day, nodes))
        write_file(lake, "jobs", day, _jobs(rng, day, nodes))
        write_file(lake, "incidents", day, _incidents(rng, day, nodes))


def _write_fleet_facts(lake: Path, nodes: int, days: int, rng: np.random.Generator) -> None:
    everybody = np.arange(nodes)
    zone = rng.integers(0, 3, nodes)
    for kind, name, codes, values in (
        ("label", "zone", zone, ["a", "b", "c"]),
        ("label", "image", rng.integers(0, 5, nodes), [f"v{each}" for each in range(5)]),
        ("unit_file", "leaky.service", np.zeros(nodes), ["enabled"]),
        *(
            ("sysctl", f"s{each}", rng.integers(0, 3, nodes), ["0", "1", "2"])
            for each in range(200)
        ),
    ):
        constant = {
            "kind": pa.array([kind] * nodes),
            "name": pa.array([name] * nodes),
            "value": texts(np.asarray(codes), values),
        }
        columns = {
            "node": texts(everybody, names(nodes)),
            "time": pa.array(np.full(nodes, START_NS)),
            **constant,
        }
        write_file(lake, "facts", 0, columns, abs(hash((kind, name))) % 10**12)
    changed = everybody[::2]
    columns = {
        "node": texts(changed, names(nodes)),
        "time": pa.array(np.full(len(changed), START_NS + days // 2 * DAY_NS)),
    }
    about = {
        "kind": pa.array(["unit_file"] * len(changed)),
        "name": pa.array(["leaky.service"] * len(changed)),
    }
    write_file(
        lake,
        "facts",
        days // 2,
        {**columns, **about, "value": pa.array(["disabled"] * len(changed))},
    )


def stack_hour(lake: Path, nodes: int, stacks: int, day: int, seed: int = 0) -> None:
    """The last hour of a day: of each node and minute this many stacks, out of ten times as many that
    there are.
    """
    rng = np.random.default_rng(seed)
    paths = [
        ";".join(f"function_{path}_{depth}" for depth in range(20)) for path in range(10 * stacks)
    ]
    start_ns = START_NS + (day + 1) * DAY_NS - 3600 * NS_PER_S
    for number, minutes in enumerate(np.array_split(np.arange(60), FILES)):
        node, minute = (
            np.repeat(np.arange(nodes), len(minutes) * stacks),
            np.tile(np.repeat(minutes, stacks), nodes),
        )
        path = rng.integers(0, len(paths), len(node))
        columns = {
            "node": texts(node, names(nodes)),
            "time": pa.array(start_ns + minute * 60 * NS_PER_S),
            "comm": texts(path % 50, [f"process-{each}" for each in range(50)]),
            "path": texts(path, paths),
            "samples": pa.array(rng.integers(1, 100, len(node)).astype(np.int32)),
            "period_ns": pa.array(np.full(len(node), 10_000_000)),
        }
        write_file(lake, "stack_minutes", day, columns, number)


def _events(
    node: NDArray[Any], times: NDArray[Any], kind: NDArray[Any], nodes: int
) -> dict[str, Any]:
    kinds = ["nic_reset", *(f"event_{each}" for each in range(1, 10))]
    return {
        "node": texts(node, names(nodes)),
        "time": pa.array(times),
        "boot_id": texts(node, [f"boot-{each}" for each in range(nodes)]),
        "source_sequence": pa.array(np.arange(len(node))),
        "kind": texts(kind, kinds),
        "message": texts(
            kind,
            [
                f"{each}: something went wrong, and this is what the kernel said of it"
                for each in kinds
            ],
        ),
    }


def _pulses(node: NDArray[Any], day: int, nodes: int) -> dict[str, Any]:
    count = len(node) // nodes
    start = START_NS + day * DAY_NS + np.tile(np.arange(count), nodes) * (DAY_NS // count)
    end = start + DAY_NS // count - 1
    codes = texts(np.zeros(len(node), np.int32), ["1.0"])
    sizes = pa.array(np.full(len(node), 96, np.int32))
    spans = {"span_from": pa.array(start), "span_to": pa.array(end)}
    offsets = pa.array(np.arange(len(node)) % 1000 * 1_000_000)
    found = {"recorder_version": codes, "cpus": sizes, "clock_offset_ns": offsets, **spans}
    return {"node": texts(node, names(nodes)), "time": pa.array(end), **found}


def _jobs(rng: np.random.Generator, day: int, nodes: int) -> dict[str, Any]:
    node = rng.integers(0, nodes, 5 * nodes)
    return {
        "node": texts(node, names(nodes)),
        "time": pa.array(START_NS + day * DAY_NS + rng.integers(0, DAY_NS, len(node))),
        "kind": texts(np.zeros(len(node), np.int32), ["unit"]),
        "name": texts(
            rng.integers(0, 20, len(node)), [f"job-{each}.service" for each in range(20)]
        ),
        "outcome": texts(rng.integers(0, 2, len(node)), ["success", "failure"]),
    }


def _incidents(rng: np.random.Generator, day: int, nodes: int) -> dict[str, Any]:
    node = rng.integers(0, nodes, nodes // 10)
    times = START_NS + day * DAY_NS + rng.integers(0, DAY_NS, len(node))
    constant = {
        "confidence": pa.array(np.full(len(node), 0.9, np.float32)),
        "analysed_ns": pa.array(times),
    }
    same = texts(np.zeros(len(node), np.int32), ["1.0"])
    return {
        "node": texts(node, names(nodes)),
        "time": pa.array(times),
        "end": pa.array(times + NS_PER_S),
        "id": pa.array([f"{day}-{each}" for each in range(len(node))]),
        "cause": texts(rng.integers(0, 3, len(node)), ["zombie-memcg-walk", "vm-steal", "unknown"]),
        "report": pa.array(['{"id": "generated"}'] * len(node)),
        "analysed_by": same,
        **constant,
    }
