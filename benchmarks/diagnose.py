"""How long a diagnosis takes, and how much memory: of an hour of many cores, generated, with a held
core every ten minutes.

`python benchmarks/diagnose.py --cpus 96 --hours 1`; with a directory it measures that recording
instead.
"""

import argparse
import resource
import tempfile
import time
from pathlib import Path
from typing import Any

import numpy as np
import pyarrow as pa

from generated_recording import NS, generate
from necroscope.analysis.engine import diagnose
from necroscope.model.tables import SOFTIRQ_VECTORS, TABLES
from necroscope.segment.arrow import schema_of
from necroscope.segment.manifest import read_manifest
from necroscope.segment.table_writer import TableWriter
from necroscope.store.query import Store

HELD_EVERY_S, HELD_S = 600, 7


def add_tables(directory: Path, cpus: int) -> None:
    """What the recorder writes every second of each core, beside the samples."""
    for path in sorted(path for path in directory.iterdir() if path.is_dir()):
        manifest = read_manifest(path)
        seconds = np.arange(manifest.from_ns + NS, manifest.to_ns + 1, NS)
        random = np.random.default_rng(int(seconds[0] // NS))
        times, cores = np.repeat(seconds, cpus), np.tile(np.arange(cpus), len(seconds))
        is_held = (times // NS % HELD_EVERY_S < HELD_S) & (cores == 39 % cpus)
        for name, columns in {
            "cores": core_times(random, times, is_held),
            "softirqs": dict.fromkeys(SOFTIRQ_VECTORS, np.full(len(times), 120)),
            "softnet": {
                "processed": np.full(len(times), 900),
                "dropped": np.zeros(len(times), int),
            },
            "softirq_delay": {
                "count": np.full(len(times), 90),
                "worst_ns": np.full(len(times), 80_000),
                "pending_ns": times * 0,
            },
        }.items():
            batch = batch_of(name, times, cores, columns)
            writer = TableWriter(TABLES[name], path / f"{name}.parquet")
            writer.add(batch, int(times[0]), int(times[-1]))
            manifest.tables[name] = writer.close()
        manifest.write(path)


def core_times(random: Any, times: Any, is_held: Any) -> dict[str, Any]:
    user = (random.random(len(times)) * 0.7 * NS).astype(np.int64)
    system = np.where(
        is_held, NS - user // 100, (random.random(len(times)) * 0.1 * NS).astype(np.int64)
    )
    user = np.where(is_held, user // 100, user)
    return {"user_ns": user, "system_ns": system, "idle_ns": NS - user - system}


def batch_of(name: str, times: Any, cores: Any, columns: dict[str, Any]) -> pa.RecordBatch:
    given = {"time": times, "cpu": cores, "elapsed_ns": np.full(len(times), NS), **columns}
    arrays = []
    for field in schema_of(TABLES[name]):
        if field.name in given:
            arrays.append(pa.array(given[field.name]).cast(field.type))
        elif pa.types.is_dictionary(field.type):
            arrays.append(
                pa.DictionaryArray.from_arrays(
                    pa.array(np.zeros(len(times), np.int32)), pa.array(["net_rx"])
                )
            )
        elif pa.types.is_integer(field.type):
            arrays.append(pa.array(np.zeros(len(times), np.int64)).cast(field.type))
        else:
            arrays.append(pa.nulls(len(times), field.type))
    return pa.RecordBatch.from_arrays(arrays, schema=schema_of(TABLES[name]))


def measure(directory: Path) -> None:
    began_s, cpu_s = time.monotonic(), time.process_time()
    report = diagnose(Store.open(directory))
    elapsed_s, used_s = time.monotonic() - began_s, time.process_time() - cpu_s
    peak_mib = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss / 1024
    print(
        f"{len(report.incidents)} incidents in {elapsed_s:.1f} s ({used_s:.1f} s of CPU), peak"
        f" {peak_mib:.0f} MiB"
    )


def main() -> None:
    parser = argparse.ArgumentParser(description="measure a diagnosis")
    parser.add_argument("directory", type=Path, nargs="?")
    parser.add_argument("--hours", type=float, default=1.0)
    parser.add_argument("--cpus", type=int, default=96)
    parser.add_argument(
        "--full-every", type=int, default=12, help="one in so many segments is of a busy node"
    )
    arguments = parser.parse_args()
    if arguments.directory is not None:
        measure(arguments.directory)
        return
    with tempfile.TemporaryDirectory() as scratch:
        directory = generate(
            Path(scratch) / "recording",
            arguments.hours,
            arguments.cpus,
            full_every=arguments.full_every,
        )
        add_tables(directory, arguments.cpus)
        measure(directory)


if __name__ == "__main__":
    main()
