"""A node at its largest: 50,000 live processes, 100,000 cgroups, 448 cores whose incident begins in
one second, a disk whose fsync takes seconds. `scripts/bench scale [SECTION...]`; needs root.

Processes and cgroups are really made, and removed afterwards; `kernel.pid_max` is raised meanwhile.
The 448 cores are files of a synthetic root in a mount namespace of the recorder's own. The slow
disk is a library that the recorder loads before the C library.
"""

import itertools
import os
import shlex
import shutil
import signal
import subprocess
import sys
import tempfile
import threading
import time
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path

from loads import mixed
from measured_child import Cost, MeasuredChild
from necroscope.store.query import Store

sys.path.insert(0, str(Path(__file__).parents[1] / "tests"))
from synthetic_root import make_root, write_files

HEAD = [
    "node",
    "longest time between two ticks, s",
    "RSS, largest, MB",
    "rows lost",
    "gaps",
    "CPU of a core",
]
PROCESSES, CGROUPS, CPUS, FSYNC_S = 50_000, 100_000, 448, 3
SECONDS = 45
# By then it has started, and has seen everything once.
SETTLED_S = 5
CPU_LISTS = [f"sys/devices/system/cpu/{name}" for name in ("online", "possible")]
PID_MAX = Path("/proc/sys/kernel/pid_max")
# A kernel has 65,535 memory cgroups at most: with version 1 of cgroups they are spread.
CGROUP_ROOTS = [Path("/sys/fs/cgroup", name) for name in ("memory", "cpu", "unified", ".")]
RECORD = ["record", "--free-floor", "0", "--verdicts", "off", "--json", "--dir"]
# Sleeps with next to nothing mapped; one that is alive when its parent ends, ends.
SLEEPERS = r"""
#include <signal.h>
#include <stdlib.h>
#include <sys/prctl.h>
#include <unistd.h>
int main(int count, char **words) {
  for (int number = atoi(words[count - 1]); number > 0; number--) {
    pid_t child = fork();
    if (child < 0) return 1;
    if (child == 0) {
      prctl(PR_SET_PDEATHSIG, SIGKILL);
      for (;;) pause();
    }
  }
  if (write(1, ".", 1) != 1) return 1;
  for (;;) pause();
}
"""
SLOW_SYNC = r"""
#define _GNU_SOURCE
#include <dlfcn.h>
#include <unistd.h>
#define SLOW(name) int name(int file) { \
  int (*real)(int) = (int (*)(int))dlsym(RTLD_NEXT, #name); \
  sleep(SECONDS); return real(file); }
SLOW(fsync)
SLOW(fdatasync)
"""


@dataclass(frozen=True, slots=True)
class Measurements:
    cost: Cost
    recording: Path

    def row(self, name: str) -> list[str]:
        store = Store.open(self.recording)
        times = sorted(set(store.rows("cores", 0, 1 << 62).column("time").to_pylist()))
        steps = [(b - a) / 1e9 for a, b in itertools.pairwise(times[SETTLED_S:])]
        info = store.info()
        length_s = (times[-1] - times[0]) / 1e9
        causes = sorted({gap.cause.split(":")[0] for gap in info.gaps if gap.to_ns > gap.from_ns})
        return [
            name,
            f"{max(steps):.2f}",
            f"{self.cost.peak_rss_bytes / 1e6:.0f}",
            str(sum(gap.lost or 0 for gap in info.gaps if gap.table in ("*", "samples"))),
            "; ".join(causes) or "none",
            f"{self.cost.cpu_s / length_s:.1%}",
        ]


def record(work: Path, name: str, prefix: list[str], environment: dict[str, str]) -> Measurements:
    recording = work / name
    command = [*prefix, sys.executable, "-m", "necroscope", *RECORD, str(recording)]
    child = MeasuredChild([*command, "--for", f"{SECONDS}s"], work / f"{name}.log", environment)
    return Measurements(child.finish(None, timeout_s=SECONDS + 120), recording)


def processes(work: Path) -> list[str]:
    with living_processes(work, PROCESSES), mixed(SECONDS + 4):
        return record(work, "processes", [], {}).row(f"{PROCESSES:,} live processes")


def cgroups(work: Path) -> list[str]:
    with living_cgroups(CGROUPS), mixed(SECONDS + 4):
        return record(work, "cgroups", [], {}).row(f"{CGROUPS:,} cgroups, in a few directories")


