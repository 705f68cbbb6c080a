"""What the recorder costs and keeps, beside `perf record` in the same run: `scripts/bench recorder
[SECTION...]`.

Sections: steady, walks, floor, others, storm, rates, shares, cores96, tick, read. Each prints a table for
docs/benchmarks.md. Needs root, perf and a quiet machine. Without verdicts, whose process has
benchmarks/verdicts.py.
"""

import json
import os
import shutil
import signal
import statistics
import subprocess
import sys
import tempfile
import time
from collections.abc import Callable, Iterator
from contextlib import AbstractContextManager, contextmanager
from pathlib import Path
from typing import NamedTuple

from floor import HEAD as FLOOR_HEAD
from floor import floor_rows
from loads import exec_storm, find_and_sort, mixed
from many_cores import HEAD as MANY_CORES_HEAD
from many_cores import many_cores_rows
from measured_child import Cost, MeasuredChild
from necroscope.model.idle import IDLE_FUNCTIONS
from necroscope.store.query import Store
from others import HEAD as OTHERS_HEAD
from others import TURNS, others_rows
from reading import HEAD as READING_HEAD
from reading import reading_rows
from shares import HEAD as SHARES_HEAD
from shares import share_rows
from ticks import tick_rows

NECROSCOPE = [sys.executable, "-m", "necroscope"]
ROUNDS, START_S, MINUTE_S = 3, 20, 60
Load = Callable[[int], AbstractContextManager[None]]
PERF = ["perf", "record", "-q", "-F", "97", "-g", "-a", "-e", "cpu-clock"]


def recorder(directory: Path, *options: str) -> MeasuredChild:
    shutil.rmtree(directory, ignore_errors=True)
    command = [
        *NECROSCOPE,
        "record",
        "--dir",
        str(directory),
        "--json",
        "--free-floor",
        "0",
        "--verdicts",
        "off",
        *options,
    ]
    return MeasuredChild(command, directory.with_suffix(".log"))


def perf(data: Path, *options: str) -> MeasuredChild:
    return MeasuredChild([*PERF, *options, "-o", str(data)])


def tree_bytes(directory: Path, *names: str) -> int:
    return sum(
        file.stat().st_size
        for file in directory.rglob("*")
        if file.is_file() and (not names or file.stem in names)
    )


def table(title: str, head: list[str], rows: list[list[str]]) -> None:
    print(f"\n### {title}\n")
    for row in (head, ["---"] * len(head), *rows):
        print("| " + " | ".join(row) + " |")


class MarkedCost(NamedTuple):
    """What a whole run cost, and a minute in its middle."""

    run: Cost
    minute_cpu_s: float

    @property
    def start_and_end_cpu_s(self) -> float:
        return self.run.cpu_s - self.minute_cpu_s * (START_S + MINUTE_S) / 60


def side_by_side(work: Path, load: Load) -> tuple[MarkedCost, MarkedCost, Path, Path]:
    """Both at once under the same load, so that they see the same machine. A minute is marked
    within the run: of two runs the difference in start-up would be as large as a minute.
    """
    recording, data = work / "steady", work / "perf.data"
    with load(START_S + MINUTE_S + 8):
        time.sleep(1)
        both = recorder(recording), perf(data)
        time.sleep(START_S)
        before = [one.cpu_s() for one in both]
        time.sleep(MINUTE_S)
        minutes = [one.cpu_s() - mark for one, mark in zip(both, before, strict=True)]
        theirs = MarkedCost(both[1].finish(), minutes[1])
        ours = MarkedCost(both[0].finish(), minutes[0])
    return ours, theirs, recording, data


def perf_samples(data: Path, from_s: float, to_s: float) -> int:
    """Non-idle samples of perf.data between two monotonic seconds, by the rule that the recorder
    uses.
    """
    command = [
        "perf",
        "script",
        "-i",
        str(data),
        "-F",
        "pid,time,ip,sym",
        "--time",
        f"{from_s:.6f},{to_s:.6f}",
    ]
    count, head = 0, None
    with subprocess.Popen(
        command, stdout=subprocess.PIPE, stderr=subprocess.DEVNULL, text=True, errors="replace"
    ) as script:
        assert script.stdout is not None
        for line in script.stdout:
            if (
                line.startswith(("\t", " "))
                and head is not None
                and line.split()[:1]
                and not line.rstrip().endswith(":")
            ):
                symbol = line.split()[1] if len(line.split()) > 1 else ""
                count += not (head == "0" and symbol in IDLE_FUNCTIONS)
                head = None
            elif line.rstrip().endswith(":"):
                head = line.split()[0]
    return count


def steady(work: Path, load: Load = mixed, name: str = "mixed load") -> None:
    """97 Hz under a load on two cores: a minute in the middle, and what start-up and end cost."""
    ours: list[MarkedCost] = []
    theirs: list[MarkedCost] = []
    for _ in range(ROUNDS):
        one, other, recording, data = side_by_side(work, load)
        ours.append(one)
        theirs.append(other)
    rows = [*cpu_rows(ours, theirs), *memory_rows(ours, theirs), *disk_rows(recording, data)]
    head = ["", "necroscope, all sources", "perf record -g -a", "ratio"]
    what = f"97 Hz, two cores, {name}, {START_S + MINUTE_S} s, medians of {ROUNDS} rounds"
    table(what, head, rows)


