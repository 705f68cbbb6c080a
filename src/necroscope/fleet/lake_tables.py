"""The tables of a lake: pyarrow schemas, how long their texts may be, and how rows that came twice
are read once.

Every row starts with cluster, node and time (ns UTC, by the node's clock) and carries its own
identity: a batch that is stored twice gives equal rows, and `ask` reads them once. Nothing is ever
updated.
"""

from typing import Final

import pyarrow as pa

from necroscope.model.units import NS_PER_S

# A table has files of its own for each day (UTC).
DAY_NS: Final = 86_400 * NS_PER_S
# A node, with its cluster before it.
NodeKey = tuple[str, str]
_TYPES: Final = {
    "text": pa.string(),
    "int64": pa.int64(),
    "int32": pa.int32(),
    "int16": pa.int16(),
    "float": pa.float32(),
    "float64": pa.float64(),
    "bool": pa.bool_(),
}


def _schema(columns: str) -> pa.Schema:
    """`cpu int16?, ...`: names with types; a question mark where it may be null."""
    pairs = [
        column.split() for column in f"cluster text, node text, time int64, {columns}".split(",")
    ]
    return pa.schema(
        [
            pa.field(name, _TYPES[kind.rstrip("?")], nullable=kind.endswith("?"))
            for name, kind in pairs
        ]
    )


LAKE_TABLES: Final[dict[str, pa.Schema]] = {
    # `source_sequence`: of the kernel log's sequence number and the event, else of the time;
    # next to boot_id.
    "events": _schema(
        "boot_id text, source_sequence int64, kind text, cpu int16?, device text?, queue int32?,"
        " pid int32?, comm text?, severity int16?, by_kernel bool?, message text?"
    ),
    "episodes": _schema("end int64, kind text, cpu int16?, mode text?, text text?"),
    # Changes only; a null value: gone. The labels of a batch become facts of kind `label`.
    "facts": _schema("kind text, name text, value text?"),
    # `time` is the start of the minute; shares are means of the minute, `worst_` those of its worst
    # tick.
    "core_minutes": _schema(
        "cpu int16, ticks int32, user float?, system float?, irq float?, softirq float?, steal"
        " float?, idle float?, worst_busy float?, worst_system float?, worst_softirq float?,"
        " worst_steal float?, worst_delay_ns int64?"
    ),
    # `path`: functions, outermost first, joined by ';'. What was left out of a minute is one row
    # with path `(left out)`.
    "stack_minutes": _schema("comm text, cgroup text?, path text, samples int32, period_ns int64"),
    # The same incident may be there by push and by sweep: readers take the newest analysed_ns of
    # (cluster, node, id). `origin_chain`: what leads to the origin, as `[["unit", "x.service"],
    # ...]`, the nearest first.
    "incidents": _schema(
        "end int64, id text, core int16?, mode text?, cause text, confidence float, title text?,"
        " summary text?, culprit_comm text?, culprit_pid int32?, culprit_cgroup text?, culprit_unit"
        " text?, culprit_container text?, origin_kind text?, origin_name text?, origin_chain text?,"
        " events text?, report text, bundle text?, analysed_by text, analysed_ns int64"
    ),
    # Numbers that grow or shrink, when they changed by some percent, and daily: `dead_cgroups`,
    # `uptime_s`, ...
    "gauges": _schema("name text, value float64"),
    "gaps": _schema("end int64, table text, cause text"),
    # One row a batch: who is alive, and what was observed. The collector fills clock_offset_ns: its
    # clock minus the node's, and how far that may be off, null where no round trip was measured.
    "pulses": _schema(
        "recorder_version text?, cpus int32?, clock_offset_ns int64?, clock_error_ns int64?,"
        " span_from int64, span_to int64"
    ),
    # One row per end of a run: kind is unit, ray_job or stakeout; outcome is success or failure.
    "jobs": _schema("kind text, name text, outcome text, detail text?"),
    # Processes that are part of a job over nodes: one row per hour of its life, and one at its end,
    # where `time` is that end. `stop_` is how it stood before: readers take the newest analysed_ns.
    "job_members": _schema(
        "job text, kind text, role text, rank int32?, world_size int32?, attempt int32?, pid int32,"
        " comm text, cgroup text?, started_ns int64, leader text?, address text?, cores int32?,"
        " gpus int32?, ended_ns int64?, status int32?, words text?, peer text?, stop_how text?,"
        " stop_from int64?, stop_to int64?, stop_core int16?, stop_by text?, stop_by_pid int32?,"
        " stop_by_cgroup text?, analysed_ns int64, clock_offset_ns int64?, clock_error_ns int64?"
    ),
}
# Who sent a row is decided by its token and its batch, not by the row.
GIVEN_BY_COLLECTOR: Final = frozenset({"cluster", "node"})
# Differs when the same batch comes a second time, so it is not part of a row's identity.
_CLOCK: Final = ("clock_offset_ns", "clock_error_ns")
RECEIPT_COLUMNS: Final = {"pulses": _CLOCK, "job_members": _CLOCK}
# JSON texts: parsed at the door and rewritten, all in ASCII.
JSON_COLUMNS: Final = {"incidents": ("events", "origin_chain", "report")}
# In characters; longer texts are cut. All other texts are names.
TEXT_LIMITS: Final = {
    "message": 4096,
    "text": 1024,
    "summary": 4096,
    "value": 4096,
    "path": 16_384,
    "detail": 1024,
    "cgroup": 1024,
    "words": 1024,
}
JSON_LIMIT: Final = 262_144
# The cause of an incident that turned out to be part of another: its newest row takes it back.
MERGED_CAUSE: Final = "merged"
