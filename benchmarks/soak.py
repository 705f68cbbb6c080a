"""Hours of a busy and healthy machine under one recorder: what it cost, what it lost, and whether
anything was named wrongly.

`scripts/soak [MINUTES] [--dir DIR]`, two hours unless told. The lab's healthy scenarios and its
harmless twins run one after the other, each by `lab run`, with a mixed load and pauses between
them. Exits 1 if a cause was named. Needs root and a machine without other work.
"""

import argparse
import json
import random
import shutil
import subprocess
import sys
import tempfile
import time
from pathlib import Path
from typing import Any

from loads import mixed
from measured_child import MeasuredChild
from necroscope.lab import catalog
from necroscope.store.query import Store

NECROSCOPE = [sys.executable, "-m", "necroscope"]
NAMED = 0.5
PHASE_S = 60
PAUSE_S = 20


def busy_until(deadline: float, chosen: random.Random, scratch: Path) -> list[str]:
    """What ran, in order; a scenario that this machine has no means for is told and left out."""
    ran: list[str] = []
    while time.monotonic() < deadline:
        names = [
            scenario.name for scenario in catalog.scenarios().values() if scenario.cause is None
        ]
        for name in chosen.sample(names, len(names)):
            if time.monotonic() > deadline:
                break
            ran.append(run_healthy(name, chosen.randrange(1 << 30), scratch))
            with mixed(PHASE_S // 2, workers=chosen.randrange(1, 3)):
                time.sleep(PHASE_S // 2)
            time.sleep(chosen.randrange(PAUSE_S))
            print(
                f"soak: {ran[-1]}, {max(0, deadline - time.monotonic()) / 60:.0f} min to go",
                file=sys.stderr,
            )
    return ran


def run_healthy(name: str, seed: int, scratch: Path) -> str:
    directory = scratch / "phase"
    shutil.rmtree(directory, ignore_errors=True)
    command = [
        *NECROSCOPE,
        "lab",
        "run",
        name,
        "--dir",
        str(directory),
        "--seconds",
        str(PHASE_S),
        "--seed",
        str(seed),
    ]
    done = subprocess.run(command, capture_output=True, text=True)
    return (
        name
        if done.returncode == 0
        else f"{name} ({done.stderr.strip().splitlines()[-1:] or done.returncode})"
    )


def diagnosed(recording: Path) -> list[dict[str, Any]]:
    done = subprocess.run(
        [*NECROSCOPE, "diagnose", str(recording), "--json"],
        capture_output=True,
        text=True,
        check=False,
    )
    incidents: list[dict[str, Any]] = json.loads(done.stdout)["incidents"]
    return incidents


def rss_mb(child: MeasuredChild, at: list[float], started: float) -> None:
    resident = int(Path(f"/proc/{child.pid}/statm").read_text().split()[1]) * 4096 / 1e6
    at.append(round(resident, 1))
    print(
        f"soak: {(time.monotonic() - started) / 60:.0f} min, RSS {resident:.1f} MB", file=sys.stderr
    )


def main() -> int:
    parser = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    parser.add_argument("minutes", nargs="?", type=float, default=120)
    parser.add_argument("--dir", type=Path, help="keep the recording here")
    parser.add_argument("--seed", type=int, default=1)
    arguments = parser.parse_args()
    with tempfile.TemporaryDirectory(prefix="necroscope-soak-") as place:
        recording = arguments.dir or Path(place, "recording")
        child = MeasuredChild(
            [*NECROSCOPE, "record", "--dir", str(recording), "--free-floor", "0"],
            Path(place, "log"),
        )
        chosen, started, resident = random.Random(arguments.seed), time.monotonic(), []
        ran: list[str] = []
        for quarter in range(1, 5):
            ran += busy_until(started + arguments.minutes * 60 * quarter / 4, chosen, Path(place))
            rss_mb(child, resident, started)
        minutes = (time.monotonic() - started) / 60
        cost = child.finish()
        info = Store.open(recording).info()
        incidents = diagnosed(recording)
    named = [incident for incident in incidents if incident["verdict"]["confidence"] >= NAMED]
    print(f"\n{minutes:.0f} min of {len(ran)} phases: {', '.join(sorted(set(ran)))}\n")
    rows = {
        "causes named (confidence 0.5 and more)": len(named),
        "incidents told without a name": len(incidents) - len(named),
        "samples": info.tables.get("samples", 0),
        "lost samples": info.lost_samples,
        "gaps": (
            f"{len(info.gaps)}: {sorted({(gap.table, gap.cause) for gap in info.gaps})}"
            if info.gaps
            else 0
        ),
        "CPU s a minute": f"{cost.cpu_s / minutes:.2f}",
        "RSS at each quarter, MB": ", ".join(map(str, resident)),
        "MB on disk": f"{info.bytes / 1e6:.1f}",
    }
    for name, value in rows.items():
        print(f"| {name} | {value} |")
    for incident in named:
        print(
            f"named: {incident['from']} {incident['verdict']['cause']}"
            f" {incident['verdict']['summary']}"
        )
    return 1 if named else 0


if __name__ == "__main__":
    sys.exit(main())
