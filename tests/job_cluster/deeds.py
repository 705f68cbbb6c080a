"""One thing is done to one member of a job: faults of its machine, and controls for which no machine
is to blame. Each returns the truth.
"""

import contextlib
import os
import signal
from collections.abc import Callable
from typing import TYPE_CHECKING, Any

from tests.job_cluster import faults
from tests.job_cluster.judging import Truth

if TYPE_CHECKING:
    from tests.job_cluster.torch_runs import TorchRun

Deed = Callable[["TorchRun"], Truth]
_CONTROL_S = 16.0


def _machine(
    run: "TorchRun", name: str, context: Any, names: tuple[str, ...], *, has_core: bool = True
) -> Truth:
    """Begins when all work; ends when the job has died."""
    run.warm_up()
    with context:
        run.await_death()
    run.await_ends()
    return Truth(name, ("machine",), run.node.name, run.core if has_core else None, names)


def real_time(run: "TorchRun") -> Truth:
    name, policy = faults.invent(run.seed), run.seed.choice(("fifo", "rr"))
    words = str(run.core), policy, str(run.seed.randrange(2, 50)), "1"
    run.start()
    return _machine(run, "rt-hog", faults.started(name, "hog", *words), (name,))


def neighbours(run: "TorchRun") -> Truth:
    """Many of one program, ahead of all others by their nice value."""
    name = faults.invent(run.seed)
    words = str(run.core), "other", "-20", str(run.seed.randrange(5, 9))
    run.start()
    return _machine(run, "neighbours", faults.started(name, "hog", *words), (name,))


def quota(run: "TorchRun") -> Truth:
    run.start()
    names = ("cpu-quota-throttle", f"the CPU quota of /{run.node.name}")
    return _machine(run, "quota", faults.throttled(run.node), names)


def kernel_walk(run: "TorchRun") -> Truth:
    name = faults.invent(run.seed)
    words = str(run.core), str(run.seed.randrange(10, 14))
    run.start()
    walker = faults.started(name, "walk", *words, prefix=("unshare", "--ipc"))
    return _machine(run, "kernel walk", walker, (name,))


def neighbour_limit(run: "TorchRun") -> Truth:
    """A neighbour at its memory limit, which reclaims its own pages on this core."""
    name = faults.invent(run.seed)
    path = run.node.directory / f"{name}.dat"
    run.start()
    try:
        with faults.limited_group(f"{name}-pod") as group:
            words = str(run.core), str(run.seed.randrange(10, 14)), str(group), str(path)
            context = faults.started(name, "reclaim", *words)
            return _machine(run, "neighbour at its memory limit", context, (name,))
    finally:
        path.unlink(missing_ok=True)


def file_lock(run: "TorchRun") -> Truth:
    """Another program keeps the lock that the member takes for a moment in every step."""
    name = faults.invent(run.seed)
    run.start()
    context = faults.started(name, "lock", str(run.lock))
    return _machine(run, "file lock", context, (name,), has_core=False)


def silent_file_server(run: "TorchRun") -> Truth:
    """What the member reads its data from does not answer any more."""
    name = faults.invent(run.seed)
    mount = run.node.directory / name
    with faults.mounted(name, mount) as pid:
        run.start(data=str(mount / "data"))
        context = contextlib.ExitStack()
        context.callback(os.kill, pid, signal.SIGUSR2)
        run.warm_up()
        with context:
            os.kill(pid, signal.SIGUSR1)
            run.await_death()
        run.await_ends()
    names = (name, str(mount), "blocked-io")
    return Truth("silent file server", ("machine",), run.node.name, None, names)


def lost_link(run: "TorchRun") -> Truth:
    run.start()
    return _machine(run, "link down", faults.link_down(run.node), ("eth0",), has_core=False)


def exception(run: "TorchRun") -> Truth:
    run.start("exception", _CONTROL_S)
    run.warm_up()
    run.await_death()
    return Truth("exception", ("program",), run.node.name)


def memory(run: "TorchRun") -> Truth:
    limit = run.node.memory / "memory.limit_in_bytes"
    run.start("memory", _CONTROL_S)
    run.warm_up()
    used = int((run.node.memory / "memory.usage_in_bytes").read_text())
    limit.write_text(str(used + (64 << 20)))
    try:
        run.await_death()
    finally:
        limit.write_text("-1")
    return Truth("OOM kill", ("memory_limit",), run.node.name)


def kill(run: "TorchRun") -> Truth:
    run.start()
    run.warm_up()
    run.members[run.victim].send_signal(signal.SIGKILL)
    run.await_death()
    return Truth("kill -9", ("killed",), run.node.name)


def preemption(run: "TorchRun") -> Truth:
    run.start()
    run.warm_up()
    for member in run.members:
        member.send_signal(signal.SIGTERM)
    run.await_death()
    return Truth("preemption", ("stopped", "preempted"))


def slow(run: "TorchRun") -> Truth:
    run.start("slow", _CONTROL_S)
    run.warm_up()
    run.await_death()
    return Truth("slow but healthy", ("none",))


FAULTS: tuple[Deed, ...] = (
    real_time, neighbours, quota, kernel_walk, neighbour_limit, file_lock, silent_file_server,
    lost_link,
)  # fmt: skip
CONTROLS: tuple[Deed, ...] = (exception, memory, kill, preemption, slow)
