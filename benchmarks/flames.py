"""Captures to flame graphs beside perf script, stackcollapse and FlameScope in the same run:
`scripts/bench flames [words]`.

Two captures of two busy cores are made by perf (997 Hz, 90 s) unless `--capture FILE` gives one:
many programs with deep stacks, and a load of short processes, whose mappings outweigh their samples
(`--short FILE`). FlameScope is on no package index: with `--flamescope DIR`, a checkout of
https://github.com/Netflix/flamescope, its own parsers run, without its web server; else perf script
and a minimal stackcollapse stand for it. `--recordings DIR` keeps the generated recordings of the
store's questions. Every command is run in turns with its peers; the median of the wall times
counts, process start included.
"""

import argparse
import json
import os
import re
import shutil
import subprocess
import sys
import tempfile
import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from datetime import datetime
from pathlib import Path

import flames_store
from necroscope.model.units import NS_PER_S, format_moment
from necroscope.store.flame import read_flame
from necroscope.store.query import Store
from necroscope.views.flame.heading import Heading, HeadingWindow
from necroscope.views.flame.svg import flame_svg
from repeated_capture import repeat_capture
from timed_commands import MIB, Runs, in_turns, peak_bytes, table
from varied_capture import SHORT_LOAD, make_capture

NECROSCOPE = [sys.executable, "-m", "necroscope"]
ENOUGH_SAMPLES = 150_000
# What stackcollapse-perf.pl does at its least: comm and functions of each sample, counted.
STACKCOLLAPSE = r"""
while (<>) {
  if (/^\t\s*[0-9a-f]+ (.+) \(.*\)$/) { my $f = $1; $f =~ s/\+0x[0-9a-f]+$//; unshift @s, $f }
  elsif (/^\s*$/) { $n{join ';', $comm, @s}++ if defined $comm; undef $comm; @s = () }
  elsif (/^\s*(.+?)\s+\d+(?:\/\d+)?\s/) { $comm = $1 }
}
print "$_ $n{$_}\n" for sort keys %n;
"""
# Its parsers as they are; what they take from Flask, python-magic and cachetools is an error page,
# a MIME type and a cache.
FLAMESCOPE = r"""
import sys, types
directory, profile, start, end, steps = sys.argv[1], sys.argv[2], float(sys.argv[3]), float(sys.argv[4]), sys.argv[5]
def module(name, **content):
    sys.modules[name] = types.ModuleType(name)
    sys.modules[name].__dict__.update(content)
    return sys.modules[name]
def abort(code): raise SystemExit(code)
module("flask", abort=abort)
module("magic", from_file=lambda path, mime: "text/plain")
module("cachetools", cached=lambda cache: lambda function: function, LRUCache=lambda maxsize: None)
app = module("app", __path__=[directory + "/app"])
app.config = module("app.config", PROFILE_DIR="/")
from app.perf.heatmap import perf_read_offsets
from app.perf.flame_graph import perf_generate_flame_graph
import json
if "heatmap" in steps: perf_read_offsets(profile)
json.dumps(perf_generate_flame_graph(profile, start, end))
"""


@dataclass(frozen=True, slots=True)
class CaptureUnderTest:
    """A perf.data, the recording of all of it, and five seconds in its middle on perf's clock and
    as UTC.
    """

    path: Path
    recording: Path
    samples: int
    first_s: float
    window_s: tuple[float, float]
    window_ns: tuple[int, int]

    @property
    def size_bytes(self) -> int:
        return self.path.stat().st_size


