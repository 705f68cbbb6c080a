"""Hours of good and bad days under one recorder: what it cost, what it lost, whether every gap has
its reason, and whether anything was named wrongly.

`scripts/soak [MINUTES] [--dir DIR]`, 150 minutes unless told. In turns: the lab's healthy
scenarios, a mixed load, exec storms, cgroups that come and go, clock steps (of the recorder's
process alone), a full disk, killed children, and hostile programs of `nobody`. The recording lies
on a disk of its own, in memory. Exits 1 if a cause was named falsely, a gap has no reason, rows are
missing without a gap, or memory grew. Needs root and a machine without other work.
"""

import argparse
import itertools
import json
import random
import statistics
import subprocess
import sys
import tempfile
import time
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from compiled_program import MOVED_CLOCK, compiled
from measured_child import Cost, MeasuredChild
from necroscope.lab import catalog
from necroscope.model.reading import Gap
from necroscope.model.units import parse_moment_ns
from necroscope.store.query import Store
from soak_phases import PHASES, Node, Phase

NECROSCOPE = [sys.executable, "-m", "necroscope"]
NAMED = 0.5
MOST_GROWTH = 0.05
DISK_BYTES = 256 << 20
PAUSE_S = 5
# Rows are on the disk a flush later, and a gap may begin with the tick before.
SLACK_NS = 20_000_000_000
SILENCE_NS = 3_000_000_000


@dataclass(frozen=True, slots=True)
class Done:
    """A phase that ran, by the recording's own time."""

    phase: Phase
    from_ns: int
    to_ns: int
    rss_mb: float

    def touches(self, from_ns: int, to_ns: int) -> bool:
        return self.from_ns - SLACK_NS <= to_ns and from_ns <= self.to_ns + SLACK_NS


def lab_phase(node: Node, seconds: float) -> None:
    """One of the scenarios in which nothing is wrong; one that this machine has no means for ends
    at once.
    """
    healthy = [one.name for one in catalog.scenarios().values() if one.cause is None]
    directory = Path(tempfile.mkdtemp(dir=node.scratch))
    words = ["lab", "run", node.chosen.choice(healthy), "--dir", str(directory / "lab")]
    words += ["--seconds", str(round(seconds)), "--seed", str(node.chosen.randrange(1 << 30))]
    subprocess.run([*NECROSCOPE, *words], capture_output=True, check=False)


def soak(node: Node, recording: Path, minutes: float) -> list[Done]:
    started, done = time.monotonic(), []
    deadline = started + minutes * 60
    seconds = max(15.0, min(60.0, minutes * 60 / (3 * (len(PHASES) + 1))))
    phases = [*PHASES, Phase("healthy lab scenario", lab_phase)]
    while time.monotonic() < deadline:
        for phase in node.chosen.sample(phases, len(phases)):
            if time.monotonic() > deadline:
                break
            from_ns = newest_ns(recording)
            phase.run(node, seconds)
            time.sleep(PAUSE_S)
            done.append(Done(phase, from_ns, newest_ns(recording), rss_mb(node.recorder)))
            left = max(0.0, deadline - time.monotonic()) / 60
            print(
                f"soak: {phase.name}, RSS {done[-1].rss_mb:.1f} MB, {left:.0f} min to go",
                file=sys.stderr,
            )
    return done


def newest_ns(recording: Path) -> int:
    """As far as the recording goes; 0 before there is one."""
    for _ in range(20):
        try:
            return Store.open(recording).span()[1]
        except Exception:  # noqa: BLE001 - not there yet, or a segment just went
            time.sleep(0.5)
    return 0


def rss_mb(pid: int) -> float:
    return int(Path(f"/proc/{pid}/statm").read_text().split()[1]) * 4096 / 1e6


def growth(done: list[Done], kinds: int) -> float | None:
    """From the first third to the last, once each kind of phase has been there: until then the
    bounded tables of names, processes and stacks fill for the first time. None if it is too short.
    """
    seen: set[str] = set()
    later = []
    for one in done:
        later += [one.rss_mb] if len(seen) == kinds else []
        seen.add(one.phase.name)
    third = len(later) // 3
    if not third:
        return None
    return statistics.median(later[-third:]) / statistics.median(later[:third]) - 1


def unexplained(gaps: list[Gap], done: list[Done]) -> list[Gap]:
    return [
        gap
        for gap in gaps
        if not any(
            one.touches(gap.from_ns, gap.to_ns) and one.phase.explains(gap.cause) for one in done
        )
    ]


