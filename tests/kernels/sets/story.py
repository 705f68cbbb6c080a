"""The incident that this project comes from, whole: a container that crashes and is re-created
leaks memory cgroups, cadvisor has the kernel walk them, the walk holds the core of a network poll,
the driver resets its device, and a job over that device dies.

systemd, Docker, cadvisor, the driver and all lines of the log are real. A week of restarts is made
up for at the start: each makes and leaves a cgroup as one start of the container does, without
starting Docker for it, until the walk takes as long as in the story. Then the recorder runs, and
nothing is done but to start the job again when it has died.
"""

import json
import os
import subprocess
import sys
import time
import uuid
from pathlib import Path
from typing import Any

from tests.kernels.recorder import Recorder
from tests.kernels.sets import wire
from tests.kernels.sets.looking import GuestRecording, check, say

CORE, RUNS = 1, 5
MEMORY_MB = 9216
AGENT, READER, JOB = "vendor-agent", "cadvisor", "train"
CAUSE = "zombie-memcg-walk"
MEMORY = Path("/sys/fs/cgroup/memory")
# What cadvisor's own library reads of every cgroup it knows (runc, libcontainer/cgroups/fs/memory.go).
READ = MEMORY / "memory.numa_stat"
# The watchdog looks every five seconds for a queue that has stood still for five.
HOLD_S = 10.5
# The device is away for as long as the walk, and then for the reset.
TIMEOUT_S = 12
_LOGS = Path(f"/var/log/{AGENT}")
_PROGRESS, _JOB_LOG = Path("/run/step"), Path(f"/var/log/{JOB}.log")
_FIRST, _LEAST_FREE_KB = 500, 250_000
_LONGEST_S, _EVERY_S = 420, 60
_DAEMON = {
    "bridge": "none",
    "iptables": False,
    "ip6tables": False,
    "storage-driver": "overlay2",
    "exec-opts": ["native.cgroupdriver=cgroupfs"],
}


def inside(out: Path) -> None:
    wire.own_core()
    wire.bring_up(CORE)
    subprocess.run(["insmod", "/job/walk.ko"], check=True)
    _start_docker()
    zombies, walk_s = _age()
    _write_units()
    sender = wire.start_sender()
    with Recorder(out / "recording", "--containers", "5s") as recorder:
        wire.systemctl("start", AGENT, JOB)
        recorder.wait_for_flushes(4)
        wire.systemctl("start", READER)
        runs = [_wait_for_death(recorder) for _ in range(RUNS)]
    sender.kill()
    truth = {"zombies": zombies, "walk_s": walk_s, "counts": _counts(), "runs": runs}
    (out / "truth.json").write_text(json.dumps(truth))


def _start_docker() -> None:
    """With one image: busybox, and nothing else."""
    Path("/etc/docker").mkdir(exist_ok=True)
    Path("/etc/docker/daemon.json").write_text(json.dumps(_DAEMON))
    # Debian starts it at boot, and without this file it fails for want of a firewall.
    wire.systemctl("reset-failed", "docker.service", "docker.socket")
    wire.systemctl("restart", "docker")
    _LOGS.mkdir()
    made = "tar -C / -c bin/busybox | docker import - vendor/agent"
    subprocess.run(made, shell=True, check=True)


def _age() -> tuple[int, float]:
    """Zombies until one read of cadvisor's takes long enough, and how long it takes then. It grows
    with their number; the shorter of two reads counts, because a busy host makes one seem longer.
    """
    zombies, walk_s, wanted = 0, 0.0, _FIRST
    while walk_s < HOLD_S:
        _leave(wanted - zombies)
        zombies, walk_s = wanted, min(_read_s(), _read_s())
        say(f"{zombies} zombies, {_free_kb()} kB free: a read takes {walk_s:.2f} s")
        wanted = min(zombies * 2, round(zombies * HOLD_S / walk_s * 1.05) + 1)
        if _free_kb() < _LEAST_FREE_KB * 2:
            raise SystemExit(f"memory for {zombies} zombies, whose walk takes {walk_s:.1f} s")
    return zombies, round(walk_s, 1)


def _leave(count: int) -> None:
    """What starts of the container leave, each: a removed cgroup, and a page of its log. To move a
    process takes the kernel longest, so it goes from each cgroup straight into the next.
    """
    before = None
    for _ in range(count):
        name = uuid.uuid4().hex * 2
        directory = MEMORY / "docker" / name
        directory.mkdir(parents=True)
        (directory / "cgroup.procs").write_text("0")
        (_LOGS / f"{name[:12]}.log").write_text("no cluster\n")
        if before is not None:
            before.rmdir()
        before = directory
    (MEMORY / "cgroup.procs").write_text("0")
    if before is not None:
        before.rmdir()


def _read_s() -> float:
    start_s = time.monotonic()
    READ.read_bytes()
    return time.monotonic() - start_s


def _free_kb() -> int:
    return next(
        int(line.split()[1])
        for line in Path("/proc/meminfo").read_text().splitlines()
        if line.startswith("MemAvailable")
    )


