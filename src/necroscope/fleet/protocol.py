"""What a node sends: a batch of rows by column, as gzip'd JSON, checked column by column before
anything is kept.

`POST /v1/batches` with BATCH_HEADERS; 200 means that the batch is durable. Sent again, it is stored
again and read once. What a newer node sends and we do not know is left out and named in `ignored`;
what an older node does not send is null. `PUT /v1/bundles/{id}` with BUNDLE_HEADERS; the body is a
bundle.
"""

import json
import re
import zlib
from dataclasses import dataclass, field
from itertools import chain
from typing import Any, Final

import pyarrow as pa
import pyarrow.compute as pc

from necroscope.errors import NecroscopeError
from necroscope.fleet.lake_tables import (
    DAY_NS,
    GIVEN_BY_COLLECTOR,
    JSON_COLUMNS,
    JSON_LIMIT,
    LAKE_TABLES,
    RECEIPT_COLUMNS,
)
from necroscope.fleet.limits import DEFAULT_LIMITS, Limits
from necroscope.model.units import NS_PER_S, format_moment

PROTOCOL: Final = 1
BATCHES_PATH: Final = "/v1/batches"
BUNDLES_PATH: Final = "/v1/bundles/"
# With a bundle: whose it is, and when the incident began (ns): a bundle that is sent again on
# another day keeps its place.
NODE_HEADER: Final = "X-Necroscope-Node"
TIME_HEADER: Final = "X-Necroscope-Time-Ns"
# With a batch, optional: the node's clock at this very sending. `sent_ns` in the body may have
# waited in a spool.
SENT_HEADER: Final = "X-Necroscope-Sent-Ns"
# With a batch, optional: `OFFSET ERROR`, the collector's clock minus the node's, as the node
# measured it with earlier batches, whose answers hold `arrived_ns` and `answered_ns`.
CLOCK_HEADER: Final = "X-Necroscope-Clock-Ns"

# Names become parts of paths in the lake.
NAME: Final = re.compile(r"[A-Za-z0-9](?:[A-Za-z0-9._-]{0,126}[A-Za-z0-9])?")
EARLIEST_NS: Final = 946_684_800 * NS_PER_S  # the year 2000
LATEST_NS: Final = 4_102_444_800 * NS_PER_S  # the year 2100
AHEAD_NS: Final = 2 * DAY_NS
# Facts of this kind are what people call nodes by.
LABEL: Final = "label"
_SPAN: Final = ("span_from", "span_to")
_EVENTS: Final = "incidents.events"
_DEEPEST: Final = 32

Columns = dict[str, list[Any]]


class BadBatch(NecroscopeError):  # noqa: N818 - the name says the fact
    """No batch of ours, or one that lies about itself: sending it again will not help."""


class TooLarge(NecroscopeError):  # noqa: N818 - the name says the fact
    """Beyond what one batch may hold: it can be sent in smaller ones."""


