"""A window of a recording as a recording of its own, small enough to send: every table, stacks
merged, one segment.
"""

import shutil
from collections.abc import Mapping
from pathlib import Path
from typing import Final

import pyarrow as pa

from necroscope.errors import RecordingError, UsageError
from necroscope.model.reading import merge_gaps
from necroscope.model.tables import SCHEMA_VERSION, TABLES, Table
from necroscope.model.units import NS_PER_S, format_duration
from necroscope.segment.manifest import GAP_LIMIT, Manifest, TableEntry
from necroscope.segment.recording import Identity, Pin, make_recording, segment_name, write_pins
from necroscope.segment.spans import add_span
from necroscope.segment.table_writer import TableWriter
from necroscope.store.folded_cores import FoldedCores
from necroscope.store.query import Store
from necroscope.store.redaction import Redactor, Renamer

LONGEST_NS: Final = 3600 * NS_PER_S
# Written when they change and at the start of a segment: what holds in the window may have been
# written before it.
_STATES: Final = ("nics", "units", "containers", "facts", "interrupts", "cgroups")
_SEGMENT_NS: Final = 300 * NS_PER_S


def write_excerpt(
    store: Store,
    from_ns: int,
    to_ns: int,
    directory: Path,
    renames: Mapping[str, str] | None = None,
    folded: FoldedCores | None = None,
    *,
    is_redacted: bool = False,
) -> Manifest:
    """The rows with from_ns <= time < to_ns in a new recording; states also from the segment
    before.

    `renames` are texts to replace in every name, so that a recording can be shown to strangers.
    `is_redacted` leaves out what says whose node it is. `folded` makes small what is not of the
    cores that matter.
    """
    if to_ns - from_ns > LONGEST_NS:
        hint = f"an excerpt is at most {format_duration(LONGEST_NS)}: choose a shorter window"
        raise UsageError(f"{format_duration(to_ns - from_ns)} is too long for an excerpt", hint)
    if directory.exists() and any(directory.iterdir()):
        raise RecordingError(f"{directory} is not empty", "give a new directory")
    found = store.catalog.identity or Identity(store.info().node, "", "necroscope")
    renamed = Redactor(renames or {}, found.node) if is_redacted else Renamer(renames or {})
    labels = renamed.labels(found.labels)
    identity = found._replace(node=renamed.text(found.node), labels=labels)
    make_recording(directory, identity._replace(schema=SCHEMA_VERSION))
    segment = directory / segment_name(from_ns)
    segment.mkdir(mode=0o700)
    try:
        manifest = _write(store, from_ns, to_ns, segment, identity, renamed, folded)
    except BaseException:
        shutil.rmtree(segment)
        raise
    pins = [
        Pin(max(pin.from_ns, from_ns), min(pin.to_ns, to_ns), renamed.text(pin.reason))
        for pin in store.pins()
    ]
    write_pins(directory, [pin for pin in pins if pin.from_ns < pin.to_ns])
    add_span(directory, segment.name, manifest.reach)
    return manifest


def _write(
    store: Store,
    from_ns: int,
    to_ns: int,
    segment: Path,
    identity: Identity,
    renamed: Renamer,
    folded: FoldedCores | None,
) -> Manifest:
    entries: dict[str, TableEntry] = {}
    sampled = (
        store.samples(from_ns, to_ns) if folded is None else folded.samples(store, from_ns, to_ns)
    )
    tables = {"samples": sampled.samples, "stacks": sampled.stacks, "frames": sampled.frames}
    # What is derived is not cut: its rows are of whole minutes, and a short recording does without.
    for name, table in ((name, table) for name, table in TABLES.items() if not table.is_derived):
        since_ns = from_ns - _SEGMENT_NS if name in _STATES else from_ns
        rows = tables[name] if name in tables else store.rows(name, since_ns, to_ns)
        if folded is not None:
            rows = folded.counters(name, rows)
        rows = renamed.rows(name, rows)
        if rows.num_rows:
            entries[name] = _write_table(table, rows, segment)
    gaps = [gap._replace(cause=renamed.text(gap.cause)) for gap in store.gaps(from_ns, to_ns)]
    info = store.info()
    manifest = Manifest(
        schema=SCHEMA_VERSION,
        segment=segment.name,
        node=identity.node,
        boot_id=identity.boot_id,
        from_ns=from_ns,
        to_ns=to_ns,
        cpus=info.cpus,
        tables=entries,
        gaps=gaps if len(gaps) <= GAP_LIMIT else merge_gaps(gaps),
        gaps_are_merged=len(gaps) > GAP_LIMIT,
        lost_samples=sum(gap.lost or 0 for gap in gaps if gap.table == "samples"),
        # How many were dropped in the window is not known; that they were is what a reader asks.
        idle_samples=min(info.idle_samples, 1),
    )
    manifest.write(segment)
    return manifest


def _write_table(table: Table, rows: pa.Table, segment: Path) -> TableEntry:
    times = rows.column("time").to_numpy() if table.is_timed else None
    span = (int(times.min()), int(times.max())) if times is not None else (0, 0)
    writer = TableWriter(table, segment / f"{table.name}.parquet")
    try:
        for batch in rows.to_batches():
            writer.add(batch, *span)
        return writer.close()
    except BaseException:
        writer.abandon()
        raise