def _write_units() -> None:
    container = (
        f"docker run --name {AGENT} --network none -v {_LOGS}:/log vendor/agent"
        ' /bin/busybox sh -c "echo no cluster > /log/$$HOSTNAME.log; exit 1"'
    )
    wire.take_unit(
        AGENT,
        f"/usr/bin/{container}",
        extra=f"ExecStartPre=-/usr/bin/docker rm -f {AGENT}\nRestart=always\nRestartSec=5s\n",
    )
    wire.take_unit(
        READER,
        f"/usr/bin/cadvisor -docker_only -housekeeping_interval={_EVERY_S}s"
        " -allow_dynamic_housekeeping=false -global_housekeeping_interval=1h",
        cpu=CORE,
    )
    wire.take_unit(
        JOB,
        f"{sys.executable} -S /job/tests/kernels/story/ring.py 0 {TIMEOUT_S} {_PROGRESS}",
        cpu=0,
        extra=(
            "Environment=RANK=0 WORLD_SIZE=2 MASTER_ADDR=10.0.2.100 MASTER_PORT=29500\n"
            f"StandardOutput=append:{_JOB_LOG}\nStandardError=append:{_JOB_LOG}\n"
        ),
    )


def _wait_for_death(recorder: Recorder) -> dict[str, Any]:
    """Until the queue has timed out and the job has died; then it is started again."""
    before, from_ns, start_s = wire.timeouts(), time.time_ns(), time.monotonic()
    has_died = False
    while time.monotonic() - start_s < _LONGEST_S:
        # On a slow machine the walk goes on after the job has given up.
        has_died = has_died or not _is_running()
        if has_died and wire.timeouts() > before:
            break
        time.sleep(0.5)
    recorder.wait_for_flushes(3)
    found = {
        "from": from_ns,
        "to": time.time_ns(),
        "timeouts": wire.timeouts() - before,
        "words": _JOB_LOG.read_text().strip().splitlines()[-1],
    }
    say(f"{found}")
    wire.systemctl("start", JOB)
    return found


def _is_running() -> bool:
    asked = ["systemctl", "is-active", "--quiet", JOB]
    return subprocess.run(asked, check=False).returncode == 0


def _counts() -> dict[str, int]:
    """The two numbers that the original investigation compared in the end."""
    line = next(
        line
        for line in Path("/proc/cgroups").read_text().splitlines()
        if line.startswith("memory\t")
    )
    return {"tracked": int(line.split()[2]), "visible": sum(1 for _ in os.walk(MEMORY))}


def verify(out: Path) -> str:
    """Every death of the job has its incident, and each names the whole chain."""
    truth = json.loads((out / "truth.json").read_text())
    runs = truth["runs"]
    wanted = {
        "core": CORE,
        "cause": CAUSE,
        "reader": READER,
        "reader_unit": f"{READER}.service",
        "origin": f"{AGENT}.service",
        "device": wire.DEVICE,
        "job": ["machine", CAUSE, READER],
    }
    found = [named(out / "recording", run["from"], run["to"]) for run in runs]
    wrong = [{key: one.get(key) for key in wanted if one.get(key) != wanted[key]} for one in found]
    right = sum(not one for one in wrong)
    check(
        len(runs) == RUNS and all(run["timeouts"] for run in runs), f"the queue timed out: {runs}"
    )
    check(right == RUNS, f"{right} of {RUNS} whole; what is wrong in each: {wrong}")
    rows = [
        row
        for row in GuestRecording(out / "recording").rows("events")
        if row["kind"] == "nic_reset"
    ]
    check(len(rows) >= RUNS and all(row["by_kernel"] for row in rows), f"the driver's own: {rows}")
    return (
        f"{right} of {RUNS}: {READER} walked {truth['zombies']} zombies of {AGENT}.service,"
        f" {truth['walk_s']} s alone; {wire.DEVICE} reset by {wire.DRIVER}; the job died"
    )


def named(recording: Path, from_ns: int, to_ns: int) -> dict[str, Any]:
    """What the diagnosis names of one death: of the incident with the reset, and of the job. The
    whole recording is judged: who leaks shows over minutes.
    """
    from necroscope.analysis.engine import diagnose
    from necroscope.analysis.jobs.blame import find_story
    from necroscope.analysis.jobs.reading import Standing, newest_members, read_node
    from necroscope.analysis.jobs.runs import runs
    from necroscope.model.span import Span
    from necroscope.store.query import Store

    store = Store.open(recording)
    incidents = [
        one for one in diagnose(store).incidents if one.from_ns < to_ns and from_ns <= one.to_ns
    ]
    found: dict[str, Any] = {}
    for one in incidents:
        resets = [event for event in one.events if event.kind.startswith("nic_")]
        if resets:
            culprit, origin = one.verdict.culprit, one.verdict.origin
            found = {
                "core": one.core,
                "cause": one.verdict.cause,
                "reader": culprit and culprit.comm,
                "reader_unit": culprit and culprit.unit,
                "origin": origin and origin.name,
                "device": resets[0].device,
            }
    span = Span(from_ns, to_ns)
    standing = Standing(store, span)
    last_ns = min(to_ns, store.info().to_ns or to_ns)
    members = [standing.of(member, last_ns) for member in newest_members(store, span)]
    ended = [
        run
        for run in runs(members)
        if any(one.ended_ns is not None and span.contains(one.ended_ns) for one in run.members)
    ]
    for run in ended[:1]:
        story = find_story(run.job, run.members, [read_node(store, span, incidents)])
        cause = story.incident.cause if story.incident else None
        found["job"] = [story.blame, cause, (story.culprit or "").partition("[")[0]]
    return found


if __name__ == "__main__":
    inside(Path(sys.argv[1]))
