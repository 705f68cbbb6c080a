"""How each kind of act is taken back. Every one can be repeated, and does nothing where there is
nothing left to undo.
"""

import contextlib
import ctypes
import os
import shutil
import subprocess
import time
from collections.abc import Callable
from pathlib import Path
from typing import Any, Final

from necroscope.lab.actor import kill_marked
from necroscope.lab.ledger import ActLedger

_COMMAND_S: Final = 60.0
_BUSY_S: Final = 10.0
_REMOVE_SET: Final = 0  # IPC_RMID
_libc: Final = ctypes.CDLL(None, use_errno=True)


def undo_all(ledger: ActLedger) -> list[str]:
    """Undo in the opposite order, processes before all else; what could not be undone, in words.
    Then the ledger is gone.
    """
    acts = ledger.acts()
    failures = [f"process {pid} does not end" for pid in kill_marked(ledger.name)]
    for act in reversed(acts):
        try:
            _UNDO[act.kind](act.data)
        except (OSError, subprocess.SubprocessError, KeyError) as error:
            failures.append(f"cannot undo {act.kind} {act.data}: {error}")
    if not failures:
        ledger.discard()
    return failures


def _remove_tree(data: dict[str, Any]) -> None:
    """Of the lab's own files, once all that is mounted below it is gone: a container's volumes, for
    one.
    """
    path = Path(data["path"])
    for point in reversed(_mounted_below(path)):
        _command("umount", "--lazy", point)
    if not path.is_symlink() and path.exists():
        shutil.rmtree(path)


def _mounted_below(path: Path) -> list[str]:
    points = [line.split()[4] for line in Path("/proc/self/mountinfo").read_text().splitlines()]
    return [point for point in points if point.startswith(f"{path}/")]


def _unmount(data: dict[str, Any]) -> None:
    while os.path.ismount(data["path"]):
        _command("umount", "--lazy", data["path"])


def _remove_cgroup(data: dict[str, Any]) -> None:
    """With all below it; a task that is on its way out holds its cgroup for a moment."""
    deadline = time.monotonic() + _BUSY_S
    for top in data["directories"]:
        for directory, _, _ in os.walk(top, topdown=False):
            _remove_directory(Path(directory), deadline)


def _remove_directory(directory: Path, deadline: float) -> None:
    while True:
        try:
            return directory.rmdir()
        except FileNotFoundError:
            return None
        except OSError:
            if time.monotonic() > deadline:
                raise
            time.sleep(0.05)


def _delete_netns(data: dict[str, Any]) -> None:
    """Its interfaces, rules and sockets go with it."""
    if Path("/run/netns", data["name"]).exists():
        _command("ip", "netns", "delete", data["name"])


def _restore_file(data: dict[str, Any]) -> None:
    """A sysctl or another file of the kernel; if it is gone with what it belonged to, it is not
    re-created.
    """
    with (
        contextlib.suppress(FileNotFoundError),
        Path(data["path"]).open("r+", encoding="utf-8") as file,
    ):
        file.truncate(0)
        file.write(data["old"])


def _restore_task(data: dict[str, Any]) -> None:
    """Nice value and cores of a task that is not the lab's own, if it is still the same."""
    pid = data["pid"]
    with contextlib.suppress(FileNotFoundError, ProcessLookupError):
        if Path(f"/proc/{pid}/comm").read_text().strip() == data["comm"]:
            os.setpriority(os.PRIO_PROCESS, pid, data["nice"])
            os.sched_setaffinity(pid, data["cpus"])


def _remove_containers(data: dict[str, Any]) -> None:
    """Of a podman with storage of its own; the storage itself is in the scratch directory."""
    podman = [*data["podman"], "rm", "--all", "--force", "--time", "0"]
    if Path(data["root"]).exists():
        _command(*podman)


def _remove_semaphores(data: dict[str, Any]) -> None:
    """System V sets outlive the process that made them; the lab's own are known by their keys."""
    keys = range(data["first_key"], data["first_key"] + data["count"])
    for line in Path("/proc/sysvipc/sem").read_text().splitlines()[1:]:
        key, number, *_ = map(int, line.split())
        if key in keys:
            _libc.semctl(number, 0, _REMOVE_SET)


def _command(*argv: str) -> None:
    done = subprocess.run(argv, capture_output=True, text=True, timeout=_COMMAND_S, check=False)
    if done.returncode:
        raise OSError(f"{argv[0]} says: {done.stderr.strip()}")


_UNDO: Final[dict[str, Callable[[dict[str, Any]], None]]] = {
    "tree": _remove_tree,
    "mount": _unmount,
    "cgroup": _remove_cgroup,
    "netns": _delete_netns,
    "file": _restore_file,
    "task": _restore_task,
    "containers": _remove_containers,
    "semaphores": _remove_semaphores,
}
