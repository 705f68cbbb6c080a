"""Writes the tables of the demo's fleet, src/necroscope/lab/demo_lake: 500 nodes that do not exist,
made of one real recording and facts drawn by lot.

`python benchmarks/demo_lake.py`, after a change of the lake's tables, of the analysis or of the
shipped recording. `necroscope.fleet.demo_lake` moves what it writes to the present.
"""

import json
from dataclasses import dataclass
from pathlib import Path
from random import Random
from typing import Any

import pyarrow as pa
import pyarrow.parquet as pq

from demo_jobs import job_rows
from demo_truth import (
    DAY_MINUTES,
    DAYS,
    MASKED_DAYS,
    MINUTE_NS,
    OUTCOME,
    UNIT_FILE,
    Fact,
    GeneratedNode,
    draw_nodes,
)
from necroscope import __version__
from necroscope.analysis.engine import diagnose
from necroscope.fleet.demo_lake import ABOUT_FILE, MovedStore, move_rows
from necroscope.fleet.lake_tables import LAKE_TABLES
from necroscope.fleet.protocol import Columns
from necroscope.model.span import Span
from necroscope.model.units import NS_PER_S
from necroscope.outlets.push.incident_rows import episode_rows, incident_rows
from necroscope.outlets.push.minute_stacks import LEFT_OUT, stack_minutes
from necroscope.outlets.push.minute_summary import core_minutes
from necroscope.segment.recording import segment_name
from necroscope.store.query import Store

Row = dict[str, Any]
LAB = Path(__file__).parents[1] / "src" / "necroscope" / "lab"
RECORDING, DATA = LAB / "demo_recording", LAB / "demo_lake"
# Everything in the lake carries it: a generated fleet must not be taken for a real one.
CLUSTER = "generated"
NODES = 500
BUNDLES = 8
SEED = 20
# Of the many packages only some: all would be nine tenths of the lake.
PACKAGES = 40
ROLLED_OUT = 20
# Of each minute and node.
STACKS = 50
JOB_MINUTES = 8 * 60
FAILS_ANYWAY = 0.01
MESSAGE = (
    "generated: ena 0000:00:05.0 eth0: TX q 1 is paused for too long (threshold 2000000). "
    "usecs since napi 2211000. napi scheduled: 1. napi CPU: {core}. msecs since interrupt: 2215"
)
FIELDS = {"bus": "0000:00:05.0", "threshold_us": 2_000_000, "napi_us": 2_211_000}
# The core was held for this long when the card's patience ended.
PATIENCE_NS = 2_250_000_000


@dataclass(frozen=True, slots=True)
class Story:
    """The real incident: rows of the lake at the recording's own time. `quiet` and `hit` are
    minutes before and during it: rows of `core_minutes` and `stack_minutes`.
    """

    window: Span
    boot_id: str
    cpus: int
    reset: Row
    incidents: list[Row]
    episodes: list[Row]
    quiet: dict[str, list[Row]]
    hit: dict[str, list[Row]]
    facts: dict[Fact, str]

    @property
    def minute_ns(self) -> int:
        """In which it begins."""
        first_ns: int = self.incidents[0]["time"]
        return first_ns // MINUTE_NS * MINUTE_NS


def main() -> None:
    story = read_story()
    now_ns = story.minute_ns
    packages = sorted(name for kind, name in story.facts if kind == "package")[:ROLLED_OUT]
    nodes = draw_nodes(NODES, SEED, packages)
    with_evidence = sorted(
        (minute, node.name) for node in nodes if node.has_unit for minute in node.incidents
    )[:BUNDLES]
    DATA.mkdir(exist_ok=True)
    rows: dict[str, list[pa.Table]] = {}
    members = job_rows(nodes, story.incidents[0], story.minute_ns, now_ns)
    for node in nodes:
        bundles = {minute for minute, name in with_evidence if name == node.name}
        own_tables = node_tables(node, story, now_ns, bundles)
        own_tables["job_members"] = as_table("job_members", node, members.get(node.name, []))
        for table, own in own_tables.items():
            rows.setdefault(table, []).append(own)
    for table, parts in rows.items():
        file = DATA / f"{table}.parquet"
        joined = pa.concat_tables(parts)
        pq.write_table(joined, file, compression="zstd", compression_level=19, store_schema=False)
        print(f"{file.name}: {joined.num_rows:,} rows, {file.stat().st_size:,} bytes")
    (incident,) = story.incidents
    about = {
        "now_ns": now_ns,
        "held": [incident["time"], incident["end"]],
        "core": incident["core"],
        "reset": story.reset,
    }
    (DATA / ABOUT_FILE).write_text(json.dumps(about, indent=1) + "\n", "utf-8")


