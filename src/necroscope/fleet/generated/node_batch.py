"""What a generated node sends: one batch of the last week, as a real one would have sent it minute
by minute.
"""

from random import Random
from typing import Any, Final

from necroscope import __version__
from necroscope.fleet.generated.story import Row, Story, moved_columns, moved_row
from necroscope.fleet.generated.truth import (
    DAY_MINUTES,
    DAYS,
    MASKED_DAYS,
    MINUTE_NS,
    OUTCOME,
    UNIT_FILE,
    GeneratedNode,
)
from necroscope.fleet.protocol import Batch, Columns

_JOB: Final = "ray_job"
_JOB_MINUTES: Final = 8 * 60
_FAILS_ANYWAY: Final = 0.01


def node_batch(node: GeneratedNode, story: Story, now_ns: int, bundles: dict[int, str]) -> Batch:
    """`bundles` are the names of those that there are, by the incident's minute before now."""
    minute_ns = now_ns // MINUTE_NS * MINUTE_NS
    shifts = {minute: minute_ns - minute * MINUTE_NS - story.minute_ns for minute in node.incidents}
    quiet_ns = minute_ns - MINUTE_NS - min(story.quiet["core_minutes"]["time"])
    tables: dict[str, Columns] = {
        "facts": _columns(_facts(node, story, minute_ns)),
        "pulses": _columns(_pulses(story, minute_ns)),
        "jobs": _columns(_jobs(node, minute_ns)),
        "events": _columns([_event(story, by_ns) for by_ns in shifts.values()]),
        "incidents": _columns(
            [
                _incident(row, by_ns, bundles.get(at))
                for at, by_ns in shifts.items()
                for row in _told(node, story)
            ]
        ),
        "episodes": _columns(
            [moved_row(row, by_ns) for by_ns in shifts.values() for row in _seen(node, story)]
        ),
    }
    for table, columns in story.quiet.items():
        tables[table] = moved_columns(columns, quiet_ns)
    if shifts and node.has_unit:
        for table, columns in story.hit.items():
            moved = moved_columns(columns, list(shifts.values())[-1])
            tables[table] = {name: tables[table][name] + values for name, values in moved.items()}
    filled = {name: columns for name, columns in tables.items() if columns}
    return Batch(node.name, _boot_id(node), f"{_boot_id(node)}-0", now_ns, node.labels, filled)


def _boot_id(node: GeneratedNode) -> str:
    return f"boot-of-{node.name}"


def _told(node: GeneratedNode, story: Story) -> list[Row]:
    """Where another fault reset the card nothing starved, and there is no verdict."""
    return story.incidents if node.has_unit else []


def _seen(node: GeneratedNode, story: Story) -> list[Row]:
    return story.episodes if node.has_unit else []


def _facts(node: GeneratedNode, story: Story, minute_ns: int) -> list[Row]:
    first_ns = minute_ns - DAYS * DAY_MINUTES * MINUTE_NS
    facts = {
        **story.facts,
        **{fact: value for fact, value in node.facts.items() if fact[0] != "label"},
    }
    rows = [
        {"time": first_ns, "kind": kind, "name": name, "value": value}
        for (kind, name), value in facts.items()
    ]
    if node.is_masked:
        masked_ns = minute_ns - MASKED_DAYS * DAY_MINUTES * MINUTE_NS
        for (kind, name), value in ((UNIT_FILE, "masked"), (OUTCOME, None)):
            rows.append({"time": masked_ns, "kind": kind, "name": name, "value": value})
    return rows


def _pulses(story: Story, minute_ns: int) -> list[Row]:
    """One a day, and one of now."""
    ends_ns = [minute_ns - day * DAY_MINUTES * MINUTE_NS for day in reversed(range(DAYS))]
    told: dict[str, Any] = {"recorder_version": __version__, "cpus": story.cpus}
    return [
        {
            "time": end_ns - 1,
            **told,
            "span_from": end_ns - DAY_MINUTES * MINUTE_NS,
            "span_to": end_ns - 1,
        }
        for end_ns in ends_ns
    ]


def _jobs(node: GeneratedNode, minute_ns: int) -> list[Row]:
    """Three a day. One that ran when the network went has failed."""
    random = Random(node.name)
    rows = []
    for end in range(random.randrange(_JOB_MINUTES), DAYS * DAY_MINUTES, _JOB_MINUTES):
        hit = any(end <= minute < end + _JOB_MINUTES for minute in node.incidents)
        is_failed = hit or random.random() < _FAILS_ANYWAY
        detail = (
            "generated: lost the network"
            if hit
            else "generated: failed for another reason"
            if is_failed
            else None
        )
        name, outcome = f"{node.labels['job']}-generated", "failure" if is_failed else "success"
        rows.append(
            {
                "time": minute_ns - end * MINUTE_NS,
                "kind": _JOB,
                "name": name,
                "outcome": outcome,
                "detail": detail,
            }
        )
    return rows


def _event(story: Story, by_ns: int) -> Row:
    reset = story.reset
    told = {
        name: reset[name]
        for name in ("kind", "cpu", "device", "queue", "severity", "by_kernel", "message")
    }
    return {
        "time": reset["time"] + by_ns,
        "source_sequence": (reset["time"] + by_ns) // MINUTE_NS,
        "boot_id": story.boot_id,
        **told,
    }


def _incident(row: Row, by_ns: int, bundle: str | None) -> Row:
    return moved_row(row, by_ns) | {"bundle": bundle}


def _columns(rows: list[Row]) -> Columns:
    return {name: [row[name] for row in rows] for name in rows[0]} if rows else {}
