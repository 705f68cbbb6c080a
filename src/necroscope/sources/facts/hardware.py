"""Facts about the machine: CPU, topology, memory, swap, firmware, when it was booted."""

import re
from collections.abc import Iterator
from pathlib import Path
from typing import Final

from necroscope.model.units import NS_PER_S, format_moment
from necroscope.sources.facts.fact import Fact, fact, list_names, read_bytes, read_text

_CPU_KEYS: Final = {
    "model name": "model",
    "microcode": "microcode",
    "vendor_id": "vendor",
    "CPU part": "part",
}
_DMI: Final = ("sys_vendor", "product_name", "bios_vendor", "bios_version", "board_name")
_FILES: Final = {
    ("cpu", "online"): "sys/devices/system/cpu/online",
    ("cpu", "possible"): "sys/devices/system/cpu/possible",
    ("cpu", "governor"): "sys/devices/system/cpu/cpu0/cpufreq/scaling_governor",
    ("cpu", "idle_driver"): "sys/devices/system/cpu/cpuidle/current_driver",
    ("cpu", "threads_of_core_0"): "sys/devices/system/cpu/cpu0/topology/thread_siblings_list",
    ("numa", "online"): "sys/devices/system/node/online",
    ("node", "hypervisor"): "sys/hypervisor/type",
}
_MINUTE_S: Final = 60


def collect(root: Path) -> Iterator[Fact]:
    yield from parse_cpuinfo(read_bytes(root / "proc/cpuinfo", 1 << 14) or b"")
    for (kind, name), path in _FILES.items():
        text = read_text(root / path)
        if text is not None:
            yield fact(kind, name, text)
    for name in list_names(root / "sys/devices/system/node"):
        cpus = (
            read_text(root / "sys/devices/system/node" / name / "cpulist")
            if re.fullmatch(r"node\d+", name)
            else None
        )
        if cpus is not None:
            yield fact("numa", name, cpus)
    for name in _DMI:
        text = read_text(root / "sys/class/dmi/id" / name)
        if text is not None:
            yield fact("dmi", name, text)
    yield from _memory(root)


def parse_cpuinfo(data: bytes) -> Iterator[Fact]:
    """Of the first core only: the others are alike."""
    for line in data.split(b"\n\n", 1)[0].decode("utf-8", "backslashreplace").splitlines():
        key, _, value = line.partition(":")
        if key.strip() in _CPU_KEYS:
            yield fact("cpu", _CPU_KEYS[key.strip()], value.strip())


def _memory(root: Path) -> Iterator[Fact]:
    total = re.search(rb"MemTotal:\s+(\d+) kB", read_bytes(root / "proc/meminfo") or b"")
    if total is not None:
        yield fact("memory", "total_mib", int(total[1]) // 1024)
    swaps = (read_bytes(root / "proc/swaps") or b"").splitlines()[1:]
    yield fact(
        "memory",
        "swap",
        "none" if not swaps else " ".join(sorted(line.split()[0].decode() for line in swaps)),
    )
    # To the minute: the kernel works it out again from two clocks each time.
    booted = re.search(rb"^btime (\d+)", read_bytes(root / "proc/stat") or b"", re.MULTILINE)
    if booted is not None:
        minute_s = (int(booted[1]) + _MINUTE_S // 2) // _MINUTE_S * _MINUTE_S
        yield fact("node", "booted", format_moment(minute_s * NS_PER_S))
