"""Three nodes on this machine: each a network namespace, a host name, cgroups and a recorder of its
own that pushes to a collector in a fourth. They share the kernel, so every recorder sees every
core: which node it was must come from the job. The clocks of the recorders may be off; the
machine's own is never touched. Everything is undone at the end.
"""

import contextlib
import json
import os
import signal
import subprocess
import sys
import time
from collections.abc import Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any, Self

from benchmarks.compiled_program import MOVED_CLOCK, compiled

MEMORY = Path("/sys/fs/cgroup/memory")
CPU = Path("/sys/fs/cgroup/cpu")
HUB, RECORDERS, FAULTS = "ncj-hub", "ncj-recorders", "ncj-faults"
HUB_ADDRESS = "10.77.0.100"
PORT = 7443
PROGRAM = [sys.executable, "-P", "-m", "necroscope"]
# Of the machine's CPU time, as much as 8 other sessions: what else runs here is no part of a run.
# Programs that are to be ahead of a job need a group as well: with autogroup (CONFIG_SCHED_AUTOGROUP)
# a nice value counts only within its session.
SHARES, AHEAD = "8192", "262144"
SETTLE_S = 20.0


def run(*words: str) -> None:
    subprocess.run(words, check=True, capture_output=True)


@dataclass
class Node:
    name: str
    number: int
    directory: Path
    offset_s: int = 0
    recorder: subprocess.Popen[bytes] | None = None

    @property
    def address(self) -> str:
        return f"10.77.0.{self.number}"

    @property
    def memory(self) -> Path:
        return MEMORY / self.name

    @property
    def cpu(self) -> Path:
        return CPU / self.name

    @property
    def recording(self) -> Path:
        return self.directory / "recording"

    def start(
        self, command: Sequence[str], log: Path, *, is_member: bool = True, **variables: str
    ) -> subprocess.Popen[bytes]:
        """In its namespaces, and in its cgroups unless it is the recorder."""
        enter = f"set -e; hostname {self.name}; "
        for group in (self.memory, self.cpu) if is_member else (CPU / RECORDERS,):
            enter += f"echo $$ > {group}/cgroup.procs; "
        if not is_member:
            enter += self._own_devices()
        words = ["nsenter", f"--net=/run/netns/{self.name}", "unshare", "--uts", "--mount"]
        words += ["--propagation", "slave", "sh", "-c", enter + 'exec "$@"', "sh", *command]
        with log.open("wb") as file:
            return subprocess.Popen(
                words,
                stdout=file,
                stderr=file,
                stdin=subprocess.DEVNULL,
                start_new_session=True,
                env=os.environ | variables,
            )

    def _own_devices(self) -> str:
        """Its own network devices in /sys, and all else of it as it is."""
        own = self.directory / "sys"
        own.mkdir()
        parts = ("class/net", "devices/virtual/net")
        bound = "; ".join(f"mount --bind {own}/{part} /sys/{part}" for part in parts)
        return f"mount -t sysfs {self.name} {own}; {bound}; "


