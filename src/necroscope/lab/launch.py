"""The first thing a process of the lab runs: bound itself, move to its place, then become the
program or call the function.

Run as `python -m necroscope.lab.launch ORDER` where ORDER is JSON, with descriptor `ready` to say
`ready` or what failed on. Nothing here is left to the parent, so that no process of the lab is ever
unbounded, not even when its parent dies at the worst moment.
"""

import contextlib
import ctypes
import importlib
import json
import os
import resource
import signal
import sys
from pathlib import Path
from typing import Any, Final

_PR_SET_PDEATHSIG: Final = 1
_PR_SET_NAME: Final = 15
_CLONE_NEWNET: Final = 0x40000000
_libc: Final = ctypes.CDLL(None, use_errno=True)
_POLICIES: Final = {
    "fifo": os.SCHED_FIFO,
    "rr": os.SCHED_RR,
    "batch": os.SCHED_BATCH,
    "idle": os.SCHED_IDLE,
}


def main() -> None:
    order: dict[str, Any] = json.loads(sys.argv[1])
    ready: int = order["ready"]
    os.set_inheritable(ready, False)
    try:
        _bound(order)
        _move(order)
        body = _body(order)
        os.write(ready, b"ready")
        body()
    except Exception as error:  # noqa: BLE001 - whatever it is, the parent must hear of it
        os.write(2, f"{order['comm']}: {error!r}\n".encode())
        with contextlib.suppress(OSError):  # the parent has gone, or has heard that we were ready
            os.write(ready, f"{type(error).__name__}: {error}".encode())
        os._exit(1)
    os._exit(0)


def _bound(order: dict[str, Any]) -> None:
    """In time, memory and core dumps; and it dies with its parent. The alarm outlives exec."""
    _libc.prctl(_PR_SET_PDEATHSIG, signal.SIGKILL, 0, 0, 0)
    if os.getppid() != order["parent"]:
        raise OSError("the parent has gone")
    os.setsid()
    signal.alarm(order["life_s"])
    resource.setrlimit(resource.RLIMIT_AS, (order["memory_bytes"], order["memory_bytes"]))
    resource.setrlimit(resource.RLIMIT_CORE, (0, 0))
    resource.setrlimit(resource.RLIMIT_NOFILE, (order["files"], order["files"]))
    # If memory runs out all the same, the kernel takes the lab first.
    Path("/proc/self/oom_score_adj").write_text("1000")


def _move(order: dict[str, Any]) -> None:
    for directory in order["cgroups"]:
        Path(directory, "cgroup.procs").write_text(str(os.getpid()))
    if order["netns"]:
        with open(f"/run/netns/{order['netns']}", "rb") as namespace:
            if _libc.setns(namespace.fileno(), _CLONE_NEWNET):
                raise OSError(
                    ctypes.get_errno(), f"cannot enter network namespace {order['netns']}"
                )
    if order["cpus"]:
        os.sched_setaffinity(0, order["cpus"])
    if order["nice"]:
        os.setpriority(os.PRIO_PROCESS, 0, order["nice"])
        # Where autogroups are on, niceness counts only within a session, and the session has its
        # own (kernel/sched/autogroup.c).
        if os.path.exists("/proc/self/autogroup"):
            Path("/proc/self/autogroup").write_text(str(order["nice"]))
    if order["policy"] != "other":
        os.sched_setscheduler(0, _POLICIES[order["policy"]], os.sched_param(order["priority"]))


def _body(order: dict[str, Any]) -> Any:
    if order["argv"]:
        return lambda: os.execv(order["file"], order["argv"])
    _libc.prctl(_PR_SET_NAME, ctypes.c_char_p(order["comm"].encode()), 0, 0, 0)
    function = getattr(importlib.import_module(order["module"]), order["function"])
    return lambda: function(*order["arguments"])


if __name__ == "__main__":
    main()