def cores(work: Path) -> list[str]:
    """All are idle, then all are in the kernel from one second to the next."""
    root = work / "root"
    with incident_on_all_cores(root):
        same = ["proc/softirqs", "proc/interrupts", *CPU_LISTS]
        shown = {name: root / name for name in same} | {"proc/stat": root / "stat"}
        binds = [f"mount --bind {shlex.quote(str(file))} /{name}" for name, file in shown.items()]
        script = " && ".join([*binds, 'exec "$@"'])
        unshare = ["unshare", "--mount", "--propagation", "private", "sh", "-c", script, "sh"]
        measured = record(work, "cores", unshare, {})
    events = Store.open(measured.recording).rows("events", 0, 1 << 62).column("kind").to_pylist()
    began = events.count("core_saturated")
    return measured.row(f"{CPUS} cores, of which {began} are saturated within seconds")


def slow_disk(work: Path) -> list[str]:
    library = compiled(work, SLOW_SYNC, "-shared", "-fPIC", f"-DSECONDS={FSYNC_S}", "-ldl")
    with mixed(SECONDS + 4):
        measured = record(work, "slow-disk", [], {"LD_PRELOAD": str(library)})
    return measured.row(f"a disk whose fsync takes {FSYNC_S} s")


SECTIONS = {"processes": processes, "cgroups": cgroups, "cores": cores, "slow-disk": slow_disk}


@contextmanager
def living_processes(work: Path, count: int) -> Iterator[None]:
    program = compiled(work, SLEEPERS, "-static")
    before = PID_MAX.read_text()
    PID_MAX.write_text(str(max(int(before), 4 * count)))
    started = subprocess.Popen([program, str(count)], stdout=subprocess.PIPE)
    assert started.stdout is not None
    try:
        if started.stdout.read(1) != b".":
            raise SystemExit(f"error: {count} processes cannot be made here")
        yield
    finally:
        started.kill()
        started.wait()
        PID_MAX.write_text(before)


@contextmanager
def living_cgroups(count: int) -> Iterator[None]:
    roots = [place for place in CGROUP_ROOTS if (place / "cgroup.procs").exists()]
    tops = [root / f"necroscope-scale-{os.getpid()}" for root in roots]
    try:
        for place, top in enumerate(tops):
            top.mkdir()
            for number in range(count * place // len(tops), count * (place + 1) // len(tops)):
                os.mkdir(f"{top}/job-{number}")
        yield
    finally:
        for top in filter(Path.exists, tops):
            for entry in os.listdir(top):
                if entry.startswith("job-"):
                    os.rmdir(f"{top}/{entry}")
            top.rmdir()


@contextmanager
def incident_on_all_cores(root: Path) -> Iterator[None]:
    make_root(root, CPUS)
    everyone = f"0-{CPUS - 1}\n"
    write_files(root, dict.fromkeys(CPU_LISTS, everyone))
    done = threading.Event()

    def move() -> None:
        started = time.monotonic()
        while not done.wait(0.5):
            write_files(root, {"stat": _stat(time.monotonic() - started)})

    write_files(root, {"stat": _stat(0)})
    mover = threading.Thread(target=move)
    mover.start()
    try:
        yield
    finally:
        done.set()
        mover.join()


def _stat(elapsed_s: float) -> str:
    """Of /proc/stat in hundredths: idle for half of the time, then in the kernel."""
    half_s = SECONDS / 2
    idle, system = round(100 * min(elapsed_s, half_s)), round(100 * max(0.0, elapsed_s - half_s))
    figures = f"0 0 {system} {1000 + idle} 0 0 0 0 0 0"
    lines = [f"cpu  {figures}", *(f"cpu{cpu} {figures}" for cpu in range(CPUS))]
    return "\n".join([*lines, "intr 0", "ctxt 0", "btime 1", "processes 1", "softirq 0", ""])


def compiled(work: Path, source: str, *words: str) -> Path:
    made = work / f"program-{abs(hash(source))}"
    subprocess.run(
        ["gcc", "-O1", "-x", "c", "-", "-o", str(made), *words], input=source.encode(), check=True
    )
    return made


def main() -> None:
    signal.signal(signal.SIGTERM, lambda *_: sys.exit(1))  # what was made is removed
    chosen = sys.argv[1:] or list(SECTIONS)
    print("| " + " | ".join(HEAD) + " |")
    print("| " + " | ".join(["---"] * len(HEAD)) + " |")
    for name in chosen:
        work = Path(tempfile.mkdtemp(prefix="necroscope-scale-"))
        try:
            print("| " + " | ".join(SECTIONS[name](work)) + " |", flush=True)
        finally:
            shutil.rmtree(work)


if __name__ == "__main__":
    main()