def silent(store: Store, gaps: list[Gap]) -> list[str]:
    """Stretches without rows of `cores` that no gap covers."""
    times = sorted(set(store.rows("cores", 0, 1 << 62).column("time").to_pylist()))
    return [
        f"{(after - before) / 1e9:.1f} s without rows and without a gap"
        for before, after in itertools.pairwise(times)
        if after - before > SILENCE_NS
        and not any(
            gap.table in ("*", "cores") and gap.from_ns <= after and gap.to_ns >= before
            for gap in gaps
        )
    ]


def diagnosed(recording: Path) -> list[dict[str, Any]]:
    words = ["diagnose", str(recording), "--json"]
    output = subprocess.run([*NECROSCOPE, *words], capture_output=True, text=True, check=False)
    incidents: list[dict[str, Any]] = json.loads(output.stdout)["incidents"]
    return [one for one in incidents if one["verdict"]["confidence"] >= NAMED]


def is_false(incident: dict[str, Any], done: list[Done]) -> bool:
    span = parse_moment_ns(incident["from"], 0), parse_moment_ns(incident["to"], 0)
    cause = incident["verdict"]["cause"]
    return not any(one.touches(*span) and cause in one.phase.names for one in done)


@contextmanager
def small_disk(place: Path) -> Iterator[Path]:
    place.mkdir()
    subprocess.run(
        ["mount", "-t", "tmpfs", "-o", f"size={DISK_BYTES}", "soak", str(place)], check=True
    )
    try:
        yield place
    finally:
        subprocess.run(["umount", "--lazy", str(place)], check=True)


def main() -> int:
    arguments = _arguments()
    with (
        tempfile.TemporaryDirectory(prefix="necroscope-soak-") as folder,
        small_disk(Path(folder, "disk")) as disk,
    ):
        Path(folder).chmod(0o755)
        clock = Path(folder, "clock")
        clock.write_bytes(bytes(8))
        library = compiled(Path(folder), MOVED_CLOCK, "-shared", "-fPIC", "-ldl")
        recording = disk / "recording"
        child = MeasuredChild(
            [
                *NECROSCOPE,
                "record",
                "--dir",
                str(recording),
                "--free-floor",
                "0",
                "--segment",
                "1m",
            ],
            arguments.log,
            {"LD_PRELOAD": library, "SOAK_CLOCK": str(clock)},
        )
        node = Node(child.pid, disk, clock, Path(folder), random.Random(arguments.seed))
        newest_ns(recording)
        try:
            done = soak(node, recording, arguments.minutes)
        finally:  # also when the soak itself is ended
            cost = child.finish()
        code = report(recording, done, cost, arguments.minutes)
        if arguments.dir:
            subprocess.run(["cp", "-r", str(recording), str(arguments.dir)], check=True)
    return code


def report(recording: Path, done: list[Done], cost: Cost, minutes: float) -> int:
    store = Store.open(recording)
    info, named = store.info(), diagnosed(recording)
    false = [incident for incident in named if is_false(incident, done)]
    odd, quiet = unexplained(info.gaps, done), silent(store, info.gaps)
    grown = growth(done, len(PHASES) + 1)
    rows = {
        "minutes, phases": f"{minutes:g}, {len(done)}",
        "causes named; of these falsely": f"{len(named)}; {len(false)}",
        "samples; lost": f"{info.tables.get('samples', 0)}; {info.lost_samples}",
        "gaps; without a reason": f"{len(info.gaps)}; {len(odd)}",
        "stretches without rows and without a gap": len(quiet),
        "RSS, median of the phases' ends, MB": f"{statistics.median(one.rss_mb for one in done):.1f}",
        "RSS, growth after one phase of each kind, first third to last": (
            "not known: run it for longer" if grown is None else f"{grown:+.1%}"
        ),
        "CPU s per minute": f"{cost.cpu_s / minutes:.2f}",
        "MB on disk": f"{info.bytes / 1e6:.1f}",
    }
    for name, value in rows.items():
        print(f"| {name} | {value} |")
    for incident in named:
        verdict = incident["verdict"]
        print(f"named: {incident['from']} {verdict['cause']} {verdict['summary']}")
    for gap in odd:
        print(f"no reason for: {gap.table} {(gap.to_ns - gap.from_ns) / 1e9:.1f} s: {gap.cause}")
    print(*quiet, sep="\n")
    return 1 if false or odd or quiet or grown is None or grown > MOST_GROWTH else 0


def _arguments() -> argparse.Namespace:
    parser = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    parser.add_argument("minutes", nargs="?", type=float, default=150)
    parser.add_argument("--dir", type=Path, help="keep the recording here")
    parser.add_argument("--log", type=Path, help="what the recorder says [nowhere]")
    parser.add_argument("--seed", type=int, default=1)
    return parser.parse_args()


if __name__ == "__main__":
    sys.exit(main())
