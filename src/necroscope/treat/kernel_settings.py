"""Steps that write one file of the kernel: the cores of an interrupt, the quota of a cgroup. The
old value is in the ledger before.
"""

import os
import re
from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path
from typing import Any, Final

from necroscope.errors import SourceUnavailable, UsageError
from necroscope.model.names import clean
from necroscope.sources.cgroupfs import hierarchies
from necroscope.sources.sysfs import cpus
from necroscope.treat.act_ledger import TreatmentAct

SETTING: Final = "kernel-setting"
_CORES: Final = re.compile(r"\d{1,5}(-\d{1,5})?(,\d{1,5}(-\d{1,5})?)*")
_VALUE_BYTES: Final = 4096
PERIOD_US: Final = 100_000


@dataclass(frozen=True, slots=True)
class SettingStep:
    """`path` is below the root, without a slash before it; `why` says what it does in words."""

    path: str
    value: str
    why: str
    root: Path

    def describe(self) -> list[str]:
        old = _read(self.root / self.path)
        return [self.why, f"  write {self.value!r} into /{self.path} (now {old!r})"]

    def as_json(self) -> dict[str, Any]:
        old = _read(self.root / self.path)
        return {"kind": SETTING, "path": f"/{self.path}", "value": self.value, "now": old}

    def apply(self, note: Callable[[TreatmentAct], None], say: Callable[[str], None]) -> None:
        old = _read(self.root / self.path)
        if old is None:
            raise SourceUnavailable(f"cannot read /{clean(self.path)}", "is it still there?")
        note(TreatmentAct(SETTING, {"path": self.path, "old": old}))
        _write(self.root / self.path, self.value)
        say(f"{self.why}: {self.value!r} instead of {old!r}")


def move_interrupt(root: Path, irq: int, cores: str) -> SettingStep:
    if not _CORES.fullmatch(cores):
        raise UsageError(f"{clean(cores)!r} is not a valid list of cores", "write it as 0-3,7")
    online = _read(root / "sys/devices/system/cpu/online") or ""
    missing = set(cpus.parse(cores)) - set(cpus.parse(online))
    if missing:
        raise UsageError(f"core {min(missing)} is not online", f"online are {online}")
    path = f"proc/irq/{irq}/smp_affinity_list"
    if _read(root / path) is None:
        raise UsageError(f"there is no interrupt {irq}", "see /proc/interrupts")
    return SettingStep(path, cores, f"interrupt {irq} goes to core {cores}", root)


def set_quota(root: Path, cgroup: str, cores: float) -> SettingStep:
    """`cgroup` is a path below the hierarchy of the CPU controller."""
    quota_us = round(cores * PERIOD_US)
    if not 1_000 <= quota_us <= 10_000 * PERIOD_US:
        raise UsageError(f"a quota of {cores:g} cores is out of range", "0.01 to 10000 cores")
    folder = _cpu_folder(root, cgroup)
    why = f"cgroup {clean(cgroup)} gets at most {cores:g} cores"
    below = str(folder.relative_to(root))
    if (folder / "cpu.max").exists():
        return SettingStep(f"{below}/cpu.max", f"{quota_us} {PERIOD_US}", why, root)
    if not (folder / "cpu.cfs_quota_us").exists():
        raise UsageError(
            f"cgroup {clean(cgroup)} has no CPU quota", "the CPU controller must be on for it"
        )
    period_us = int(_read(folder / "cpu.cfs_period_us") or PERIOD_US)
    value = str(round(cores * period_us))
    return SettingStep(f"{below}/cpu.cfs_quota_us", value, why, root)


def undo_setting(root: Path, data: dict[str, Any]) -> str:
    """What is gone with its cgroup or device is not made again."""
    path, old = str(data["path"]), str(data["old"])
    now = _read(root / path)
    if now is None:
        return f"/{clean(path)} is gone"
    if now != old:
        _write(root / path, old)
    return f"/{clean(path)} is {old!r} again"


def _cpu_folder(root: Path, cgroup: str) -> Path:
    mounted = hierarchies.read(root)
    found = [each for each in mounted if "cpu" in each.controllers] or [
        each for each in mounted if each.version == 2
    ]
    if not found:
        raise SourceUnavailable("no hierarchy with the CPU controller is mounted", "mount it")
    top = os.fsdecode(found[0].mount_point)
    folder = os.path.normpath(f"{top}/{cgroup}")
    if folder == top or not folder.startswith(f"{top}/") or not os.path.isdir(folder):
        raise UsageError(f"there is no cgroup {clean(cgroup)} to limit", f"see {clean(top)}")
    return Path(folder)


def _read(path: Path) -> str | None:
    try:
        with path.open("rb") as file:
            return clean(file.read(_VALUE_BYTES).strip(), _VALUE_BYTES)
    except OSError:
        return None


def _write(path: Path, value: str) -> None:
    descriptor = os.open(path, os.O_WRONLY | os.O_TRUNC | os.O_CLOEXEC)
    try:
        os.write(descriptor, value.encode("ascii"))
    finally:
        os.close(descriptor)
