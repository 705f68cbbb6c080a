"""A process of the lab: started through `launch.py`, which bounds it, and ended with its whole
session.
"""

import contextlib
import json
import os
import select
import shutil
import signal
import subprocess
import sys
import time
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any, Final

import necroscope
from necroscope.lab.cgroup import Cgroup
from necroscope.lab.scenario import CannotProvoke, LabError

# In the environment of every process of a run, and of all that it starts.
MARK: Final = "NECROSCOPE_LAB_RUN"
_START_S: Final = 20.0
# What a process may have unless its scenario says otherwise.
MEMORY_BYTES: Final = 2 << 30
FILES: Final = 4096


@dataclass(frozen=True, slots=True)
class Place:
    """Where and how a process runs; `cpu` is one core or several, `policy` other, batch, idle, fifo
    or rr.
    """

    cpu: int | Sequence[int] | None = None
    policy: str = "other"
    priority: int = 0
    nice: int = 0
    cgroup: Cgroup | None = None
    netns: str | None = None
    memory_bytes: int = MEMORY_BYTES
    files: int = FILES


class Actor:
    """A process that was started; `comm` is its name as the kernel shows it."""

    def __init__(self, process: subprocess.Popen[bytes], comm: str) -> None:
        self._process = process
        self.comm = comm
        self.pid = process.pid

    @property
    def exit_code(self) -> int | None:
        """None while it runs."""
        return self._process.poll()

    def signal(self, number: int) -> None:
        if self._process.poll() is None:
            self._process.send_signal(number)

    def wait(self, seconds: float) -> int:
        """Its exit code; LabError if it does not end in time."""
        try:
            return self._process.wait(seconds)
        except subprocess.TimeoutExpired:
            raise LabError(f"{self.comm} did not end within {seconds:g} s") from None

    def stop(self) -> None:
        """End it and all of its session, and reap it."""
        with contextlib.suppress(ProcessLookupError, PermissionError):
            os.killpg(self.pid, signal.SIGKILL)
        self._process.kill()
        self._process.wait()


def start(
    body: Sequence[str] | Callable[..., object],
    arguments: Sequence[Any],
    comm: str,
    place: Place,
    order: dict[str, Any],
) -> Actor:
    """`order` brings what the stage decides: scratch directory, mark, longest life and where
    standard error goes.
    """
    reader, writer = os.pipe()
    with contextlib.ExitStack() as opened:
        opened.callback(os.close, reader)
        with contextlib.ExitStack() as handed:
            handed.callback(os.close, writer)
            output = handed.enter_context(Path(order["output"]).open("ab"))
            process = subprocess.Popen(
                [
                    comm,
                    "-P",
                    "-m",
                    "necroscope.lab.launch",
                    json.dumps(_order(body, arguments, comm, place, order, writer)),
                ],
                executable=sys.executable,
                env=_environment(order["mark"]),
                stdin=subprocess.DEVNULL,
                stdout=output,
                stderr=output,
                pass_fds=(writer,),
            )
        actor = Actor(process, comm)
        _wait_until_ready(actor, reader)
    return actor


def _order(
    body: Sequence[str] | Callable[..., object],
    arguments: Sequence[Any],
    comm: str,
    place: Place,
    order: dict[str, Any],
    ready: int,
) -> dict[str, Any]:
    cpus = [place.cpu] if isinstance(place.cpu, int) else list(place.cpu or ())
    common = {
        "ready": ready,
        "parent": os.getpid(),
        "life_s": order["life_s"],
        "comm": comm,
        "cpus": cpus,
        "policy": place.policy,
        "priority": place.priority,
        "nice": place.nice,
        "cgroups": [str(path) for path in dict.fromkeys(place.cgroup.directories.values())]
        if place.cgroup
        else [],
        "netns": place.netns,
        "memory_bytes": place.memory_bytes,
        "files": place.files,
    }
    if callable(body):
        return common | {
            "argv": None,
            "module": body.__module__,
            "function": body.__name__,
            "arguments": list(arguments),
        }
    program = shutil.which(body[0])
    if program is None:
        raise CannotProvoke(f"there is no program {body[0]}", "install it")
    return common | {
        "file": _link_as(program, comm, Path(order["scratch"])),
        "argv": [comm, *body[1:]],
    }


def _link_as(program: str, comm: str, scratch: Path) -> str:
    """A task is called after the file that is executed, so that the link to it gives its name."""
    link = scratch / "bin" / comm
    link.parent.mkdir(exist_ok=True)
    with contextlib.suppress(FileExistsError):
        link.symlink_to(program)
    return str(link)


def _environment(mark: str) -> dict[str, str]:
    """argv[0] is the invented name, from which Python cannot find its own library: say where it
    is.
    """
    source = str(Path(necroscope.__file__).parents[1])
    return os.environ | {
        "PYTHONHOME": sys.base_prefix,
        "PYTHONPATH": os.pathsep.join([source, *sys.path]),
        MARK: mark,
    }


def _wait_until_ready(actor: Actor, reader: int) -> None:
    found, _, _ = select.select([reader], [], [], _START_S)
    said = os.read(reader, 4096).decode() if found else "it did not start in time"
    if said != "ready":
        actor.stop()
        raise CannotProvoke(f"cannot start {actor.comm}: {said or 'it ended at once'}")


def list_marked(mark: str) -> Iterator[int]:
    """Processes of a run, however often re-parented, by the mark in their environment."""
    wanted = f"{MARK}={mark}\0".encode()
    for directory in Path("/proc").glob("[0-9]*"):
        with contextlib.suppress(OSError):
            if (
                wanted in (directory / "environ").read_bytes() + b"\0"
                and int(directory.name) != os.getpid()
            ):
                yield int(directory.name)


def kill_marked(mark: str, seconds: float = 10.0) -> list[int]:
    """Kill all processes of a run, those too that they start meanwhile; the pids that are left."""
    deadline = time.monotonic() + seconds
    while pids := list(list_marked(mark)):
        for pid in pids:
            with contextlib.suppress(ProcessLookupError):
                os.kill(pid, signal.SIGKILL)
        if time.monotonic() > deadline:
            return pids
        time.sleep(0.02)
    return []