@dataclass(frozen=True, slots=True)
class Batch:
    """`batch` is its name, `<boot_id>-<number>`. `tables` hold columns by name, without cluster and
    node.
    """

    node: str
    boot_id: str
    batch: str
    sent_ns: int
    labels: dict[str, str] = field(default_factory=dict)
    tables: dict[str, Columns] = field(default_factory=dict)
    # Tables and `table.column`s of a newer node, which decode left out.
    ignored: tuple[str, ...] = ()

    @property
    def rows(self) -> int:
        return sum(len(columns["time"]) for columns in self.tables.values())

    def days_before(self, moment_ns: int) -> int:
        """Days before that moment's, of each table: each is a file in the lake."""
        first = moment_ns // DAY_NS
        return sum(
            len({time // DAY_NS for time in columns["time"] if time // DAY_NS < first})
            for columns in self.tables.values()
        )


def encode(batch: Batch) -> bytes:
    """The body of a request. Texts are plain ASCII JSON, so that nothing in them depends on an
    encoding.
    """
    content = {
        "protocol": PROTOCOL,
        "node": batch.node,
        "boot_id": batch.boot_id,
        "batch": batch.batch,
        "sent_ns": batch.sent_ns,
        "labels": batch.labels,
        "tables": batch.tables,
    }
    packer = zlib.compressobj(6, wbits=31)
    return (
        packer.compress(json.dumps(content, separators=(",", ":"), allow_nan=False).encode())
        + packer.flush()
    )


def decode(body: bytes, limits: Limits = DEFAULT_LIMITS, now_ns: int | None = None) -> Batch:
    """The batch in a body; TooLarge or BadBatch with what is wrong and what to do. With a clock,
    nothing may be far ahead.
    """
    content = _parse(_decompress(body, limits.inflated_bytes), limits.marks)
    if not isinstance(content, dict) or content.get("protocol") != PROTOCOL:
        given = content.get("protocol") if isinstance(content, dict) else None
        raise BadBatch(
            f"this collector speaks protocol {PROTOCOL}, not {given!r:.20}",
            "use a collector as new as the node",
        )
    tables, ignored = _tables(content.get("tables"))
    _check_amount(tables, limits)
    batch = Batch(
        node=checked_name(content.get("node"), "node"),
        boot_id=checked_name(content.get("boot_id"), "boot_id"),
        batch=checked_name(content.get("batch"), "batch"),
        sent_ns=checked_moment(content.get("sent_ns"), "sent_ns"),
        labels=_labels(content.get("labels", {}), limits),
        tables=tables,
        ignored=ignored,
    )
    if now_ns is not None:
        _check_clock(batch, now_ns)
    return batch


def checked_name(value: Any, what: str) -> str:
    if not isinstance(value, str) or not NAME.fullmatch(value):
        raise BadBatch(
            f"{what} is not a valid name: {value!r:.60}",
            "letters, digits, '.', '_' and '-', at most 128 of them",
        )
    return value


def checked_moment(value: Any, what: str) -> int:
    if type(value) is not int or not EARLIEST_NS <= value < LATEST_NS:
        raise BadBatch(
            f"{what} is not a valid moment: {value!r:.40}",
            "whole nanoseconds UTC between the years 2000 and 2100",
        )
    return value


def check_not_ahead(moment_ns: int, what: str, now_ns: int) -> None:
    """A clock that is a day off is reported as it is; rows of a year to come would be the newest of
    all until then.
    """
    if moment_ns > now_ns + AHEAD_NS:
        facts = (
            f"{what} is {format_moment(moment_ns)}, more than {AHEAD_NS // DAY_NS} days ahead of"
            " the collector's clock"
        )
        raise BadBatch(facts, "set the node's clock")


def _check_clock(batch: Batch, now_ns: int) -> None:
    check_not_ahead(batch.sent_ns, "sent_ns", now_ns)
    for table, columns in batch.tables.items():
        for name in ("time", *_SPAN):
            check_not_ahead(max(columns.get(name, ()), default=0), f"{table}.{name}", now_ns)


def _decompress(body: bytes, limit_bytes: int) -> bytes:
    """At most `limit_bytes`, whatever the body claims: a few KB of gzip can hold gigabytes."""
    unpacker = zlib.decompressobj(wbits=31)
    try:
        data = unpacker.decompress(body, limit_bytes + 1)
    except zlib.error as error:
        raise BadBatch(
            f"the body is not valid gzip: {error}", "send JSON with Content-Encoding: gzip"
        ) from None
    if len(data) > limit_bytes:
        raise TooLarge(
            f"the batch is larger than {limit_bytes:,} bytes when inflated",
            "send it as smaller batches",
        )
    if not unpacker.eof or unpacker.unused_data:
        raise BadBatch(
            "the body is cut off, or has something behind its end", "send it again, whole"
        )
    return data


def _parse(data: bytes, most_marks: int) -> Any:
    if sum(map(data.count, (b",", b"[", b"{"))) > most_marks:
        raise TooLarge(
            f"the batch holds more than {most_marks:,} values", "send it as smaller batches"
        )
    try:
        return json.loads(data, parse_constant=_no_constant)
    except (ValueError, RecursionError) as error:
        raise BadBatch(
            f"the body is not valid JSON: {str(error)[:80]}", "send what `protocol.encode` makes"
        ) from None


def _no_constant(name: str) -> None:
    raise ValueError(f"{name} is not a number")


def _labels(value: Any, limits: Limits) -> dict[str, str]:
    if not isinstance(value, dict) or not all(isinstance(text, str) for text in value.values()):
        raise BadBatch("labels are not names with texts", '{"zone": "a"}')
    if len(value) > limits.labels:
        raise BadBatch(
            f"{len(value):,} labels are more than {limits.labels}",
            "labels distinguish nodes: keep the few that do",
        )
    for name, text in value.items():
        if (
            not name
            or max(len(name.encode("utf-8", "replace")), len(text.encode("utf-8", "replace")))
            > limits.label_bytes
        ):
            raise BadBatch(
                f"label {name!r:.40} is longer than {limits.label_bytes} bytes, or has no name",
                "shorten it",
            )
    return value


def _tables(value: Any) -> tuple[dict[str, Columns], tuple[str, ...]]:
    if not isinstance(value, dict):
        raise BadBatch("the batch has no tables", '{"tables": {"events": {"time": [...], ...}}}')
    ignored = sorted(name for name in value if name not in LAKE_TABLES)
    tables = {}
    for name in sorted(value.keys() - set(ignored)):
        tables[name], unknown = _columns(name, value[name])
        ignored += [f"{name}.{column}" for column in unknown]
    return tables, tuple(name[:80] for name in ignored)


def _columns(table: str, value: Any) -> tuple[Columns, list[str]]:
    if not isinstance(value, dict) or not all(
        isinstance(column, list) for column in value.values()
    ):
        raise BadBatch(
            f"table {table} does not hold columns by name", '{"time": [...], "kind": [...]}'
        )
    own = {
        field.name: field for field in LAKE_TABLES[table] if field.name not in GIVEN_BY_COLLECTOR
    }
    for name, kind in own.items():
        if name in value:
            _check_column(f"{table}.{name}", kind, value[name])
        elif not kind.nullable:
            raise BadBatch(f"table {table} has no column {name}", "every row needs it")
    known = {
        name: column
        for name, column in value.items()
        if name in own and name not in RECEIPT_COLUMNS.get(table, ())
    }
    if len({len(column) for column in known.values()}) > 1:
        raise BadBatch(
            f"the columns of table {table} differ in length",
            "one value per row, null where there is none",
        )
    for name in JSON_COLUMNS.get(table, ()):
        known[name] = [
            _json_text(text, f"{table}.{name}")
            for text in known.get(name, [None] * len(known["time"]))
        ]
    return known, sorted(value.keys() - own.keys())


_TYPES: Final[dict[str, set[type]]] = {
    "int64": {int},
    "int32": {int},
    "int16": {int},
    "float": {int, float},
    "double": {int, float},
    "string": {str},
    "bool": {bool},
}


def _check_column(name: str, kind: pa.Field, values: list[Any]) -> None:
    """Types first: pyarrow would take 1.5 for 1. Then whether every number fits."""
    allowed = _TYPES[str(kind.type)] | ({type(None)} if kind.nullable else set())
    if wrong := set(map(type, values)) - allowed:
        given = ", ".join(sorted("null" if one is type(None) else one.__name__ for one in wrong))
        raise BadBatch(
            f"{name} holds {given}",
            f"its values are {kind.type}{'' if kind.nullable else ', never null'}",
        )
    if kind.name == "time":
        for value in (min(values, default=EARLIEST_NS), max(values, default=EARLIEST_NS)):
            checked_moment(value, name)
    elif (
        kind.name in _SPAN and not 0 <= min(values, default=0) <= max(values, default=0) < LATEST_NS
    ):
        raise BadBatch(f"{name} holds no moment", "whole nanoseconds UTC before the year 2100")
    elif kind.type != pa.string():
        _check_numbers(name, kind, values)


def _check_numbers(name: str, kind: pa.Field, values: list[Any]) -> None:
    try:
        numbers = pa.array(values, kind.type)
    except (OverflowError, pa.ArrowInvalid):
        raise BadBatch(
            f"{name} holds a number that is too large", f"its values are {kind.type}"
        ) from None
    if pa.types.is_floating(kind.type) and not pc.all(pc.is_finite(numbers), min_count=0).as_py():
        raise BadBatch(f"{name} holds a number without end", "null where there is not a number")


def _json_text(text: str | None, name: str) -> str | None:
    if text is None:
        return None
    if len(text) > JSON_LIMIT:
        raise TooLarge(
            f"{name} is longer than {JSON_LIMIT:,} characters",
            "leave out what is long, for example paths",
        )
    try:
        value = json.loads(text, parse_constant=_no_constant)
        # 1e999 is read as infinity, and half a surrogate pair as a character: an answer with
        # them fails.
        written = json.dumps(value, ensure_ascii=False, allow_nan=False)
        written.encode()
    except (ValueError, RecursionError):
        raise BadBatch(f"{name} is not valid JSON", "it is the text of a JSON value") from None
    if _is_deep(value):
        raise BadBatch(
            f"{name} is nested more than {_DEEPEST} times", "it is a report, or a list of events"
        )
    if name == _EVENTS and not (
        isinstance(value, list) and all(isinstance(each, str) for each in value)
    ):
        raise BadBatch(f"{name} is not a list of texts", '["nic_reset"]')
    return written if written.isascii() else json.dumps(value)


def _is_deep(value: Any) -> bool:
    level = [value]
    for _ in range(_DEEPEST):
        inner = [
            each.values() if isinstance(each, dict) else each
            for each in level
            if isinstance(each, dict | list)
        ]
        level = list(chain.from_iterable(inner))
    return bool(level)


def _check_amount(tables: dict[str, Columns], limits: Limits) -> None:
    rows = sum(len(columns["time"]) for columns in tables.values())
    if rows > limits.rows:
        raise TooLarge(
            f"{rows:,} rows are more than {limits.rows:,}", "send them as smaller batches"
        )
    incidents = len(tables.get("incidents", {}).get("time", ()))
    if incidents > limits.incidents:
        raise TooLarge(
            f"{incidents:,} incidents are more than {limits.incidents:,}",
            "send them as smaller batches",
        )
    facts = tables.get("facts", {"kind": [], "name": []})
    labels = {
        name for kind, name in zip(facts["kind"], facts["name"], strict=True) if kind == LABEL
    }
    if len(labels) > limits.label_facts:
        raise TooLarge(
            f"{len(labels):,} labels among the facts are more than {limits.label_facts}",
            "keep those in which nodes differ",
        )
    days = {time // DAY_NS for columns in tables.values() for time in columns["time"]}
    if len(days) > limits.days:
        raise TooLarge(
            f"rows of {len(days)} days are more than {limits.days}",
            "send them as batches of fewer days",
        )
