"""The real incident behind all generated ones: what the analysis says of the recording, and its
minutes, to be moved in time.
"""

import json
import re
import tempfile
from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path
from typing import Any, Final

from necroscope.fleet.bundle import make_bundle
from necroscope.fleet.generated.moved import MovedStore
from necroscope.fleet.generated.truth import MINUTE_NS, Fact
from necroscope.fleet.protocol import Columns
from necroscope.model.units import NS_PER_S, format_moment, parse_moment_ns
from necroscope.outlets.push.minute_stacks import LEFT_OUT, stack_minutes
from necroscope.outlets.push.minute_summary import core_minutes
from necroscope.outlets.push.window_analysis import analyse
from necroscope.segment.recording import segment_name
from necroscope.store.query import Store

Row = dict[str, Any]
Span = tuple[int, int]

_MOMENT: Final = re.compile(r"\d{4}-\d\d-\d\dT\d\d:\d\d:\d\d\.\d{3}Z")
_MOMENT_COLUMNS: Final = frozenset({"time", "end", "analysed_ns"})
# Of each minute and node; 500 nodes shall be there in seconds.
_PACKAGES: Final = 40
_STACKS: Final = 50
_SAID: Final = (
    "generated: ena 0000:00:05.0 eth0: TX q 1 is paused for too long (threshold 2000000). "
    "usecs since napi 2211000. napi scheduled: 1. napi CPU: {core}. msecs since interrupt: 2215"
)
_FIELDS: Final = {
    "bus": "0000:00:05.0",
    "threshold_us": 2_000_000,
    "napi_us": 2_211_000,
    "napi_scheduled": 1,
}
# The core was held for this long when the card's patience ended.
_PATIENCE_NS: Final = 2_250_000_000


@dataclass(frozen=True, slots=True)
class Story:
    """`incidents` and `episodes` are rows of the lake at the recording's own time, `reset` is the
    event that was added to it.

    `quiet` and `hit` are minutes before and during the incident: rows of `core_minutes` and
    `stack_minutes`.
    """

    recording: Path
    window: Span
    boot_id: str
    cpus: int
    reset: Row
    incidents: list[Row]
    episodes: list[Row]
    quiet: dict[str, Columns]
    hit: dict[str, Columns]
    facts: dict[Fact, str]

    @property
    def minute_ns(self) -> int:
        """In which it begins."""
        first_ns: int = self.incidents[0]["time"]
        return first_ns // MINUTE_NS * MINUTE_NS

    def moved_store(self, by_ns: int, node: str) -> MovedStore:
        return MovedStore(self.recording, by_ns, node, [self.reset])

    def bundle(self, by_ns: int, node: str, work: Path) -> tuple[str, bytes]:
        """Name and content, as a node makes them."""
        held = [(row["time"] + by_ns, row["end"] + by_ns) for row in self.incidents]
        cores = frozenset(row["core"] for row in self.incidents if row["core"] is not None)
        window = self.window[0] + by_ns, self.window[1] + by_ns
        content = make_bundle(self.moved_store(by_ns, node), window, held, cores, work)
        assert content is not None, "the shipped recording fits into a bundle"
        return segment_name(window[0]), content


def read_story(recording: Path) -> Story:
    """Takes a second: the recording is really analysed."""
    store = Store.open(recording)
    info = store.info()
    assert info.from_ns is not None, "the recording holds something"
    assert info.to_ns is not None, "the recording holds something"
    window = info.from_ns, info.to_ns + 1
    reset = _reset(store, window)
    with tempfile.TemporaryDirectory(prefix="necroscope-generated-") as work:
        moved = MovedStore(recording, 0, info.node, [reset])
        found = analyse(moved, window, 0, is_final=True, now_ns=window[1], work=Path(work))
    first_ns = found.incidents[0]["time"]
    return Story(
        recording=recording,
        window=window,
        boot_id=store.catalog.identity.boot_id if store.catalog.identity else "unknown",
        cpus=info.cpus or 1,
        reset=reset,
        incidents=found.incidents,
        episodes=found.episodes,
        quiet=_minutes(store, (window[0], first_ns)),
        hit=_minutes(store, (first_ns, window[1])),
        facts=_facts(store, window),
    )


def moved_row(row: Row, by_ns: int) -> Row:
    """As the analysis would have told it, had it been so much later."""
    found = {
        name: value + by_ns if name in _MOMENT_COLUMNS else value for name, value in row.items()
    }
    move = _mover(by_ns)
    for name in ("id", "report"):
        if name in found:
            found[name] = _MOMENT.sub(move, found[name])
    return found


def _mover(by_ns: int) -> Callable[[re.Match[str]], str]:
    return lambda match: format_moment(parse_moment_ns(match[0], 0) + by_ns)


def moved_columns(columns: Columns, by_ns: int) -> Columns:
    return {**columns, "time": [time_ns + by_ns for time_ns in columns["time"]]}


def _reset(store: Store, window: Span) -> Row:
    """The network card's complaint that was not recorded: told where the core was first held."""
    saturated = next(
        row for row in store.rows("events", *window).to_pylist() if row["kind"] == "core_saturated"
    )
    core = saturated["cpu"]
    return {
        "time": saturated["time"] - NS_PER_S + _PATIENCE_NS,
        "kind": "nic_reset",
        "pattern": "ena.tx_q_paused",
        "cpu": core,
        "device": "eth0",
        "queue": 1,
        "severity": 3,
        "by_kernel": True,
        "sequence": 4242,
        "message": _SAID.format(core=core),
        "fields": json.dumps(_FIELDS),
    }


def _minutes(store: Store, span: Span) -> dict[str, Columns]:
    return {
        "core_minutes": core_minutes(store, *span),
        "stack_minutes": _heaviest(stack_minutes(store, *span)),
    }


def _heaviest(columns: Columns) -> Columns:
    """The rest of each minute joins what was left out already."""
    rows = [
        dict(zip(columns, values, strict=True)) for values in zip(*columns.values(), strict=True)
    ]
    kept: list[Row] = []
    for time_ns in sorted({row["time"] for row in rows}):
        ranked = sorted(
            (row for row in rows if row["time"] == time_ns),
            key=lambda row: (row["path"] == LEFT_OUT, -row["samples"]),
        )
        rest = ranked[_STACKS:]
        kept += ranked[:_STACKS]
        if rest:
            left_out = {
                "comm": "",
                "cgroup": None,
                "path": LEFT_OUT,
                "samples": sum(row["samples"] for row in rest),
            }
            kept.append(rest[0] | left_out)
    return {name: [row[name] for row in kept] for name in columns}


def _facts(store: Store, window: Span) -> dict[Fact, str]:
    """Of the many packages only some: all would be nine tenths of the lake."""
    rows = store.rows(
        "facts", window[0] - 3600 * NS_PER_S, window[1], columns=("kind", "name", "value")
    ).to_pylist()
    found = {(row["kind"], row["name"]): row["value"] for row in rows if row["value"] is not None}
    packages = sorted(fact for fact in found if fact[0] == "package")[:_PACKAGES]
    return {
        fact: value for fact, value in found.items() if fact[0] != "package" or fact in packages
    }
