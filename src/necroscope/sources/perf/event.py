"""Open a perf event, and say exactly what is missing when the kernel refuses."""

import ctypes
import errno
import struct
from fcntl import ioctl
from pathlib import Path

from necroscope.errors import PermissionMissing, SourceUnavailable
from necroscope.perf_abi.event_attr import IOC_ENABLE, IOC_ID, OPEN_CLOEXEC, EventAttr
from necroscope.perf_abi.syscalls import syscall

EVERY_PROCESS = -1
EVERY_CPU = -1
_NO_GROUP = -1
_REFUSED = (errno.EACCES, errno.EPERM)
_CAP_SYS_ADMIN = 21
_CAP_PERFMON = 38
_MAINLINE_PARANOID = ("-1", "0", "1", "2")
_SECCOMP_FILTER = "2"


def open_event(attr: EventAttr, pid: int = EVERY_PROCESS, cpu: int = EVERY_CPU) -> int:
    """A descriptor of the event. OSError as the kernel gave it, but for refusals and limits, which
    say the way out.
    """
    packed = attr.pack()
    buffer = ctypes.create_string_buffer(packed, len(packed))
    try:
        return syscall("perf_event_open", buffer, pid, cpu, _NO_GROUP, OPEN_CLOEXEC)
    except OSError as error:
        if error.errno in _REFUSED:
            raise _refusal() from None
        if error.errno == errno.EMFILE:
            raise SourceUnavailable(
                "the process may not open more files: perf needs five descriptors per core",
                "raise LimitNOFILE or ulimit -n",
            ) from None
        if error.errno == errno.ENOSYS:
            raise SourceUnavailable(
                "this kernel has no perf_event_open", "it needs CONFIG_PERF_EVENTS"
            ) from None
        raise


def _refusal() -> PermissionMissing:
    try:
        paranoid = Path("/proc/sys/kernel/perf_event_paranoid").read_text().strip()
    except OSError:
        return PermissionMissing(
            "cannot sample all CPUs: perf_event_open was refused",
            "allow it in the container's seccomp profile, add CAP_PERFMON",
        )
    is_enough = _has_capability(_CAP_SYS_ADMIN) or (
        _has_capability(_CAP_PERFMON) and paranoid in _MAINLINE_PARANOID
    )
    if is_enough and _own_status("Seccomp") == _SECCOMP_FILTER:
        return PermissionMissing(
            "cannot sample all CPUs: a seccomp filter refuses perf_event_open, whatever the"
            " capabilities",
            "allow perf_event_open and bpf in the container's seccomp profile, or run it with"
            " seccomp=unconfined",
        )
    if _has_capability(_CAP_PERFMON):
        # From level 3 on, which mainline does not know, Debian's kernels ask for the greater one.
        return PermissionMissing(
            f"cannot sample all CPUs: perf_event_paranoid is {paranoid}, and at that level"
            " CAP_PERFMON is not enough here",
            "sysctl kernel.perf_event_paranoid=2, or give CAP_SYS_ADMIN",
        )
    return PermissionMissing(
        f"cannot sample all CPUs: perf_event_paranoid is {paranoid} and CAP_PERFMON is missing",
        "run as root, or give CAP_PERFMON (CAP_SYS_ADMIN before Linux 5.8), or sysctl"
        " kernel.perf_event_paranoid=-1",
    )


def _has_capability(number: int) -> bool:
    return bool(int(_own_status("CapEff") or "0", 16) >> number & 1)


def _own_status(name: str) -> str | None:
    """A line of what the kernel says about this process."""
    for line in Path("/proc/self/status").read_text().splitlines():
        key, _, value = line.partition(":")
        if key == name:
            return value.strip()
    return None


def event_id(descriptor: int) -> int:
    """The id that each sample of this event carries (PERF_SAMPLE_IDENTIFIER)."""
    answer = ioctl(descriptor, IOC_ID, b"\0" * 8)
    return int(struct.unpack("<Q", answer)[0])


def enable(descriptor: int) -> None:
    ioctl(descriptor, IOC_ENABLE, 0)
