"""What one reading of each source costs, on this machine and on a synthetic root of 96 cores."""

import sys
import tempfile
import time
from collections.abc import Callable
from pathlib import Path

from necroscope.model.reading import Moment, Source
from necroscope.sources.cgroupfs.cgroups import Cgroups
from necroscope.sources.perf.softirq_delay import SoftirqDelay
from necroscope.sources.procfs.interrupts import Interrupts
from necroscope.sources.procfs.memory import Memory
from necroscope.sources.procfs.pressure import Pressure
from necroscope.sources.procfs.schedstat import RunQueue
from necroscope.sources.procfs.softirqs import Softirqs
from necroscope.sources.procfs.softnet import SoftnetStat
from necroscope.sources.procfs.stat import Cores
from necroscope.sources.sysfs.nics import Nics

sys.path.insert(0, str(Path(__file__).parents[1] / "tests"))
from synthetic_root import make_root

SOURCES: dict[str, Callable[[Path], Source]] = {
    "cores": Cores,
    "softirqs": Softirqs,
    "run queue": RunQueue,
    "softnet": SoftnetStat,
    "pressure": Pressure,
    "memory": Memory,
    "interrupts": Interrupts,
    "nics": Nics,
    "cgroups": Cgroups,
}


def cost_us(
    source: Source, before_each: Callable[[int], None] | None = None, times: int = 200
) -> float:
    """CPU microseconds a read: the best of five batches, because what disturbs only ever adds."""
    best = float("inf")
    step = 0
    source.read(Moment(time.time_ns(), time.monotonic_ns()))
    for _ in range(5):
        spent = 0.0
        for _ in range(times // 5):
            step += 1
            if before_each is not None:
                before_each(step)
            started = time.process_time()
            source.read(Moment(time.time_ns(), time.monotonic_ns()))
            spent += time.process_time() - started
        best = min(best, spent / (times // 5))
    source.close()
    return best * 1e6


def tick_rows() -> list[list[str]]:
    """Rows for a table: source, cadence, microseconds here, microseconds at 96 cores with every
    counter moving.
    """
    rows = []
    with tempfile.TemporaryDirectory(prefix="necroscope-ticks-") as name:
        root = make_root(Path(name), 96, cgroups=240)

        def move(step: int) -> None:
            make_root(root, 96, step=step, cgroups=240)

        for label, make in SOURCES.items():
            here = cost_us(make(Path("/")))
            many = cost_us(make(root), move if label != "cgroups" else None, times=25)
            rows.append([label, f"{make(Path('/')).period_s:g} s", f"{here:.0f}", f"{many:.0f}"])
    rows.append(
        [
            "softirq delay (BPF)",
            "1 s",
            f"{cost_us(SoftirqDelay(Path('/'), range(2))):.0f}",
            "not measured",
        ]
    )
    return rows
