"""The recorder's memory on a node of 96 cores: section cores96 of `scripts/bench recorder`, or by
itself; needs root.

Two cores sampled at 4,656 Hz give as many samples per second as 96 at 97 Hz. In a mount namespace of
its own the recorder sees the files of a synthetic root of 96 cores in place of this machine's,
whose counters move each second; processes and symbols are real.
"""

import shlex
import shutil
import sys
import tempfile
import threading
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

from loads import mixed
from measured_child import Cost, MeasuredChild
from necroscope.store.query import Store

sys.path.insert(0, str(Path(__file__).parents[1] / "tests"))
from synthetic_root import make_root, write_files

HEAD = ["96 cores' worth", "measured", "bar"]
CPUS = 96
# Two rings for each core (sources/perf/rings.py); before Linux 6.15 the kernel counts them as the
# process's own.
_RINGS_MB = CPUS * (256 + 128) * 1024 / 1e6
_ONLINE = "sys/devices/system/cpu/online"
_POSSIBLE = "sys/devices/system/cpu/possible"
_SHOWN = ("proc/stat", "proc/softirqs", "proc/interrupts", _POSSIBLE)
# By then the rings are open, of a size for the few cores that there are; 96 would be smaller, for a
# fiftieth of the samples each.
_ALL_ONLINE_STEP = 8
_RECORD = [
    "record",
    "--hz",
    "4656",
    "--budget",
    "100",
    "--free-floor",
    "0",
    "--verdicts",
    "off",
    "--segment",
    "60s",
    "--json",
    "--dir",
]


def many_cores_rows(work: Path, seconds: int = 130) -> list[list[str]]:
    """Rows for a table; long enough for two seals while it records."""
    recording = work / "many-cores"
    with _moving_root(work / "root") as root, mixed(seconds + 4):
        cost = _record(root, recording, seconds)
    info = Store.open(recording).info()
    length_s = ((info.to_ns or 0) - (info.from_ns or 0)) / 1e9
    cores_per_s = info.tables.get("cores", 0) / length_s
    own_mb, tree_mb = cost.peak_rss_bytes / 1e6, cost.tree_rss_bytes / 1e6
    return [
        [
            "samples/s; rows of `cores`/s",
            f"{info.tables.get('samples', 0) / length_s:,.0f}; {cores_per_s:.0f}",
            "",
        ],
        [
            "RSS of the recorder, largest, at the end, MB",
            f"{own_mb:.0f}, {cost.last_rss_bytes / 1e6:.0f}",
            "150",
        ],
        ["RSS with its children at one moment, MB", f"{tree_mb:.0f}", ""],
        [f"the same and the rings of {CPUS} cores, MB", f"{tree_mb + _RINGS_MB:.0f}", "150"],
        ["lost samples", str(info.lost_samples), "0"],
        ["CPU of a core", f"{cost.cpu_s / length_s:.1%}", ""],
    ]


def _record(root: Path, recording: Path, seconds: int) -> Cost:
    shutil.rmtree(recording, ignore_errors=True)
    shown = {name: root / name for name in _SHOWN} | {_ONLINE: root / "online"}
    binds = [f"mount --bind {shlex.quote(str(file))} /{name}" for name, file in shown.items()]
    command = [sys.executable, "-m", "necroscope", *_RECORD, str(recording), "--for", f"{seconds}s"]
    script = " && ".join([*binds, f"exec {shlex.join(command)}"])
    child = MeasuredChild(
        ["unshare", "--mount", "--propagation", "private", "sh", "-c", script],
        recording.with_suffix(".log"),
    )
    return child.finish(None, timeout_s=seconds + 60)


@contextmanager
def _moving_root(path: Path) -> Iterator[Path]:
    """A synthetic root whose counters move every second."""
    make_root(path, CPUS)
    everyone = f"0-{CPUS - 1}\n"
    write_files(path, {_POSSIBLE: everyone, "online": Path("/", _ONLINE).read_text()})
    done = threading.Event()

    def move() -> None:
        step = 0
        while not done.wait(1):
            step += 1
            make_root(path, CPUS, step)
            if step == _ALL_ONLINE_STEP:
                write_files(path, {"online": everyone})

    mover = threading.Thread(target=move)
    mover.start()
    try:
        yield path
    finally:
        done.set()
        mover.join()


def main() -> None:
    with tempfile.TemporaryDirectory(prefix="necroscope-many-cores-") as work:
        for row in (
            HEAD,
            ["---"] * len(HEAD),
            *many_cores_rows(Path(work), *map(int, sys.argv[1:])),
        ):
            print("| " + " | ".join(row) + " |")


if __name__ == "__main__":
    main()
