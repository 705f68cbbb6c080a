"""A unit that crashes at every start leaks memory cgroups under the guest's own systemd, and an
agent has the kernel walk them.

Each start of the unit makes cgroups below its own, as a container agent does, and leaves a small
file behind for each in memory: the file's page keeps the dead cgroup alive. The agent then asks for
what walks them all. What each way of asking costs on this kernel is measured, and whether a network
poll on that core had to wait for it.
"""

import contextlib
import json
import os
import signal
import subprocess
import sys
import time
from collections.abc import Callable
from functools import partial
from pathlib import Path

from tests.kernels.recorder import Recorder
from tests.kernels.sets import wire
from tests.kernels.sets.looking import check, say

CORE, LEAK, AGENT = 1, "metrics-shipper", "stat-agent"
# Only what leaked is reclaimed: in the slice of the system's services their programs would go, too,
# and come back slowly.
SLICE = "vendor.slice"
WANTED = 4000
_LEAK_A_START = 250
_LEAK_S = 120
_PATIENCE_S = 15
_V1, _V2 = Path("/sys/fs/cgroup/memory"), Path("/sys/fs/cgroup")
_FILES = Path("/run/leaked")
# What has the kernel visit every cgroup below: with cgroup v1, and with v2.
_ASKS = {"memory.force_empty": "1", "memory.reclaim": "1G"}


def is_v1() -> bool:
    return (_V1 / "memory.stat").exists()


def memory_root() -> Path:
    return _V1 if is_v1() else _V2


def inside(out: Path) -> None:
    wire.own_core()
    wire.bring_up(CORE)
    _FILES.mkdir()
    python = (
        f'{sys.executable} -S -c \'import sys; sys.path.append("/job"); from tests.kernels.sets'
        " import zombies; zombies.%s'"
    )
    extra = f"Slice={SLICE}\nRestart=always\nRestartSec=100ms\nDelegate=yes\nMemoryAccounting=yes\n"
    wire.take_unit(LEAK, python % "crash()", cpu=0, extra=extra)
    wire.take_unit(AGENT, python % "walk()", cpu=CORE)
    sender = wire.start_sender()
    with Recorder(out / "recording") as recorder:
        wire.systemctl("start", LEAK)
        start_s = time.monotonic()
        while _zombies() < WANTED and time.monotonic() - start_s < _LEAK_S:
            time.sleep(1)
        leaked_s, zombies = time.monotonic() - start_s, _zombies()
        say(f"{zombies} zombies in {leaked_s:.0f} s")
        subprocess.run(["systemctl", "start", "--wait", AGENT], timeout=200, check=False)
        recorder.wait_for_flushes(2)
    sender.kill()
    truth = {
        "zombies": zombies,
        "leaked_s": round(leaked_s, 1),
        "costs_ms": _costs(),
        "timeouts": wire.timeouts(),
    }
    (out / "truth.json").write_text(json.dumps(truth))


def crash() -> None:
    """One start of the unit."""
    mark = ":memory:" if is_v1() else "0::"
    own = next(
        line for line in Path("/proc/self/cgroup").read_text().splitlines() if mark in line
    ).split(":", 2)[2]
    unit, pid = memory_root() / own.lstrip("/"), str(os.getpid())
    home = unit
    if not is_v1():
        # A cgroup of v2 that hands controllers on holds no process itself.
        home = unit / "main"
        home.mkdir()
        (home / "cgroup.procs").write_text(pid)
        (unit / "cgroup.subtree_control").write_text("+memory")
    for number in range(_LEAK_A_START):
        directory = unit / f"task-{number}"
        directory.mkdir()
        (directory / "cgroup.procs").write_text(pid)
        (_FILES / f"{pid}-{number}").write_text("no backend")
        (home / "cgroup.procs").write_text(pid)
        directory.rmdir()
    raise SystemExit(3)


def walk() -> None:
    """An agent that wants a slice's memory back."""
    Path("/proc/self/comm").write_text(AGENT)
    files = ((memory_root() / SLICE / name, value) for name, value in _ASKS.items())
    file, value = next((file, value) for file, value in files if file.exists())
    # As long as the unit goes on there is always something to reclaim, and the kernel would go on
    # forever.
    signal.signal(signal.SIGALRM, _give_up)
    signal.setitimer(signal.ITIMER_REAL, _PATIENCE_S)
    with contextlib.suppress(OSError):
        file.write_text(value)


def _give_up(*_: object) -> None:
    raise TimeoutError


def _zombies() -> int:
    if not is_v1():
        found = dict(line.split() for line in (_V2 / "cgroup.stat").read_text().splitlines())
        return int(found["nr_dying_descendants"])
    tracked = next(
        line
        for line in Path("/proc/cgroups").read_text().splitlines()
        if line.startswith("memory\t")
    ).split()[2]
    return int(tracked) - sum(1 for _ in os.walk(_V1))


def _costs() -> dict[str, float]:
    """Milliseconds that each way of asking takes, with the zombies there."""
    return {
        "read memory.stat of the root": _took_ms((memory_root() / "memory.stat").read_bytes),
        "read memory.numa_stat of the root": _took_ms(
            (memory_root() / "memory.numa_stat").read_bytes
        ),
        "write 2 to drop_caches": _took_ms(
            partial(Path("/proc/sys/vm/drop_caches").write_text, "2")
        ),
    }


def _took_ms(ask: Callable[[], object]) -> float:
    start_s = time.monotonic()
    ask()
    return round((time.monotonic() - start_s) * 1000, 2)


def verify(out: Path) -> str:
    from necroscope.analysis.engine import diagnose
    from necroscope.store.query import Store

    truth = json.loads((out / "truth.json").read_text())
    check(truth["zombies"] >= 1000, f"the unit leaked: {truth}")
    check(truth["timeouts"] == 0, f"this walk yields, and no queue times out: {truth}")
    found = [
        one
        for one in diagnose(Store.open(out / "recording")).incidents
        if one.verdict.cause == "zombie-memcg-walk"
    ]
    check(len(found) == 1, "the walk is one incident")
    verdict = found[0].verdict
    result = (
        found[0].core,
        verdict.culprit and verdict.culprit.comm,
        verdict.origin and verdict.origin.name,
    )
    check(result == (CORE, AGENT, f"{LEAK}.service"), f"core, culprit and origin: {result}")
    costs = ", ".join(f"{what}: {ms} ms" for what, ms in truth["costs_ms"].items())
    return (
        f"{truth['zombies']} zombies of {LEAK}.service in {truth['leaked_s']:.0f} s; {costs}; no"
        " reset"
    )


if __name__ == "__main__":
    inside(Path(sys.argv[1]))
