"""`fleet sweep` on Ray: two workers against one, and what Ray adds to each bundle.

`scripts/bench fleet sweep --bundles 48`. Starts a Ray cluster of its own on loopback
(`scripts/test-ray` installs Ray). The cost of a bundle is taken from the first result to the last,
so that connecting and starting workers is told apart from it; in time, and in CPU time of driver,
raylet, GCS and workers, which a busy machine disturbs less.
"""

import argparse
import contextlib
import json
import os
import re
import tempfile
import time
from collections.abc import Callable, Iterable, Iterator
from pathlib import Path
from typing import Any

from necroscope.fleet.demo_lake import RecordedIncident
from necroscope.fleet.evidence import StoredBundle
from necroscope.fleet.judging import BundleJudgement
from necroscope.fleet.lake import Lake, day_of
from necroscope.fleet.sweep import Judges, sweep
from necroscope.fleet.sweep_processes import Processes

LAB = Path(__file__).parents[1] / "src" / "necroscope" / "lab"
MINUTE_NS = 60_000_000_000
# Not 127.0.0.1: a driver that is given that one asks for the machine's address in the network
# instead.
LOOPBACK = "127.0.0.2"
DIFFERENT = 4
LEAST_SPEEDUP = 1.6
MOST_OVERHEAD = 0.10
AT_ONCE_S = 0.02
WORKS = re.compile(r"raylet|gcs_server|ray::|python")


def fill(lake: Lake, bundles: int) -> None:
    """The shipped recording at a few moments, under the names of many nodes."""
    story = RecordedIncident.read(LAB / "demo_lake", LAB / "demo_recording")
    with tempfile.TemporaryDirectory() as work:
        made = [
            (number, *story.bundle(number * MINUTE_NS, "measured", Path(work)))
            for number in range(DIFFERENT)
        ]
    for node in range(bundles):
        number, name, content = made[node % DIFFERENT]
        day = day_of(story.window[0] + number * MINUTE_NS)
        lake.put(f"bundles/cluster=measured/date={day}/node-{node:04d}--{name}.bundle", content)


@contextlib.contextmanager
def ray_cluster(cores: int) -> Iterator[str]:
    """Its address."""
    with tempfile.TemporaryDirectory(prefix="ray") as place:
        os.environ |= {"RAY_USAGE_STATS_ENABLED": "0", "RAY_TMPDIR": place}
        from ray.cluster_utils import Cluster

        options = {"num_cpus": cores, "include_dashboard": False, "node_ip_address": LOOPBACK}
        cluster = Cluster(initialize_head=True, head_node_args=options)
        try:
            yield cluster.address
        finally:
            cluster.shutdown()


class Watched:
    """Judges, and what was used from their first results to their last."""

    def __init__(self, judges: Judges, bundles: int) -> None:
        self._judges, self._bundles = judges, bundles
        self.first = self.last = (0, 0.0, 0.0)

    def __call__(self, evidence: Iterable[StoredBundle], now_ns: int) -> Iterator[BundleJudgement]:
        for count, judged in enumerate(self._judges(evidence, now_ns), 1):
            # The results of a chunk come together: the first moment is that of the last of them.
            if count == 1 or (
                self.first[0] == count - 1 and time.monotonic() - self.first[1] < AT_ONCE_S
            ):
                self.first = count, time.monotonic(), cpu_seconds()
            if count == self._bundles:
                self.last = count, time.monotonic(), cpu_seconds()
            yield judged

    def each(self) -> tuple[float, float]:
        """Seconds and CPU seconds of a bundle."""
        count = self.last[0] - self.first[0]
        return (self.last[1] - self.first[1]) / count, (self.last[2] - self.first[2]) / count


def cpu_seconds() -> float:
    """Of this process and of those below it that do the work; Ray's agents and monitors idle beside
    it.
    """
    parents: dict[int, int] = {}
    ticks: dict[int, int] = {}
    for stat in Path("/proc").glob("[0-9]*/stat"):
        with contextlib.suppress(OSError):
            name, _, rest = stat.read_text().partition("(")[2].rpartition(")")
            fields = rest.split()
            parents[int(stat.parent.name)] = int(fields[1])
            ticks[int(stat.parent.name)] = (
                int(fields[11]) + int(fields[12]) if WORKS.match(name) else 0
            )
    ours = {os.getpid()}
    while more := {pid for pid, parent in parents.items() if parent in ours} - ours:
        ours |= more
    return (
        sum(ticks.get(pid, 0) for pid in ours - {os.getpid()}) / os.sysconf("SC_CLK_TCK")
        + time.process_time()
    )


def measure(lake: Lake, judges: Judges, bundles: int) -> tuple[float, float, float]:
    """Seconds of a sweep; seconds and CPU seconds of a bundle. All must come out of it."""
    watched = Watched(judges, bundles)
    swept = sweep(lake, watched, is_again=True)
    assert (swept.judged, swept.incidents) == (bundles, bundles), swept.as_json()
    return swept.seconds, *watched.each()


def add_arguments(parser: argparse.ArgumentParser) -> None:
    parser.add_argument("--bundles", type=int, default=48)
    parser.add_argument("--rounds", type=int, default=3)
    parser.add_argument("--json", action="store_true")


def run(arguments: argparse.Namespace) -> None:
    with tempfile.TemporaryDirectory(prefix="sweep") as place:
        lake = Lake.open(f"{place}/lake")
        fill(lake, arguments.bundles)
        measured = all_measured(lake, arguments.bundles, arguments.rounds)
    print(json.dumps(measured) if arguments.json else describe(measured))


def all_measured(lake: Lake, bundles: int, rounds: int) -> dict[str, Any]:
    """The best of some rounds, taken in turn: the machine has other things to do as well."""
    from necroscope.fleet.sweep_ray import RayWorkers

    found: dict[str, list[tuple[float, float, float]]] = {
        "process": [],
        "ray_1": [],
        "ray_2": [],
        "processes": [],
    }
    with ray_cluster(2) as address:
        ways: dict[str, Callable[[], Judges]] = {
            "process": lambda: Processes(lake.url, 1),
            "ray_1": lambda: RayWorkers(address, lake.url, 1),
            "ray_2": lambda: RayWorkers(address, lake.url, 2),
            "processes": lambda: Processes(lake.url),
        }
        for name in [*ways] * rounds:
            found[name].append(measure(lake, ways[name](), bundles))
    whole, each, cpu = (
        {name: min(one[place] for one in all_) for name, all_ in found.items()}
        for place in range(3)
    )
    return {
        "bundles": bundles,
        "seconds": {name: round(value, 2) for name, value in whole.items()},
        "ms_a_bundle": {name: round(value * 1000, 1) for name, value in each.items()},
        "cpu_ms_a_bundle": {name: round(value * 1000, 1) for name, value in cpu.items()},
        "load": os.getloadavg()[0],
        "speedup_of_2": round(each["ray_1"] / each["ray_2"], 2),
        "overhead": round(each["ray_1"] / each["process"] - 1, 3),
        "cpu_overhead": round(cpu["ray_1"] / cpu["process"] - 1, 3),
    }


def describe(measured: dict[str, Any]) -> str:
    lines = [f"{name:24} {value}" for name, value in measured.items()]
    lines.append(f"two workers against one: {measured['speedup_of_2']}x (at least {LEAST_SPEEDUP})")
    lines.append(f"Ray adds {measured['overhead']:.1%} to a bundle (at most {MOST_OVERHEAD:.0%})")
    return "\n".join(lines)