def look_at(path: Path, work: Path) -> CaptureUnderTest:
    header = subprocess.run(
        ["perf", "script", "--header-only", "-i", str(path)],
        capture_output=True,
        text=True,
        errors="replace",
    )
    first_s, last_s = (
        float(re.search(rf"time of {which} sample : ([\d.]+)", header.stdout)[1])
        for which in ("first", "last")
    )
    recording = work / f"recording-{path.stem}"
    done = subprocess.run(
        [*NECROSCOPE, "import", str(path), "--dir", str(recording), "--json"],
        capture_output=True,
        check=True,
    )
    report = json.loads(done.stdout)
    samples = report["rows"]["samples"] + report["idle_samples"]
    offset_s = datetime.fromisoformat(report["to"]).timestamp() - last_s
    start_s = (first_s + last_s) // 2
    window_ns = tuple(
        round((moment + offset_s) * 1000) * (NS_PER_S // 1000) for moment in (start_s, start_s + 5)
    )
    return CaptureUnderTest(path, recording, samples, first_s, (start_s, start_s + 5), window_ns)


def fresh(directory: Path) -> str:
    shutil.rmtree(directory, ignore_errors=True)
    return str(directory)


def imports(capture: CaptureUnderTest, work: Path, rounds: int, kind: str) -> None:
    text = work / "script.txt"
    commands: dict[str, Callable[[], list[str] | str]] = {
        "`perf script` to text": lambda: f"perf script -i {capture.path} > {text}",
        "`necroscope import`": lambda: [
            *NECROSCOPE,
            "import",
            str(capture.path),
            "--dir",
            fresh(work / "imported"),
        ],
    }
    found = in_turns(commands, rounds)
    peaks = {name: peak_bytes(make()) for name, make in commands.items()}
    theirs, ours = found.values()
    held = sum(file.stat().st_size for file in (work / "imported").rglob("*") if file.is_file())
    sizes = dict(zip(found, (text.stat().st_size, held), strict=True))
    rows = [
        [
            name,
            f"{runs.median_s:.2f}",
            runs.spread,
            f"{peaks[name] / MIB:.0f} MiB",
            f"{sizes[name] / MIB:.1f} MiB",
        ]
        for name, runs in found.items()
    ]
    title = (
        f"Import, {kind}: perf.data of {capture.samples:,} samples,"
        f" {capture.size_bytes / MIB:.1f} MiB"
    )
    table(title, ["command", "wall s", "min-max", "peak of all processes", "writes"], rows)
    memory = peaks["`necroscope import`"] / capture.size_bytes
    print(
        f"\nImport {theirs.median_s / ours.median_s:.1f}x faster; its peak is {memory:.1f}x the"
        " capture."
    )
    print(f"\nLoad: {os.getloadavg()[0]:.1f}")


def large_import(capture: CaptureUnderTest, work: Path) -> None:
    """What files up to 2 GiB need, the capture again and again; and the flame graph of 5 s in the
    middle of the largest.
    """
    large, imported = work / "large.data", work / "imported"
    rows = []
    for size_bytes in (80 * MIB, 256 * MIB, 2048 * MIB):
        repeat_capture(capture.path, large, -(-size_bytes // capture.size_bytes))
        rows.append(
            _large_row(
                "import", large, [*NECROSCOPE, "import", str(large), "--dir", fresh(imported)]
            )
        )
    info = Store.open(imported).info()
    middle = format_moment((info.from_ns + info.to_ns) // 2)
    flame = [
        *NECROSCOPE,
        "flame",
        str(large),
        "--at",
        middle,
        "--around",
        "5s",
        "-o",
        str(work / "middle.svg"),
    ]
    rows.append(_large_row("flame graph of 5 s", large, flame))
    large.unlink()
    table(
        "Large files",
        ["command", "perf.data", "wall s", "peak of all processes", "x the file"],
        rows,
    )
    print(f"\nLoad: {os.getloadavg()[0]:.1f}")


def _large_row(name: str, capture: Path, command: list[str]) -> list[str]:
    started = time.perf_counter()
    peak = peak_bytes(command)
    wall_s, held = time.perf_counter() - started, capture.stat().st_size
    return [
        name,
        f"{held / MIB:,.0f} MiB",
        f"{wall_s:.0f}",
        f"{peak / MIB:.0f} MiB",
        f"{peak / held:.2f}",
    ]


def first_graph(
    capture: CaptureUnderTest, work: Path, rounds: int, flamescope: Path | None
) -> None:
    """From perf.data to a flame graph of 5 s."""
    collapse, text = work / "stackcollapse.pl", work / "script.txt"
    collapse.write_text(STACKCOLLAPSE)
    start, end = (format_moment(time_ns) for time_ns in capture.window_ns)
    clock = ",".join(f"{moment:.6f}" for moment in capture.window_s)
    window = ["--from", start, "--to", end]
    ours = [*NECROSCOPE, "flame", str(capture.path), *window, "-o", str(work / "five.svg")]
    commands: dict[str, Callable[[], list[str] | str]] = {
        "`necroscope flame FILE --from --to -o x.svg`": lambda: ours,
        "`perf script --time` + stackcollapse": lambda: (
            f"perf script -i {capture.path} --time {clock} | perl {collapse}"
        ),
        "`perf script` + stackcollapse": lambda: (
            f"perf script -i {capture.path} > {text} && perl {collapse} {text}"
        ),
    }
    if flamescope is not None:
        commands |= flamescope_commands(capture, work, text, flamescope)
    found = in_turns(commands, rounds)
    ours_s = next(iter(found.values())).median_s
    rows = [
        [
            name,
            f"{runs.median_s:.2f}",
            runs.spread,
            f"{runs.peak_bytes / MIB:.0f} MiB",
            f"{runs.median_s / ours_s:.1f}",
        ]
        for name, runs in found.items()
    ]
    table(
        "perf.data to the first 5 s flame graph",
        ["command", "wall s", "min-max", "peak RSS", "x ours"],
        rows,
    )
    if flamescope is None:
        print(
            "\nFlameScope is on no package index and was not given: perf script and stackcollapse"
            " stand for it."
        )
    print(f"\nLoad: {os.getloadavg()[0]:.1f}")


def flamescope_commands(
    capture: CaptureUnderTest, work: Path, text: Path, flamescope: Path
) -> dict[str, Callable[[], str]]:
    program = work / "flamescope.py"
    program.write_text(FLAMESCOPE)
    offsets = [f"{moment - capture.first_s // 1:.0f}" for moment in capture.window_s]
    words = [sys.executable, str(program), str(flamescope), str(text), *offsets]
    return {
        f"`perf script` + FlameScope's {name}": lambda steps=steps: (
            f"perf script -i {capture.path} > {text} && {' '.join([*words, steps])}"
        )
        for name, steps in (("flame graph", "flame"), ("heat map, flame graph", "heatmap+flame"))
    }


def whole_capture(capture: CaptureUnderTest, work: Path, rounds: int) -> None:
    collapse, picture = work / "stackcollapse.pl", str(work / "whole.svg")
    collapse.write_text(STACKCOLLAPSE)
    found = in_turns(
        {
            "`necroscope flame D -o x.svg`, imported before": lambda: [
                *NECROSCOPE,
                "flame",
                str(capture.recording),
                "-o",
                picture,
            ],
            "`necroscope flame FILE -o x.svg`": lambda: [
                *NECROSCOPE,
                "flame",
                str(capture.path),
                "-o",
                picture,
            ],
            "`perf script` + stackcollapse": lambda: (
                f"perf script -i {capture.path} | perl {collapse}"
            ),
        },
        rounds,
    )
    rows = [[name, f"{runs.median_s:.2f}", runs.spread] for name, runs in found.items()]
    in_process = Runs()
    for _ in range(rounds + 1):
        started = time.perf_counter()
        tree = read_flame(Store.open(capture.recording), 0, 1 << 62)
        flame_svg(
            tree, Heading("whole", "node", HeadingWindow(tree.from_ns, tree.to_ns, tree.samples))
        )
        in_process.wall_s.append(time.perf_counter() - started)
    rows.insert(
        0, ["the same in process, query and SVG", f"{in_process.median_s:.2f}", in_process.spread]
    )
    table(
        f"Flame graph of the whole capture, {capture.samples:,} samples",
        ["command", "wall s", "min-max"],
        rows,
    )
    print(f"\nLoad: {os.getloadavg()[0]:.1f}")


def store_questions(directory: Path) -> None:
    found = flames_store.measure(
        [flames_store.recording_of(directory, hours) for hours in flames_store.HOURS]
    )
    rows = [
        [name, f"{short:.1f}", f"{long:.1f}", f"{long / short:.2f}"]
        for name, (short, long) in found.items()
    ]
    head = ["question", *(f"{hours} h, ms" for hours in flames_store.HOURS), "ratio"]
    table("Questions to a generated recording of 96 cores at 97 Hz, in process", head, rows)
    print(f"\nLoad: {os.getloadavg()[0]:.1f}")


@contextmanager
def kept_or_temporary(directory: Path | None) -> Iterator[Path]:
    if directory is not None:
        directory.mkdir(parents=True, exist_ok=True)
        yield directory
        return
    with tempfile.TemporaryDirectory(prefix="necroscope-bench-") as temporary:
        yield Path(temporary)


def words() -> argparse.Namespace:
    parser = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    parser.add_argument(
        "sections", nargs="*", help="import, large, first, whole, store; all but large unless told"
    )
    parser.add_argument("--capture", type=Path, help="a perf.data of at least 150,000 samples")
    parser.add_argument("--short", type=Path, help="another one, of a load of short processes")
    parser.add_argument(
        "--seconds", type=int, default=90, help="length of the capture that is made"
    )
    parser.add_argument("--rounds", type=int, default=5)
    parser.add_argument("--flamescope", type=Path, help="a checkout of FlameScope")
    parser.add_argument("--recordings", type=Path, help="directory of the generated recordings")
    return parser.parse_args()


def short_capture(given: argparse.Namespace, work: Path) -> CaptureUnderTest:
    path = given.short or work / "short.data"
    if given.short is None:
        make_capture(path, given.seconds, SHORT_LOAD)
    return look_at(path, work)


def main() -> None:
    given = words()
    wanted = given.sections or ["import", "first", "whole", "store"]
    with kept_or_temporary(None) as work:
        if set(wanted) & {"import", "large", "first", "whole"}:
            path = given.capture or work / "perf.data"
            if given.capture is None:
                make_capture(path, given.seconds)
            capture = look_at(path, work)
            if capture.samples < ENOUGH_SAMPLES:
                print(
                    f"note: {capture.samples} samples are fewer than {ENOUGH_SAMPLES}",
                    file=sys.stderr,
                )
            if "import" in wanted:
                imports(capture, work, given.rounds, "many programs")
                imports(short_capture(given, work), work, given.rounds, "short processes")
            if "large" in wanted:
                large_import(capture, work)
            if "first" in wanted:
                first_graph(capture, work, given.rounds, given.flamescope)
            if "whole" in wanted:
                whole_capture(capture, work, given.rounds)
        if "store" in wanted:
            with kept_or_temporary(given.recordings) as directory:
                store_questions(directory)


if __name__ == "__main__":
    main()
