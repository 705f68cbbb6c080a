"""What a kernel has of what the recorder can use: each is tried, and docs/kernels.md tells the
answers.
"""

import ctypes
import json
import os
import platform
import resource
import subprocess
import sys
from collections.abc import Callable
from pathlib import Path

from tests.kernels.sets.looking import check

PROC, SYS = Path("/proc"), Path("/sys")
TRACEFS = SYS / "kernel/tracing"


def _perf_with_ksymbol() -> bool:
    from necroscope.perf_abi import event_attr as abi
    from necroscope.sources.perf.event import open_event

    os.close(
        open_event(
            abi.EventAttr(abi.TYPE_SOFTWARE, 0, 0, abi.FLAG_KSYMBOL | abi.FLAG_DISABLED), cpu=0
        )
    )
    return True


def _own_mount_of_tracefs() -> bool:
    from necroscope.perf_abi.syscalls import syscall

    os.close(syscall("fsopen", ctypes.create_string_buffer(b"tracefs"), 0))
    return True


def _openat2() -> bool:
    from necroscope.perf_abi.syscalls import syscall

    os.close(
        syscall(
            "openat2",
            -100,
            ctypes.create_string_buffer(b"/proc/self/status"),
            ctypes.create_string_buffer(bytes(23)),
            24,
        )
    )
    return True


def _raw_tracepoint() -> bool:
    from necroscope.sources.perf.bpf import allow_locked_memory
    from necroscope.sources.perf.softirq_delay import SoftirqDelay

    allow_locked_memory()
    source = SoftirqDelay(Path("/"), range(os.cpu_count() or 1))
    source._attach_raw()
    source.close()
    return True


def _bpf_without_locked_memory() -> bool:
    """In a child, for the limit cannot be raised again without a capability."""
    from necroscope.sources.perf.bpf import MapValue

    if (child := os.fork()) == 0:
        resource.setrlimit(resource.RLIMIT_MEMLOCK, (0, 0))
        try:
            MapValue(1 << 16)
        except BaseException:  # noqa: BLE001 - the answer is the exit code
            os._exit(1)
        os._exit(0)
    return os.waitpid(child, 0)[1] == 0


def _has(file: str, word: str) -> Callable[[], bool]:
    return lambda: word in Path(file).read_text()


def _has_v2(file: str, word: str = "") -> Callable[[], bool]:
    """In the cgroup v2 hierarchy, wherever it is mounted."""

    def found() -> bool:
        mounts = (line.split() for line in (PROC / "mounts").read_text().splitlines())
        files = [
            file_found
            for words in mounts
            if words[2] == "cgroup2"
            for file_found in Path(words[1]).glob(file)
        ]
        return any(word in one.read_text() for one in files) if word else bool(files)

    return found


def _exists(pattern: str) -> Callable[[], bool]:
    return lambda: any(Path("/").glob(pattern.lstrip("/")))


PROBES: dict[str, Callable[[], bool]] = {
    "KSYMBOL records of perf": _perf_with_ksymbol,
    "CAP_PERFMON and CAP_BPF": lambda: int((PROC / "sys/kernel/cap_last_cap").read_text()) >= 39,
    "BPF on raw tracepoints": _raw_tracepoint,
    "BPF memory charged to the cgroup": _bpf_without_locked_memory,
    "tracefs by a detached mount": _own_mount_of_tracefs,
    "openat2": _openat2,
    "cgroup tracepoints": (TRACEFS / "events/cgroup/cgroup_release/format").exists,
    "nr_dying_descendants": _has_v2("cgroup.stat", "nr_dying_descendants"),
    "nr_dying_subsys_memory": _has_v2("cgroup.stat", "nr_dying_subsys_memory"),
    "memory in /proc/cgroups on v2": _has("/proc/cgroups", "\nmemory\t"),
    "pressure": _exists("/proc/pressure/cpu"),
    "pressure: full of cpu": _has("/proc/pressure/cpu", "full"),
    "pressure: irq": _exists("/proc/pressure/irq"),
    "softnet: core number": lambda: (
        len((PROC / "net/softnet_stat").read_text().splitlines()[0].split()) >= 13
    ),
    "softnet: queue lengths": lambda: (
        len((PROC / "net/softnet_stat").read_text().splitlines()[0].split()) >= 15
    ),
    "negative dentries": lambda: int((PROC / "sys/fs/dentry-state").read_text().split()[4]) > 0,
    "Percpu of meminfo": _has("/proc/meminfo", "Percpu:"),
    "effective affinity": _exists("/proc/irq/*/effective_affinity_list"),
    "threaded NAPI": _exists("/sys/class/net/*/threaded"),
    "queue time-outs": _exists("/sys/class/net/*/queues/tx-0/tx_timeout"),
    "memory.reclaim": _has_v2("*/memory.reclaim"),
}


def inside(out: Path) -> None:
    subprocess.run(
        ["mount", "-t", "tracefs", "tracefs", str(TRACEFS)], capture_output=True, check=False
    )
    answers = {name: _try(probe) for name, probe in PROBES.items()}
    result = {"release": platform.release(), "version": platform.version(), "features": answers}
    (out / "features.json").write_text(json.dumps(result, indent=1))


def _try(probe: Callable[[], bool]) -> bool:
    try:
        return probe()
    except Exception:  # noqa: BLE001 - whatever it is, the feature is not there
        return False


def verify(out: Path) -> str:
    answer = json.loads((out / "features.json").read_text())
    check(set(answer["features"]) == set(PROBES), "every question has an answer")
    missing = [name for name, has in answer["features"].items() if not has]
    return f"{answer['version']}; without: {', '.join(missing) or 'nothing'}"


if __name__ == "__main__":
    inside(Path(sys.argv[1]))
