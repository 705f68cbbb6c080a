"""Where the lab may run: as root, on a machine that no other user depends on."""

import contextlib
import fcntl
import os
import struct
import time
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Final, TextIO

from necroscope.errors import PermissionMissing
from necroscope.lab.scenario import LabError

MOST_USERS: Final = 3
_KUBERNETES: Final = frozenset({"kubelet", "k3s-agent", "k3s-server", "microk8s"})
# struct utmp of glibc (bits/utmp.h), 64-bit machines: type, pid, line, id, user.
_UTMP: Final = struct.Struct("<hxxi32s4s32s308x")
_USER_PROCESS: Final = 7
_QUEUE_S: Final = 900.0


def check(root: Path = Path("/"), *, force: bool = False) -> None:
    """Raises what forbids a run; `force` is for a user who knows that the machine is theirs."""
    if os.geteuid() != 0:
        raise PermissionMissing(
            "the lab needs root: it makes cgroups, namespaces and real-time tasks",
            "run it with sudo",
        )
    if force:
        return
    hint = "choose a machine that is only yours, or use --force"
    if sign := kubernetes_sign(root):
        raise LabError(f"this is a Kubernetes node: {sign}", hint)
    users = logged_in(root)
    if len(users) > MOST_USERS:
        raise LabError(f"{len(users)} users are logged in: {', '.join(sorted(users))}", hint)


def kubernetes_sign(root: Path) -> str | None:
    """What shows that this is a node, or a pod on one."""
    if "KUBERNETES_SERVICE_HOST" in os.environ:
        return "KUBERNETES_SERVICE_HOST is set"
    if (root / "var/lib/kubelet/config.yaml").exists():
        return "/var/lib/kubelet/config.yaml exists"
    for comm in (root / "proc").glob("[0-9]*/comm"):
        with contextlib.suppress(OSError):
            if (name := comm.read_text().strip()) in _KUBERNETES:
                return f"{name} runs"
    return None


def logged_in(root: Path) -> set[str]:
    """Names in /run/utmp."""
    with contextlib.suppress(OSError):
        data = (root / "run/utmp").read_bytes()
        records = _UTMP.iter_unpack(data[: len(data) // _UTMP.size * _UTMP.size])
        return {
            user.rstrip(b"\0").decode(errors="replace")
            for kind, _, _, _, user in records
            if kind == _USER_PROCESS
        }
    return set()


@contextlib.contextmanager
def alone(state: Path, say: Callable[[str], None]) -> Iterator[None]:
    """One run at a time: two incidents at once are neither. Waits for the other to end.

    Who is next holds the queue, so that a score, which begins a run as soon as it has ended one,
    does not shut others out.
    """
    state.mkdir(mode=0o700, parents=True, exist_ok=True)
    deadline = time.monotonic() + _QUEUE_S
    with (state / "lock").open("w") as lock:
        with (state / "queue").open("w") as queue:
            is_free = _try_lock(queue) and _try_lock(lock)
            if not is_free:
                say("waiting for another run of the lab to end")
                for file in (queue, lock):
                    _wait_for(file, deadline)
        yield


def _wait_for(file: TextIO, deadline: float) -> None:
    while not _try_lock(file):
        if time.monotonic() > deadline:
            raise LabError("another run of the lab does not end", "see: necroscope lab clean")
        time.sleep(0.1)


def _try_lock(file: TextIO) -> bool:
    """True too if it is ours already."""
    try:
        fcntl.flock(file, fcntl.LOCK_EX | fcntl.LOCK_NB)
    except BlockingIOError:
        return False
    return True