def read_story() -> Story:
    store = Store.open(RECORDING)
    info = store.info()
    assert info.from_ns is not None
    assert info.to_ns is not None
    window = Span(info.from_ns, info.to_ns + 1)
    reset = reset_event(store, window)
    moved = MovedStore(RECORDING, 0, info.node, [reset])
    found = diagnose(moved, span=window).wrong
    first_ns = found[0].from_ns
    return Story(
        window=window,
        boot_id=store.catalog.identity.boot_id if store.catalog.identity else "unknown",
        cpus=info.cpus or 1,
        reset=reset,
        incidents=incident_rows(found, None, window[1]),
        episodes=episode_rows(found),
        quiet=minutes(store, Span(window[0], first_ns)),
        hit=minutes(store, Span(first_ns, window[1])),
        facts=recorded_facts(store, window),
    )


def reset_event(store: Store, window: Span) -> Row:
    """The network card's complaint that was not recorded, where the core was first held."""
    saturated = next(
        row for row in store.rows("events", *window).to_pylist() if row["kind"] == "core_saturated"
    )
    return {
        "time": saturated["time"] - NS_PER_S + PATIENCE_NS,
        "kind": "nic_reset",
        "pattern": "ena.tx_q_paused",
        "cpu": saturated["cpu"],
        "device": "eth0",
        "queue": 1,
        "severity": 3,
        "by_kernel": True,
        "sequence": 4242,
        "message": MESSAGE.format(core=saturated["cpu"]),
        "fields": json.dumps({**FIELDS, "napi_scheduled": 1}),
    }


def minutes(store: Store, span: Span) -> dict[str, list[Row]]:
    return {
        "core_minutes": rows_of(core_minutes(store, *span)),
        "stack_minutes": heaviest(rows_of(stack_minutes(store, *span))),
    }


def rows_of(columns: Columns) -> list[Row]:
    return [
        dict(zip(columns, values, strict=True)) for values in zip(*columns.values(), strict=True)
    ]


def heaviest(rows: list[Row]) -> list[Row]:
    """The rest of each minute joins what was left out already."""
    kept: list[Row] = []
    for time_ns in sorted({row["time"] for row in rows}):
        ranked = sorted(
            (row for row in rows if row["time"] == time_ns),
            key=lambda row: (row["path"] == LEFT_OUT, -row["samples"]),
        )
        rest = ranked[STACKS:]
        kept += ranked[:STACKS]
        if rest:
            samples = sum(row["samples"] for row in rest)
            left_out = {"comm": "", "cgroup": None, "path": LEFT_OUT, "samples": samples}
            kept.append(rest[0] | left_out)
    return kept


def recorded_facts(store: Store, window: Span) -> dict[Fact, str]:
    rows = store.rows(
        "facts", window[0] - 3600 * NS_PER_S, window[1], columns=("kind", "name", "value")
    ).to_pylist()
    found = {(row["kind"], row["name"]): row["value"] for row in rows if row["value"] is not None}
    packages = sorted(fact for fact in found if fact[0] == "package")[:PACKAGES]
    return {
        fact: value for fact, value in found.items() if fact[0] != "package" or fact in packages
    }


