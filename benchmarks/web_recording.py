"""A generated day of a node of 96 cores for the time machine: one core is held every ten minutes
while cgroups leak.

`python benchmarks/web_recording.py DIR [HOURS] [CPUS]`. To the samples of `generated_recording`
come the tables of the lanes.
"""

import sys
import time
from pathlib import Path
from typing import Any

import numpy as np
import pyarrow as pa

from generated_recording import NS, SEGMENT_S, START_NS, generate, write_table
from necroscope.model.tables import TABLES
from necroscope.segment.arrow import schema_of
from necroscope.segment.core_minutes import CORE_COLUMNS, DELAY_COLUMNS, CoreMinutes
from necroscope.segment.manifest import TableEntry

HELD_EVERY_S, HELD_S = 600, 5
VECTORS = ("timer", "net_rx", "sched")
_LEAKED_A_SEGMENT = 238


def more_tables(path: Path, start_ns: int, cpus: int) -> dict[str, TableEntry]:
    held = (
        np.arange(SEGMENT_S) + (start_ns - START_NS) // NS
    ) % HELD_EVERY_S >= HELD_EVERY_S - HELD_S
    core = (start_ns // NS) % 7 * 13 % cpus
    tables = {
        "cores": _cores(start_ns, cpus, held, core),
        "softirq_delay": _delays(start_ns, cpus, held, core),
        "cgroups": _cgroups(start_ns),
        "events": _events(start_ns, held, core),
    }
    tables["core_minutes"] = _core_minutes(tables["cores"], tables["softirq_delay"])
    span = (start_ns, start_ns + SEGMENT_S * NS - 1)
    return {
        name: write_table(path, name, batch, span)
        for name, batch in tables.items()
        if batch.num_rows
    }


def _times(start_ns: int, each: int) -> Any:
    return np.repeat(start_ns + np.arange(SEGMENT_S, dtype=np.int64) * NS, each)


def _cores(start_ns: int, cpus: int, held: Any, core: int) -> pa.RecordBatch:
    random = np.random.default_rng(start_ns % (1 << 31))
    shape = (SEGMENT_S, cpus)
    # Cores of a training job: a third computes most of the time.
    user = random.random(shape) * np.where(np.arange(cpus) % 3 == 0, 0.9, 0.2)
    system, softirq = random.random(shape) * 0.06, random.random(shape) * 0.02
    system[held, core], user[held, core], softirq[held, core] = 0.99, 0.0, 0.0
    share = {"user_ns": user, "system_ns": system, "softirq_ns": softirq}
    share["idle_ns"] = np.clip(1 - user - system - softirq, 0, 1)
    none = np.zeros(shape)
    columns = [
        pa.array(_times(start_ns, cpus)),
        pa.array(np.tile(np.arange(cpus, dtype=np.int16), SEGMENT_S)),
    ]
    columns.append(pa.array(np.full(SEGMENT_S * cpus, NS, np.int64)))
    for column in TABLES["cores"].columns[3:]:
        # The kernel counts in ticks of 10 ms.
        columns.append(
            pa.array(
                (
                    np.round(share.get(column.name, none) * 100).astype(np.int64) * (NS // 100)
                ).ravel()
            )
        )
    return pa.RecordBatch.from_arrays(columns, schema=schema_of(TABLES["cores"]))


def _delays(start_ns: int, cpus: int, held: Any, core: int) -> pa.RecordBatch:
    each = cpus * len(VECTORS)
    worst = (
        np.random.default_rng(1).random((SEGMENT_S, cpus, len(VECTORS))) ** 4 * 400_000
    ).astype(np.int64)
    pending = np.zeros_like(worst)
    pending[held, core, 1] = (np.cumsum(held) * NS)[held] % (HELD_S * NS + 1)
    rows = SEGMENT_S * each
    vector = pa.DictionaryArray.from_arrays(
        np.tile(np.arange(len(VECTORS), dtype=np.int32), SEGMENT_S * cpus), list(VECTORS)
    )
    histogram = pa.ListArray.from_arrays(
        np.arange(0, 24 * rows + 1, 24, dtype=np.int32), pa.array(np.ones(24 * rows, np.int32))
    )
    columns = [
        pa.array(_times(start_ns, each)),
        pa.array(np.tile(np.repeat(np.arange(cpus, dtype=np.int16), len(VECTORS)), SEGMENT_S)),
        vector,
        pa.array(np.full(rows, 24, np.int64)),
        pa.array(worst.ravel()),
        pa.array(pending.ravel()),
        histogram,
    ]
    return pa.RecordBatch.from_arrays(columns, schema=schema_of(TABLES["softirq_delay"]))


def _core_minutes(cores: pa.RecordBatch, delays: pa.RecordBatch) -> pa.RecordBatch:
    """As the sealing child would."""
    minutes = CoreMinutes()
    minutes.add_cores(zip(*(cores.column(name).to_pylist() for name in CORE_COLUMNS), strict=True))
    minutes.add_delays(
        zip(*(delays.column(name).to_pylist() for name in DELAY_COLUMNS), strict=True)
    )
    return _batch("core_minutes", minutes.rows())


def _cgroups(start_ns: int) -> pa.RecordBatch:
    number = (start_ns - START_NS) // (SEGMENT_S * NS)
    rows = []
    for tick in range(0, SEGMENT_S, 10):
        dying = round(_LEAKED_A_SEGMENT * (number + tick / SEGMENT_S))
        rows.append((start_ns + tick * NS, "memory", "/", dying + 412, 412, dying, *(None,) * 5))
    return _batch("cgroups", rows)


def _events(start_ns: int, held: Any, core: int) -> pa.RecordBatch:
    rows = [
        _event(
            start_ns + 150 * NS,
            "unit_restart",
            None,
            4,
            "agent.service: main process exited, restarted (code 1)",
        )
    ]
    if held.any():
        line = (
            f"ena 0000:00:05.0 eth0: TX q {core} is paused for too long (threshold 5000000). napi"
            f" CPU: {core}"
        )
        moment = start_ns + int(np.flatnonzero(held)[-1]) * NS
        rows += [
            _event(
                moment - HELD_S * NS // 2, "core_saturated", core, 4, "100 % of 1.0 s in the kernel"
            )
        ]
        rows += [_event(moment, "nic_reset", core, 3, line)]
    return _batch("events", rows)


def _event(
    time_ns: int, kind: str, cpu: int | None, severity: int, message: str
) -> tuple[Any, ...]:
    fields = '{"unit": "agent.service"}' if kind == "unit_restart" else None
    return (
        time_ns,
        kind,
        None,
        cpu,
        None,
        None,
        None,
        None,
        severity,
        True,
        None,
        message,
        None,
        fields,
    )


def _batch(name: str, rows: list[tuple[Any, ...]]) -> pa.RecordBatch:
    schema = schema_of(TABLES[name])
    columns = list(zip(*rows, strict=True)) or [()] * len(schema)
    return pa.RecordBatch.from_arrays(
        [pa.array(c, f.type) for c, f in zip(columns, schema, strict=True)], schema=schema
    )


def main() -> None:
    words = dict(zip(("directory", "hours", "cpus"), sys.argv[1:], strict=False))
    directory, hours, cpus = (
        Path(words["directory"]),
        float(words.get("hours", 24)),
        int(words.get("cpus", 96)),
    )
    began_s = time.monotonic()
    # One busy segment in the middle of nowhere: a day of full samples is 7 GB, and the page asks
    # for one window at a time.
    generate(directory, hours, cpus, full_every=288, more=more_tables)
    print(f"generated {hours} h in {time.monotonic() - began_s:.1f} s")


if __name__ == "__main__":
    main()
