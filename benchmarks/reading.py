"""How long a minute of a recording takes to read back: a busy one of 96 cores in an hour and in a
day, and one of two cores.
"""

import shutil
import statistics
import time
from pathlib import Path

from generated_recording import generate
from necroscope.model.tables import TABLES
from necroscope.store.query import Store

HEAD = ["recording", "samples", "first time, ms", "median, ms", "CPU ms, median"]
_MINUTE_NS = 60 * 10**9


def reading_rows(work: Path) -> list[list[str]]:
    """Generated recordings (see generated_recording.py), of which one segment an hour is busy on
    all cores.
    """
    rows = []
    for hours, cpus in ((1, 2), (1, 96), (24, 96)):
        directory = generate(work / f"generated-{hours}-{cpus}", hours, cpus)
        # The same kind of minute in all recordings.
        busy_ns = (Store.open(directory).info().from_ns or 0) + (hours // 2 * 3600 + 60) * 10**9
        rows.append([f"{hours} h, {cpus} cores, generated", *_read_minute(directory, busy_ns)])
        shutil.rmtree(directory)
    return rows


def _read_minute(directory: Path, from_ns: int) -> list[str]:
    walls_ms, cpus_ms, count = [], [], 0
    for _ in range(15):
        store = Store.open(directory)
        wall_s, cpu_s = time.perf_counter(), time.process_time()
        window = store.samples(from_ns, from_ns + _MINUTE_NS)
        for name in TABLES:
            if name not in ("samples", "stacks", "frames"):
                store.rows(name, from_ns, from_ns + _MINUTE_NS)
        walls_ms.append(1000 * (time.perf_counter() - wall_s))
        cpus_ms.append(1000 * (time.process_time() - cpu_s))
        count = window.samples.num_rows
    return [
        f"{count:,}",
        f"{walls_ms[0]:.0f}",
        f"{statistics.median(walls_ms[1:]):.0f}",
        f"{statistics.median(cpus_ms[1:]):.0f}",
    ]