def walks(work: Path) -> None:
    """The same under a load that empties the caches: file walks and sorting in a loop."""
    steady(work, find_and_sort, "find and sort in a loop")


def cpu_rows(ours: list[MarkedCost], theirs: list[MarkedCost]) -> list[list[str]]:
    def row(what: str, cost: Callable[[MarkedCost], float]) -> list[str]:
        own, other = (statistics.median(map(cost, costs)) for costs in (ours, theirs))
        ratio = f"{own / other:.2f}" if other else ""
        return [what, f"{own:.3f}", f"{other:.3f}", ratio]

    minutes = ", ".join(f"{cost.minute_cpu_s:.2f}" for cost in ours)
    return [
        row(f"CPU s in a run of {START_S + MINUTE_S} s, all of it", lambda cost: cost.run.cpu_s),
        row("CPU s per minute, start-up and end apart", lambda cost: cost.minute_cpu_s),
        ["the same, all rounds", minutes, "", ""],
        row("CPU s of start-up and end", lambda cost: cost.start_and_end_cpu_s),
    ]


def memory_rows(ours: list[MarkedCost], theirs: list[MarkedCost]) -> list[list[str]]:
    own_rss, perf_rss = (
        max(cost.run.peak_rss_bytes for cost in costs) / 1e6 for costs in (ours, theirs)
    )
    tree_mb, shared_once_mb = (
        max(getattr(cost.run, name) for cost in ours) / 1e6
        for name in ("tree_rss_bytes", "tree_pss_bytes")
    )
    what = "RSS with children at once; PSS (shared pages once), MB"
    return [
        ["RSS, MB", f"{own_rss:.0f}", f"{perf_rss:.0f}", ""],
        [what, f"{tree_mb:.0f}; {shared_once_mb:.0f}", "", ""],
    ]


def disk_rows(recording: Path, data: Path) -> list[list[str]]:
    info, perf_bytes = Store.open(recording).info(), data.stat().st_size
    sizes = {
        "bytes, whole recording": tree_bytes(recording),
        "bytes, samples + stacks + frames": tree_bytes(recording, "samples", "stacks", "frames"),
    }
    return [
        *(
            [what, f"{size}", f"{perf_bytes}", f"1/{perf_bytes / size:.1f}"]
            for what, size in sizes.items()
        ),
        ["lost samples", str(info.lost_samples), "", ""],
        ["gaps", str(len(info.gaps)), "", ""],
        ["non-idle samples of one middle minute", *compare_samples(recording, data)],
    ]


def compare_samples(recording: Path, data: Path) -> list[str]:
    store = Store.open(recording)
    anchor = store.rows("anchors", 0, 1 << 62).to_pylist()[0]
    offset_ns = anchor["time"] - anchor["monotonic_ns"]
    info = store.info()
    from_ns, to_ns = info.from_ns + 10 * 10**9, info.from_ns + 70 * 10**9
    ours = store.rows("samples", from_ns, to_ns).num_rows
    theirs = perf_samples_monotonic(
        data, (from_ns - offset_ns) / 1e9, (to_ns - offset_ns) / 1e9, store
    )
    return [str(ours), str(theirs), f"{ours / theirs:.3f}"]


def perf_samples_monotonic(data: Path, from_s: float, to_s: float, store: Store) -> int:
    """perf stamps with the scheduler's clock, as the kernel log does: the anchors tell how far it
    is from ours.
    """
    anchor = store.rows("anchors", 0, 1 << 62).to_pylist()[0]
    drift_s = (anchor["monotonic_ns"] - anchor["log_clock_ns"]) / 1e9
    return perf_samples(data, from_s - drift_s, to_s - drift_s)


def others(work: Path) -> None:
    """What it costs others: each victim alone and recorded, in turns, and the median of the pairs'
    ratios.
    """

    @contextmanager
    def recorded() -> Iterator[None]:
        child = recorder(work / "others")
        try:
            yield
        finally:
            child.finish()

    table(
        f"Speed of others, recorder on against off, {TURNS} turns",
        OTHERS_HEAD,
        others_rows(recorded),
    )


