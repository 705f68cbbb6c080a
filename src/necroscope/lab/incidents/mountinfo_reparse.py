"""A service manager that reads the whole mount table at every mount, on a node with thousands of
mounts.

What it does: in a mount namespace of its own there are thousands of mounts, as on a node with many
containers and volumes. A container runtime mounts and unmounts one more, many times per second. A
service manager waits for changes of /proc/self/mountinfo, and at each one reads the whole file
again and looks for what is new, as systemd does. The kernel writes each line of it again: path,
options, device.

Seen in the wild: systemd #16728, #8703 and #37642, PR #10268: PID 1 and every `systemd --user` at
80 to 100 % while containers start.

What must be seen: one core in system mode in one process, in `show_mountinfo` below a read of
mountinfo; the table has thousands of lines. The culprit is the reader, the origin is who mounts;
fewer mounts or a newer service manager help, restarting units does not.
"""

import ctypes
import os
import select
import time
from pathlib import Path

from necroscope.lab.measured import Measurements
from necroscope.lab.scenario import KnownCulprit, KnownOrigin, Scenario, Truth, reached
from necroscope.lab.stage import Stage

# linux/mount.h and linux/sched.h
_MS_REC_PRIVATE = 0x4000 | 0x40000
_MNT_DETACH = 2
_CLONE_NEWNS = 0x20000


def mount_many(directory: str, names: list[str], count: int, pause_s: float) -> None:
    """In a namespace of its own, which goes with its last process and all mounts with it."""
    libc = ctypes.CDLL(None, use_errno=True)
    _succeeds(libc.unshare(_CLONE_NEWNS))
    _succeeds(libc.mount(b"none", b"/", None, _MS_REC_PRIVATE, None))
    _mount(libc, directory)
    for number in range(count):
        path = f"{directory}/{names[number % len(names)]}-{number:05d}"
        os.mkdir(path)
        _mount(libc, path)
    Path(directory, "ready").touch()
    last = f"{directory}/{names[0]}-last"
    os.mkdir(last)
    while not Path(directory, "go").exists():
        time.sleep(0.05)
    while True:
        _mount(libc, last)
        time.sleep(pause_s)
        _succeeds(libc.umount2(os.fsencode(last), _MNT_DETACH))
        time.sleep(pause_s)


def reparse(mounter: int, log: str) -> None:
    """Read the table of the mounter's namespace whenever it has changed."""
    with open(f"/proc/{mounter}/ns/mnt", "rb") as namespace:
        _succeeds(ctypes.CDLL(None, use_errno=True).setns(namespace.fileno(), _CLONE_NEWNS))
    table = os.open("/proc/self/mountinfo", os.O_RDONLY)
    poll = select.poll()
    poll.register(table, select.POLLERR | select.POLLPRI)
    known = 0
    report = os.open(log, os.O_WRONLY)
    while True:
        poll.poll()
        content = _read_all(table)
        known = max(known, content.count(b"\n"))
        os.pwrite(report, b"%d\n" % known, 0)


def _read_all(descriptor: int) -> bytes:
    os.lseek(descriptor, 0, os.SEEK_SET)
    pieces = []
    while piece := os.read(descriptor, 1 << 16):
        pieces.append(piece)
    return b"".join(pieces)


def _mount(libc: ctypes.CDLL, path: str) -> None:
    _succeeds(libc.mount(b"tmpfs", os.fsencode(path), b"tmpfs", 0, b"size=1m"))


def _succeeds(result: int) -> None:
    if result:
        raise OSError(ctypes.get_errno(), "cannot mount")


class MountinfoReparse(Scenario):
    name = "mountinfo-reparse"
    cause = "mountinfo-reparse"
    twin = "proc-net-scan"

    def prepare(self, stage: Stage) -> None:
        directory = stage.scratch / stage.invent("app")
        directory.mkdir()
        self.count = stage.random.randrange(3_000, 6_000)
        names = [stage.invent("app") for _ in range(8)]
        pause_s = stage.random.uniform(0.001, 0.004)
        self.mounter = stage.start(
            mount_many,
            str(directory),
            names,
            self.count,
            pause_s,
            comm=stage.invent("tool"),
            cpu=stage.other_cores,
        )
        self.inside = Path(f"/proc/{self.mounter.pid}/root{directory}")
        deadline = time.monotonic() + 30
        while not (self.inside / "ready").exists() and time.monotonic() < deadline:
            time.sleep(0.05)

    def provoke(self, stage: Stage) -> None:
        log = stage.scratch / "lines"
        log.touch()
        stage.watch(log)
        self.log = str(log)
        self.reader = stage.start(
            reparse,
            self.mounter.pid,
            self.log,
            comm=stage.invent("agent"),
            cpu=stage.core,
            nice=-10,
        )
        stage.watch_task(self.reader.pid)
        (self.inside / "go").touch()
        stage.hold(self.reader, self.mounter)

    def verify(self, stage: Stage, measured: Measurements) -> Truth:
        run_s, _ = measured.schedstat(self.reader.pid)
        impact = {
            "system_share": reached(
                "system share of the core", measured.shares(stage.core)["system"], at_least=0.6
            ),
            "mounts": reached(
                "lines of the mount table", measured.highest(self.log), at_least=self.count
            ),
            "reader_run_s": reached(
                "seconds that the reader ran", run_s, at_least=0.4 * stage.seconds
            ),
        }
        return Truth(
            impact,
            core=stage.core,
            mode="system",
            culprit=KnownCulprit(self.reader.comm, self.reader.pid),
            origin=KnownOrigin("process", self.mounter.comm, also=(self.reader.comm,)),
        )
