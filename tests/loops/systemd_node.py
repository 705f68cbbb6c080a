"""A real systemd as PID 1 of namespaces of its own, over a copy-on-write view of this machine's
files, with its units in a cgroup below ours.

What it could change of the machine is read-only to it (/proc/sys, /proc/irq, /sys), it has no
network but loopback, and only the units of `loops.target` and of its engine start. `close` ends it and removes its
cgroups and mounts.
"""

import os
import shutil
import signal
import subprocess
import time
from collections.abc import Callable
from pathlib import Path
from typing import Any

from tests.loops.engines import Engine

CGROUP = "necroscope-loops"
_UNITS = (
    *("dbus.socket", "dbus.service"),
    *("systemd-journald.service", "systemd-journald.socket"),
)
_ALONE = "[Unit]\nDefaultDependencies=no\n"
_LIFE_S = 3600
# systemd makes the hierarchies that it lacks: those that are there are bound one by one into a file
# system that it may not write to.
_BOOT = """
set -e
mount --make-rprivate /
mount -t proc proc $R/proc
for d in sys irq; do mount --bind $R/proc/$d $R/proc/$d; mount -o remount,bind,ro $R/proc/$d; done
mount -t sysfs -o ro sysfs $R/sys
mount -t tmpfs -o mode=755 tmpfs $R/sys/fs/cgroup
for h in /sys/fs/cgroup/*/; do
  mkdir $R/sys/fs/cgroup/$(basename $h); mount --bind $h $R/sys/fs/cgroup/$(basename $h)
done
mount -o remount,ro $R/sys/fs/cgroup
mount -t tmpfs -o mode=755 tmpfs $R/dev
for n in null zero full random urandom tty; do touch $R/dev/$n; mount --bind /dev/$n $R/dev/$n; done
mkdir $R/dev/pts $R/dev/shm; ln -s /proc/self/fd $R/dev/fd; ln -s pts/ptmx $R/dev/ptmx
mount -t devpts -o newinstance,ptmxmode=666 devpts $R/dev/pts
mount -t tmpfs tmpfs $R/dev/shm
mount --bind $RUN $R/run
mount -t tmpfs tmpfs $R/tmp
ip link set lo up
cd $R
pivot_root . mnt
umount -l mnt
exec env -i container=other PATH=/usr/sbin:/usr/bin:/sbin:/bin \
  /usr/lib/systemd/systemd systemd.unit=loops.target
"""
_BIND = """
bind() {
  if [ -d $1 ]; then mkdir -p $2; else touch $2; fi
  mount --bind $1 $2
}
"""


def wait_for(is_true: Callable[[], Any], seconds: float = 30) -> Any:
    deadline = time.monotonic() + seconds
    while not (answer := is_true()):
        assert time.monotonic() < deadline, "nothing came in time"
        time.sleep(0.1)
    return answer


def run(*command: str) -> str:
    done = subprocess.run(command, capture_output=True, text=True, timeout=120, check=False)
    assert done.returncode == 0, f"{command}: {done.stderr}"
    return done.stdout