def storm(work: Path) -> None:
    """Two shells forking /bin/true for 30 s."""
    recording, data = work / "storm", work / "storm.data"
    rows = []
    with exec_storm(36):
        time.sleep(1)
        ours = recorder(recording)
        theirs = perf(data)
        time.sleep(4)
        first = _rss_now(ours.pid)
        time.sleep(26)
        last = _rss_now(ours.pid)
        theirs_cost = theirs.finish()
        ours_cost = ours.finish()
    store = Store.open(recording)
    info = store.info()
    samples = store.rows("samples", info.from_ns, info.to_ns).to_pydict()
    named = sum(comm in ("true", "bash", "sh") for comm in samples["comm"])
    unnamed = sum(comm.startswith(":") for comm in samples["comm"])
    rows = [
        [
            "CPU s, whole run",
            f"{ours_cost.cpu_s:.2f}",
            f"{theirs_cost.cpu_s:.2f}",
            f"{ours_cost.cpu_s / theirs_cost.cpu_s:.2f}",
        ],
        ["bytes", f"{tree_bytes(recording)}", f"{data.stat().st_size}", ""],
        [
            "RSS, MB",
            f"{ours_cost.peak_rss_bytes / 1e6:.0f}",
            f"{theirs_cost.peak_rss_bytes / 1e6:.0f}",
            "",
        ],
        ["RSS after 4 s, after 30 s, MB", f"{first / 1e6:.1f}, {last / 1e6:.1f}", "", ""],
        ["lost samples", str(info.lost_samples), "", ""],
        ["samples of the shells and `true`; with no name", f"{named}; {unnamed}", "", ""],
    ]
    table("Exec storm, 30 s", ["", "necroscope", "perf record -g -a", "ratio"], rows)


def _rss_now(pid: int) -> int:
    return int(Path(f"/proc/{pid}/statm").read_text().split()[1]) * os.sysconf("SC_PAGE_SIZE")


def rates(work: Path) -> None:
    """Higher rates stand for more cores: 4,656 Hz on two cores is as many samples as 96 cores at 97
    Hz give.
    """
    rows = []
    for hz in (97, 997, 4656):
        recording = work / f"rate-{hz}"
        with mixed(34):
            time.sleep(1)
            child = recorder(recording, "--hz", str(hz), "--budget", "100")
            time.sleep(6)
            before, started = child.cpu_s(), time.monotonic()
            time.sleep(22)
            share = (child.cpu_s() - before) / (time.monotonic() - started)
            cost = child.finish()
        info = Store.open(recording).info()
        seconds = (info.to_ns - info.from_ns) / 1e9
        samples = info.tables.get("samples", 0)
        row = [
            str(hz),
            f"{samples / seconds:,.0f}",
            f"{share:.2%}",
            str(info.lost_samples),
            f"{cost.peak_rss_bytes / 1e6:.0f}",
        ]
        rows.append([*row, f"{tree_bytes(recording) / max(1, samples):.1f}"])
    table(
        "Higher rates, two cores, mixed load",
        ["Hz", "samples/s", "of one core", "lost", "RSS, MB", "bytes a sample"],
        rows,
    )


def shares(work: Path) -> None:
    """Function by function, the recorder's samples and perf's of the same half minute."""
    recording, data, imported = work / "shares", work / "shares.data", work / "shares-imported"
    with mixed(40):
        time.sleep(1)
        ours = recorder(recording, "--hz", "997", "--budget", "100")
        time.sleep(4)
        theirs = perf(data, "-F", "997", "-k", "CLOCK_MONOTONIC", "--no-bpf-event")
        time.sleep(30)
        theirs.finish()
        ours.finish()
    command = [*NECROSCOPE, "import", str(data), "--dir", str(imported)]
    subprocess.run(command, check=True, stdout=subprocess.DEVNULL)
    table(
        "Shares of samples by innermost function",
        SHARES_HEAD,
        share_rows(recording, imported, data),
    )


def cores96(work: Path) -> None:
    """The memory of a node of 96 cores."""
    table(
        "96 cores' worth of samples and counters, two seals", MANY_CORES_HEAD, many_cores_rows(work)
    )


def tick(_: Path) -> None:
    """The cost of a tick by source; the kernel's own work of writing a large machine's files is not
    in the synthetic column.
    """
    head = ["source", "every", "CPU µs, this machine", "CPU µs, synthetic root of 96 cores"]
    table("One reading of each source", head, tick_rows())


def floor(work: Path) -> None:
    """What is left without stacks, inside the running recorder."""
    table("Without stacks, two cores, mixed load", FLOOR_HEAD, floor_rows(work))


def read(work: Path) -> None:
    """A minute of every table read back."""
    table("Reading a minute back", READING_HEAD, reading_rows(work))


def main() -> None:
    sections = {
        section.__name__: section
        for section in (steady, walks, floor, others, storm, rates, shares, cores96, tick, read)
    }
    chosen = sys.argv[1:] or list(sections)
    signal.signal(signal.SIGTERM, lambda *_: sys.exit(1))
    print(f"machine: {os.cpu_count()} cores, {os.uname().release}, Python {sys.version.split()[0]}")
    print(
        json.dumps(
            {
                "perf": subprocess.run(
                    ["perf", "--version"], capture_output=True, text=True
                ).stdout.strip()
            }
        )
    )
    with tempfile.TemporaryDirectory(prefix="necroscope-bench-") as work:
        for name in chosen:
            sections[name](Path(work))


if __name__ == "__main__":
    main()