def node_tables(
    node: GeneratedNode, story: Story, now_ns: int, bundles: set[int]
) -> dict[str, pa.Table]:
    """What a node has sent in the week before now; `bundles` are the minutes before now of the
    incidents that come with their evidence.
    """
    shifts = {minute: now_ns - minute * MINUTE_NS - story.minute_ns for minute in node.incidents}
    tables = {
        "facts": [as_table("facts", node, facts(node, story, now_ns))],
        "pulses": [as_table("pulses", node, pulses(story, now_ns))],
        "jobs": [as_table("jobs", node, jobs(node, now_ns))],
    }
    quiet_ns = now_ns - MINUTE_NS - min(row["time"] for row in story.quiet["core_minutes"])
    for table, rows in story.quiet.items():
        tables[table] = [move_rows(as_table(table, node, rows), quiet_ns)]
    for minute, by_ns in shifts.items():
        found = {"events": [event(story, by_ns)]}
        if node.has_unit:
            # Where another fault reset the card nothing starved, and there is no verdict.
            bundle = segment_name(story.window[0] + by_ns) if minute in bundles else None
            found["incidents"] = [row | {"bundle": bundle} for row in story.incidents]
            found["episodes"] = story.episodes
            found |= story.hit if minute == min(shifts) else {}
        for table, rows in found.items():
            tables.setdefault(table, []).append(move_rows(as_table(table, node, rows), by_ns))
    return {table: pa.concat_tables(parts) for table, parts in tables.items()}


def as_table(table: str, node: GeneratedNode, rows: list[Row]) -> pa.Table:
    place = {"cluster": CLUSTER, "node": node.name}
    return pa.Table.from_pylist([{**row, **place} for row in rows], LAKE_TABLES[table])


def facts(node: GeneratedNode, story: Story, now_ns: int) -> list[Row]:
    first_ns = now_ns - DAYS * DAY_MINUTES * MINUTE_NS
    known = {**story.facts, **node.facts, ("label", "zone"): node.zone}
    rows: list[Row] = [
        {"time": first_ns, "kind": kind, "name": name, "value": value}
        for (kind, name), value in known.items()
    ]
    if node.is_masked:
        masked_ns = now_ns - MASKED_DAYS * DAY_MINUTES * MINUTE_NS
        for (kind, name), value in ((UNIT_FILE, "masked"), (OUTCOME, None)):
            rows.append({"time": masked_ns, "kind": kind, "name": name, "value": value})
    return rows


def pulses(story: Story, now_ns: int) -> list[Row]:
    """One per day, and one of now."""
    ends_ns = [now_ns - day * DAY_MINUTES * MINUTE_NS for day in reversed(range(DAYS))]
    return [
        {
            "time": end_ns - 1,
            "recorder_version": __version__,
            "cpus": story.cpus,
            "clock_offset_ns": 0,
            "span_from": end_ns - DAY_MINUTES * MINUTE_NS,
            "span_to": end_ns - 1,
        }
        for end_ns in ends_ns
    ]


def jobs(node: GeneratedNode, now_ns: int) -> list[Row]:
    """Three per day. One that ran when the network went has failed."""
    random = Random(node.name)
    rows = []
    for end in range(random.randrange(JOB_MINUTES), DAYS * DAY_MINUTES, JOB_MINUTES):
        is_hit = any(end <= minute < end + JOB_MINUTES for minute in node.incidents)
        is_failed = random.random() < FAILS_ANYWAY and not is_hit
        detail = "generated: failed for another reason" if is_failed else None
        rows.append(
            {
                "time": now_ns - end * MINUTE_NS,
                "kind": "ray_job",
                "name": f"{node.labels['job']}-generated",
                "outcome": "failure" if is_hit or is_failed else "success",
                "detail": "generated: lost the network" if is_hit else detail,
            }
        )
    return rows


def event(story: Story, by_ns: int) -> Row:
    """At the recording's own time; its number is unique among those of its node."""
    names = ("time", "kind", "cpu", "device", "queue", "severity", "by_kernel", "message")
    number = (story.reset["time"] + by_ns) // MINUTE_NS
    found = {name: story.reset[name] for name in names}
    return {"boot_id": story.boot_id, "source_sequence": number, **found}


if __name__ == "__main__":
    main()
