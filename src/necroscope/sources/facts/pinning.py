"""Facts about who may run where: processes and cgroups that are confined to some cores
(/proc/PID/status, cpuset.cpus), and the cores that the interrupts of network devices go to
(/proc/irq).
"""

import os
import re
from collections import defaultdict
from collections.abc import Iterator
from pathlib import Path
from typing import Final

from necroscope.sources.facts.fact import Fact, fact, list_names, read_bytes, read_text

PROGRAM_LIMIT: Final = 200
_PROCESS_LIMIT: Final = 20_000
_CGROUP_LIMIT: Final = 200
_DEVICE_LIMIT: Final = 64
_INTERRUPT_LIMIT: Final = 1_024
_MOST_SETS: Final = 8
_STATUS_BYTES: Final = 8_192
_STATUS: Final = re.compile(rb"^(Name|VmSize|Cpus_allowed_list):\s*(.*?)\s*$", re.MULTILINE)
# Where cgroup v1 and v2 have them.
_CPUSETS: Final = ("sys/fs/cgroup/cpuset", "sys/fs/cgroup")


def collect(root: Path) -> Iterator[Fact]:
    online = (read_text(root / "sys/devices/system/cpu/online") or "").encode()
    yield from _processes(root, online)
    yield from _cpusets(root, online)
    yield from _interrupts(root)


def _processes(root: Path, online: bytes) -> Iterator[Fact]:
    """By program: which sets of cores its processes are confined to. Kernel threads, which have no
    memory of their own, are confined to theirs everywhere.
    """
    found: dict[str, set[str]] = defaultdict(set)
    for pid in list_names(root / "proc", 1 << 20)[:_PROCESS_LIMIT]:
        if not pid.isdigit():
            continue
        fields = dict(
            _STATUS.findall(read_bytes(root / "proc" / pid / "status", _STATUS_BYTES) or b"")
        )
        cores = fields.get(b"Cpus_allowed_list", b"")
        if b"VmSize" in fields and cores and not _is_all(cores, online):
            name = fields.get(b"Name", b"?").decode("utf-8", "backslashreplace")
            if name in found or len(found) < PROGRAM_LIMIT:
                found[name].add(cores.decode("ascii", "backslashreplace"))
    for name, sets in sorted(found.items()):
        yield fact("pinning", name, _some(sets))


def _is_all(cores: bytes, online: bytes) -> bool:
    """Also a set that goes beyond the cores there are: 0-127 on a machine of 96."""
    if cores == online:
        return True
    first, _, last = cores.partition(b"-")
    most = online.rpartition(b"-")[2]
    return (
        first == b"0"
        and last.isdigit()
        and most.isdigit()
        and b"," not in online
        and int(last) >= int(most)
    )


def _cpusets(root: Path, online: bytes) -> Iterator[Fact]:
    """Two levels deep: slices, services and pods' quality classes."""
    for place in _CPUSETS:
        top = root / place
        names = [name for name in list_names(top) if (top / name).is_dir()]
        paths = [
            path
            for name in names
            for path in (name, *(f"{name}/{below}" for below in list_names(top / name)))
        ]
        found = [(path, read_text(top / path / "cpuset.cpus")) for path in paths[:2_000]]
        confined = [
            (path, cores) for path, cores in found if cores and not _is_all(cores.encode(), online)
        ]
        for path, cores in confined[:_CGROUP_LIMIT]:
            yield fact("cpuset", f"/{path}", cores)
        if confined:
            return


def _interrupts(root: Path) -> Iterator[Fact]:
    folder = root / "sys/class/net"
    for device in list_names(folder)[:_DEVICE_LIMIT]:
        place = os.path.realpath(folder / device / "device")
        numbers = list_names(Path(place) / "msi_irqs") or list_names(
            Path(place).parent / "msi_irqs"
        )
        sets = [
            cores
            for number in numbers[:_INTERRUPT_LIMIT]
            if number.isdigit()
            and (cores := read_text(root / "proc/irq" / number / "smp_affinity_list")) is not None
        ]
        if sets:
            yield fact("interrupt", f"{device} affinity", f"{len(sets)} on {_some(set(sets))}")


def _some(sets: set[str]) -> str:
    listed = sorted(sets)
    more = f" and {len(listed) - _MOST_SETS} more" if len(listed) > _MOST_SETS else ""
    return "; ".join(listed[:_MOST_SETS]) + more