class SystemdNode:
    """`root` is the view of the files, `run` what it has at /run; both are seen from here too."""

    def __init__(self, place: Path, engine: Engine) -> None:
        self.place, self.root, self.run = place, place / "root", place / "run"
        self.engine = engine
        self._boot: subprocess.Popen[bytes] | None = None

    def start(self) -> None:
        for name in ("root", "run", "upper", "work"):
            (self.place / name).mkdir()
        layers = f"lowerdir=/,upperdir={self.place}/upper,workdir={self.place}/work"
        run("mount", "-t", "overlay", "overlay", "-o", layers, str(self.root))
        run("mount", "-t", "tmpfs", "-o", "mode=755", "tmpfs", str(self.run))
        self._write_files()
        for top in Path("/sys/fs/cgroup").iterdir():
            if (top / "cgroup.procs").exists():
                (top / CGROUP).mkdir(exist_ok=True)
                for file in ("cpuset.cpus", "cpuset.mems"):
                    if (top / CGROUP / file).exists() and (top / file).exists():
                        (top / CGROUP / file).write_text((top / file).read_text())
        namespaces = ["--mount", "--pid", "--fork", "--uts", "--ipc", "--net", "--kill-child"]
        with (self.place / "boot.log").open("wb") as log:
            self._boot = subprocess.Popen(
                ["timeout", "-s", "KILL", str(_LIFE_S), "unshare", *namespaces, "sh", "-c", _BOOT],
                env=os.environ | {"R": str(self.root), "RUN": str(self.run)},
                stdin=subprocess.DEVNULL,
                stdout=log,
                stderr=log,
                start_new_session=True,
                preexec_fn=_enter_cgroup,
            )
        try:
            wait_for((self.run / self.engine.socket).exists)
        except AssertionError:
            raise AssertionError((self.place / "boot.log").read_text()) from None

    def write(self, path: str, text: str, mode: int = 0o644) -> None:
        file = self.root / path.lstrip("/")
        file.parent.mkdir(parents=True, exist_ok=True)
        file.unlink(missing_ok=True)
        file.write_text(text)
        file.chmod(mode)

    def link(self, path: str, target: str) -> None:
        file = self.root / path.lstrip("/")
        file.unlink(missing_ok=True)
        file.symlink_to(target)

    def inside(self, *command: str) -> str:
        return run("nsenter", "--target", str(self.pid), "--all", *command)

    def beside(self, *command: str) -> subprocess.CompletedProcess[str]:
        """A command of this machine that finds the node's sockets in /run, and in its network who
        is connected to them.
        """
        binds = "".join(
            f"bind {self.run}/{name} /run/{name} && "
            for name in ("dbus", "systemd", *self.engine.run_names)
        )
        binds += "".join(
            f"bind {self.root}{name} {name} && " for name in self.engine.state_directories
        )
        return subprocess.run(
            [
                *("nsenter", f"--net=/proc/{self.pid}/ns/net"),
                *("unshare", "--mount", "sh", "-c"),
                f'{_BIND} mount -t tmpfs tmpfs /run && {binds} exec "$@"',
                *("sh", *command),
            ],
            capture_output=True,
            text=True,
            timeout=240,
            check=False,
        )

    @property
    def pid(self) -> int:
        """Of systemd, as it is called here."""
        for folder in Path("/proc").glob("[0-9]*"):
            try:
                is_it = (folder / "comm").read_text() == "systemd\n"
                if is_it and f"/{CGROUP}" in (folder / "cgroup").read_text():
                    return int(folder.name)
            except OSError:
                continue
        raise AssertionError("systemd does not run")

    def close(self) -> None:
        if self._boot is not None:
            os.killpg(self._boot.pid, signal.SIGKILL)
            self._boot.wait(30)
        for folder in sorted(Path("/sys/fs/cgroup").glob(f"*/{CGROUP}/**/"), reverse=True):
            wait_for(lambda folder=folder: _is_removed(folder))
        for name in ("root", "run"):
            subprocess.run(
                ["umount", "-l", str(self.place / name)], capture_output=True, check=False
            )
        shutil.rmtree(self.place, ignore_errors=True)

    def _write_files(self) -> None:
        wants = " ".join(("dbus.socket", "systemd-journald.service", *self.engine.wanted))
        self.write("/etc/systemd/system/loops.target", f"{_ALONE}Wants={wants}\n")
        for unit in (*_UNITS, *self.engine.units):
            self.write(f"/etc/systemd/system/{unit}.d/alone.conf", _ALONE)
        for path, text in self.engine.files.items():
            self.write(path, text)
        for path, target in self.engine.links.items():
            self.link(path, target)
        self.link("/etc/systemd/system/systemd-journald-audit.socket", "/dev/null")


def _enter_cgroup() -> None:
    for top in Path("/sys/fs/cgroup").glob(f"*/{CGROUP}/cgroup.procs"):
        top.write_text(str(os.getpid()))


def _is_removed(folder: Path) -> bool:
    try:
        for pid in (folder / "cgroup.procs").read_text().split():
            os.kill(int(pid), signal.SIGKILL)
        folder.rmdir()
    except FileNotFoundError:
        return True
    except OSError:
        return False
    return True