@dataclass
class Cluster:
    directory: Path
    names: Sequence[str] = ("ncj-a", "ncj-b", "ncj-c")
    offsets_s: Sequence[int] = (0, 0, 0)
    nodes: list[Node] = field(default_factory=list)
    collector: subprocess.Popen[bytes] | None = None

    @property
    def lake(self) -> Path:
        return self.directory / "lake"

    def __enter__(self) -> Self:
        try:
            self._make()
        except BaseException:
            self.__exit__()
            raise
        return self

    def __exit__(self, *_: object) -> None:
        children = [*(node.recorder for node in self.nodes), self.collector]
        for child in children:
            if child is not None and child.poll() is None:
                child.send_signal(signal.SIGTERM)
        for child in children:
            if child is not None:
                with contextlib.suppress(subprocess.TimeoutExpired):
                    child.wait(60)
                end_session(child)
        for node in self.nodes:
            subprocess.run(["ip", "netns", "delete", node.name], check=False, capture_output=True)
            for group in (node.memory, node.cpu):
                with contextlib.suppress(OSError):
                    group.rmdir()
        subprocess.run(["ip", "netns", "delete", HUB], check=False, capture_output=True)
        leave_shares()

    def _make(self) -> None:
        run("ip", "netns", "add", HUB)
        for words in ("add br0 type bridge", "set br0 up", "set lo up"):
            run("ip", "-n", HUB, "link", *words.split())
        run(*f"ip -n {HUB} address add {HUB_ADDRESS}/24 dev br0".split())
        for name in (HUB, RECORDERS):
            make_shares(CPU / name)
        make_shares(CPU / FAULTS, AHEAD)
        (CPU / HUB / "cgroup.procs").write_text(str(os.getpid()))
        for number, name in enumerate(self.names, 1):
            node = Node(name, number, self.directory / name, self.offsets_s[number - 1])
            self.nodes.append(node)
            node.directory.mkdir(parents=True)
            node.memory.mkdir(exist_ok=True)
            make_shares(node.cpu)
            self._connect(node)
        self._serve()
        for node in self.nodes:
            log = node.directory / "recorder.log"
            clock = self._clock(node)
            node.recorder = node.start(self._record(node), log, is_member=False, **clock)
        for node in self.nodes:
            self._await(lambda node=node: any(node.recording.glob("*.live")), "a recorder")
        # Each looks at the processes that are there, some at a time.
        time.sleep(SETTLE_S)

    def _clock(self, node: Node) -> dict[str, str]:
        """Variables of a recorder whose clock is off by some seconds."""
        if not node.offset_s:
            return {}
        clock = node.directory / "clock"
        clock.write_bytes(node.offset_s.to_bytes(8, "little", signed=True))
        library = compiled(node.directory, MOVED_CLOCK, "-shared", "-fPIC", "-ldl")
        return {"LD_PRELOAD": str(library), "SOAK_CLOCK": str(clock)}

    def _serve(self) -> None:
        """In plain HTTP, over a network that ends in this machine."""
        tokens = self.directory / "tokens.toml"
        words = ["fleet", "token", "new", "--cluster", "jobs", "--role", "push"]
        words += ["--to", str(tokens), "--out", str(self.directory / "token")]
        run(*PROGRAM, *words)
        words = ["fleet", "serve", "--lake", str(self.lake), "--tokens", str(tokens)]
        words += ["--host", HUB_ADDRESS, "--port", str(PORT), "--insecure", "--compact-every", "2s"]
        with (self.directory / "collector.log").open("wb") as file:
            self.collector = subprocess.Popen(
                ["nsenter", f"--net=/run/netns/{HUB}", *PROGRAM, *words],
                stdout=file,
                stderr=file,
                stdin=subprocess.DEVNULL,
                start_new_session=True,
            )

    def _connect(self, node: Node) -> None:
        run("ip", "netns", "add", node.name)
        port = f"port{node.number}"
        run(*f"ip link add eth0 netns {node.name} type veth peer name {port} netns {HUB}".split())
        run(*f"ip -n {HUB} link set {port} master br0 up".split())
        run(*f"ip -n {node.name} address add {node.address}/24 dev eth0".split())
        for device in ("eth0", "lo"):
            run("ip", "-n", node.name, "link", "set", device, "up")

    def _record(self, node: Node) -> list[str]:
        words = [*PROGRAM, "record", "--dir", str(node.recording), "--quiet"]
        words += ["--jobs", "2s", "--jobs-below", f"/{node.name}"]
        # Of daemons and packages nothing is asked here; the machine has two cores for all of it.
        words += ["--facts", "0s", "--units", "0s", "--containers", "0s"]
        words += ["--push", f"http://{HUB_ADDRESS}:{PORT}"]
        return [*words, "--push-token-file", str(self.directory / "token")]

    def _await(self, is_there: Any, what: str, seconds: float = 60) -> None:
        end = time.monotonic() + seconds
        while not is_there():
            if time.monotonic() > end:
                raise RuntimeError(f"{what} did not start: see {self.directory}")
            time.sleep(0.2)

    def ask_recordings(self, job: str) -> dict[str, Any]:
        """What `necroscope job` answers; its error as text if it has none."""
        return self._ask("job", job, *(str(node.recording) for node in self.nodes))

    def ask_lake(self, job: str) -> dict[str, Any]:
        """What `necroscope fleet job` answers."""
        return self._ask("fleet", "job", job, "--lake", str(self.lake))

    def _ask(self, *words: str) -> dict[str, Any]:
        result = subprocess.run(
            [*PROGRAM, *words, "--json"], capture_output=True, check=False, timeout=120
        )
        if result.returncode:
            return {"error": result.stderr.decode(errors="replace")[-500:]}
        answer: dict[str, Any] = json.loads(result.stdout)
        return answer


def make_shares(group: Path, shares: str = SHARES) -> None:
    group.mkdir(exist_ok=True)
    (group / "cpu.shares").write_text(shares)


def leave_shares() -> None:
    """This process and what it started go back to where they were."""
    for group in (CPU / HUB, CPU / RECORDERS, CPU / FAULTS):
        with contextlib.suppress(OSError):
            for pid in (group / "cgroup.procs").read_text().split():
                with contextlib.suppress(OSError):
                    (CPU / "cgroup.procs").write_text(pid)
            group.rmdir()


def end_session(process: subprocess.Popen[bytes]) -> None:
    with contextlib.suppress(ProcessLookupError, PermissionError):
        os.killpg(process.pid, signal.SIGKILL)
    process.wait()
