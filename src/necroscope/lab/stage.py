"""What a scenario is given: the chosen core, its seed, and the only ways in which it may change the
machine.
"""

import os
import re
import subprocess
import time
from collections.abc import Callable, Sequence
from pathlib import Path
from random import Random
from typing import Any, Final

from necroscope.lab import cgroup as cgroups
from necroscope.lab import names, network
from necroscope.lab.actor import FILES, MARK, MEMORY_BYTES, Actor, Place
from necroscope.lab.actor import start as start_actor
from necroscope.lab.cgroup import Cgroup
from necroscope.lab.ledger import ActLedger
from necroscope.lab.network import Network
from necroscope.lab.scenario import CannotProvoke, LabError

# Whatever happens, no process of the lab lives longer than this after the incident's end.
_GRACE_S: Final = 180
_MOST_ACTORS: Final = 300
_MOST_TMPFS_BYTES: Final = 4 << 30


class Stage:
    """Every act goes into the ledger first, so that it is undone whatever happens."""

    def __init__(
        self,
        ledger: ActLedger,
        core: int,
        seconds: float,
        seed: int | str,
        scratch: Path,
        baseline_s: float = 0,
    ) -> None:
        self.core = core
        self.seconds = seconds
        self.random = Random(seed)
        self.scratch = scratch
        self.emulated: list[str] = []
        self.watched: list[str] = []
        # What carries one of these names after the run was left behind by it.
        self.own_names = [scratch.name]
        self.probe_logs: tuple[Path, Path] | None = None
        self._baseline_s = baseline_s
        self._ledger = ledger
        self._actors: list[Actor] = []
        self._prepared = 0
        self._provoked_at: float | None = None

    # Time

    def begin(self) -> None:
        """The incident starts now; `run` calls it."""
        self._provoked_at = time.monotonic()
        self._prepared = len(self._actors)

    @property
    def elapsed_s(self) -> float:
        """Since the incident began."""
        return 0.0 if self._provoked_at is None else time.monotonic() - self._provoked_at

    @property
    def remaining_s(self) -> float:
        return max(0.0, self.seconds - self.elapsed_s)

    def hold(self, *actors: Actor) -> None:
        """Wait until the incident has lasted `seconds`; LabError if one of these processes ends
        before that.
        """
        while self.remaining_s > 0:
            for actor in actors:
                if actor.exit_code is not None:
                    raise LabError(
                        f"{actor.comm} ended with {actor.exit_code} too early: {self.output()}"
                    )
            time.sleep(min(0.2, self.remaining_s))

    # Names

    def invent(self, kind: str) -> str:
        """A believable name that depends on the seed: `agent`, `app` or `tool`. It fits into a
        comm.
        """
        name = names.invent(self.random, kind)
        self.own_names.append(name)
        return name

    @property
    def other_cores(self) -> list[int]:
        """All that this process may use but the chosen one; the chosen one where there is no
        other.
        """
        return sorted(os.sched_getaffinity(0) - {self.core}) or [self.core]

    # Processes

    def start(
        self,
        body: Sequence[str] | Callable[..., object],
        *arguments: Any,
        comm: str | None = None,
        cpu: int | Sequence[int] | None = None,
        policy: str = "other",
        priority: int = 0,
        nice: int = 0,
        cgroup: Cgroup | None = None,
        netns: str | None = None,
        memory_bytes: int = MEMORY_BYTES,
        files: int = FILES,
    ) -> Actor:
        """A program and its arguments, or a function at the top of a module (arguments go as JSON),
        in a process of its own.
        """
        if len(self._actors) >= _MOST_ACTORS:
            raise LabError(f"a scenario may start at most {_MOST_ACTORS} processes")
        place = Place(cpu, policy, priority, nice, cgroup, netns, memory_bytes, files)
        order = {
            "scratch": str(self.scratch),
            "output": str(self.scratch / "output"),
            "mark": self._ledger.name,
            "life_s": int(self._baseline_s + self.seconds) + _GRACE_S,
        }
        actor = start_actor(body, arguments, comm or self.invent("app"), place, order)
        self._actors.append(actor)
        return actor

    def run(
        self,
        argv: Sequence[str],
        *,
        feed: str | None = None,
        netns: str | None = None,
        seconds: float = 60.0,
    ) -> str:
        """A short command, to its end: its standard output. CannotProvoke if it fails."""
        command = ["ip", "netns", "exec", netns, *argv] if netns else list(argv)
        environment = os.environ | {MARK: self._ledger.name}
        try:
            done = subprocess.run(
                command,
                input=feed,
                capture_output=True,
                text=True,
                timeout=seconds,
                check=False,
                env=environment,
            )
        except FileNotFoundError:
            raise CannotProvoke(f"there is no program {command[0]}", "install it") from None
        except subprocess.TimeoutExpired:
            raise CannotProvoke(f"{argv[0]} did not end within {seconds:g} s") from None
        if done.returncode:
            raise CannotProvoke(f"{' '.join(argv)[:200]} failed: {done.stderr.strip()[:400]}")
        return done.stdout

    def output(self) -> str:
        """The end of what the processes of the lab have printed."""
        path = self.scratch / "output"
        return path.read_text(errors="replace")[-400:].strip() if path.exists() else ""

    # What outlives a process

    def will_undo(self, kind: str, **data: Any) -> None:
        """For an act that no method here does: call it BEFORE the act, with a kind that `undo.py`
        knows.
        """
        self._ledger.write(kind, data)

    def make_cgroup(
        self, path: str | None = None, controllers: tuple[str, ...] = ("memory",)
    ) -> Cgroup:
        """By its path below the root; `start(cgroup=...)` puts a process there. Its top directory
        must not exist yet.
        """
        planned = cgroups.plan(path or self.invent("app"), controllers)
        tops = {d: _topmost_missing(d) for d in planned.directories.values()}
        self.will_undo("cgroup", directories=[str(top) for top in tops.values()])
        cgroups.make(planned)
        return planned

    def mount_tmpfs(self, size_bytes: int, **options: str | int) -> Path:
        """A tmpfs in the scratch directory."""
        if size_bytes > _MOST_TMPFS_BYTES:
            raise LabError(f"a tmpfs of the lab may have at most {_MOST_TMPFS_BYTES} bytes")
        path = self.scratch / self.invent("tool")
        path.mkdir()
        self.will_undo("mount", path=str(path))
        chosen = ",".join(
            f"{name}={value}" for name, value in ({"size": size_bytes} | options).items()
        )
        self.run(["mount", "-t", "tmpfs", "-o", chosen, "tmpfs", str(path)])
        return path

    def make_network(self, *, gap_s: float | None = 0.01) -> Network:
        """Two namespaces and a veth pair, received on the chosen core; with a gap, a probe sends a
        packet that often.
        """
        made = Network(
            self.invent("app"), self.invent("app"), self._device(), self._device(), self.core
        )
        for name in (made.near, made.far):
            self.will_undo("netns", name=name)
        for command in network.setup_commands(made):
            self.run(command)
        if gap_s is not None:
            self._start_probe(made, gap_s)
        return made

    def set_file(self, path: str, value: str | int) -> None:
        """Write a sysctl or another file of the kernel; the old content comes back at the end."""
        text = Path(path).read_text()
        # A file that offers a choice marks the chosen one: always [madvise] never.
        chosen = re.search(r"\[(\S+)\]", text)
        self.will_undo("file", path=path, old=chosen[1] if chosen else text)
        Path(path).write_text(str(value))

    def move_task(self, pid: int, *, cpu: int, nice: int) -> None:
        """A task that is not the lab's own, such as a kernel thread: to one core and another nice
        value, and back at the end.
        """
        comm = Path(f"/proc/{pid}/comm").read_text().strip()
        old = {
            "nice": os.getpriority(os.PRIO_PROCESS, pid),
            "cpus": sorted(os.sched_getaffinity(pid)),
        }
        self.will_undo("task", pid=pid, comm=comm, **old)
        os.setpriority(os.PRIO_PROCESS, pid, nice)
        os.sched_setaffinity(pid, {cpu})

    def write_kmsg(self, text: str, level: int = 4) -> None:
        """A line in the kernel log, as a driver would write it; the label says that it was
        emulated.
        """
        with open("/dev/kmsg", "w", encoding="utf-8") as log:
            log.write(f"<{level}>{text}\n")
        self.emulate("kernel log lines")

    def emulate(self, what: str) -> None:
        """Say in the label what the kernel did not do by itself."""
        if what not in self.emulated:
            self.emulated.append(what)

    # Measurement

    def watch(self, path: str | Path) -> str:
        """Have the meter read this file too, ten times per second; `measured.growth(path, key)`
        asks for it.
        """
        self.watched.append(str(path))
        return str(path)

    def watch_task(self, pid: int) -> None:
        """For `measured.schedstat(pid)`."""
        self.watch(f"/proc/{pid}/schedstat")

    def stop_actors(self, *, only_of_incident: bool = False) -> None:
        """All, or only those that were started after `begin`: what `prepare` started belongs to the
        machine as it was.
        """
        for actor in reversed(self._actors[self._prepared if only_of_incident else 0 :]):
            actor.stop()

    def _start_probe(self, made: Network, gap_s: float) -> None:
        self.probe_logs = (self.scratch / "sent", self.scratch / "received")
        sent, received = map(str, self.probe_logs)
        # The probe must not be starved by what it measures.
        self.start(
            network.receive,
            received,
            comm=self.invent("tool"),
            cpu=self.other_cores,
            policy="fifo",
            priority=60,
            netns=made.far,
        )
        self.start(
            network.send,
            gap_s,
            sent,
            comm=self.invent("tool"),
            cpu=self.other_cores,
            policy="fifo",
            priority=60,
            netns=made.near,
        )

    def _device(self) -> str:
        name = f"v{self.random.randrange(16**6):06x}"
        self.own_names.append(name)
        return name


def _topmost_missing(directory: Path) -> Path:
    """What is made and so must go: the first directory on the way down that is not there yet."""
    missing = directory
    while not missing.parent.exists():
        missing = missing.parent
    if missing.exists():
        raise CannotProvoke(f"the cgroup {missing} exists already", "run: necroscope lab clean")
    return missing
