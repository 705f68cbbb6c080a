"""What a run must leave as it was: cgroups, mounts, network namespaces, firewall rules, processes
and BPF programs.
"""

import contextlib
import ctypes
import os
import re
import shutil
import struct
import subprocess
import time
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path
from typing import Final

from necroscope.lab.actor import list_marked
from necroscope.perf_abi.syscalls import syscall
from necroscope.sources.cgroupfs.hierarchies import parse_cgroups

_PROG_GET_NEXT_ID: Final = 11
# The machine lives: what others start and end meanwhile leaves a few dead cgroups too.
_TRACKED_SLACK: Final = 100
_SETTLE_S: Final = 8.0


@dataclass(frozen=True, slots=True)
class MachineState:
    """`tracked` counts by controller the cgroups that the kernel holds, dead ones included; the
    others are names.
    """

    tracked: dict[str, int]
    cgroups: frozenset[str]
    mounts: frozenset[str]
    namespaces: frozenset[str]
    rules: frozenset[str]
    processes: frozenset[str]
    bpf_programs: frozenset[str]

    @classmethod
    def take(cls, mark: str) -> "MachineState":
        """Processes are those with the run's mark; what a process without it holds belongs to
        somebody else.
        """
        pids = frozenset(list_marked(mark))
        return cls(
            tracked={c.name: c.cgroups for c in parse_cgroups(Path("/proc/cgroups").read_bytes())},
            cgroups=frozenset(_unused_cgroups(Path("/sys/fs/cgroup"))),
            mounts=frozenset(_mounts()),
            namespaces=frozenset(os.listdir("/run/netns"))
            if os.path.isdir("/run/netns")
            else frozenset(),
            rules=frozenset(_rules()),
            processes=frozenset(f"{pid}" for pid in pids),
            bpf_programs=frozenset(str(i) for i in _bpf_programs())
            - frozenset(_held_by_others(pids)),
        )

    def left_since(self, before: "MachineState") -> list[str]:
        """In words, what is there now and was not before."""
        named = {
            "cgroup": self.cgroups - before.cgroups,
            "mount": self.mounts - before.mounts,
            "network namespace": self.namespaces - before.namespaces,
            "firewall rule": self.rules - before.rules,
            "process": self.processes - before.processes,
            "BPF program": self.bpf_programs - before.bpf_programs,
        }
        found = [f"{kind} {name}" for kind, names in named.items() for name in sorted(names)]
        grown = {name: count - before.tracked.get(name, 0) for name, count in self.tracked.items()}
        return found + [
            f"{more} more {name} cgroups tracked"
            for name, more in grown.items()
            if more > _TRACKED_SLACK
        ]


@dataclass(frozen=True, slots=True)
class Leftovers:
    """What is there after a run and was not before: of the run, and of others on the machine, who
    also live on.
    """

    by_run: list[str]
    by_others: list[str]


def left_behind(before: MachineState, mark: str, own_names: list[str]) -> Leftovers:
    """What is on its way out (a cgroup is freed later, by a worker) gets a moment. A name of the
    run tells what is its own; processes and programs are told apart already, and only the run makes
    dead cgroups by the hundred.
    """
    deadline = time.monotonic() + _SETTLE_S
    while True:
        found = MachineState.take(mark).left_since(before)
        named = [
            each
            for each in found
            if each.startswith(("cgroup", "mount", "network namespace", "firewall rule"))
        ]
        by_others = [each for each in named if not any(name in each for name in own_names)]
        by_run = [each for each in found if each not in by_others]
        if not by_run or time.monotonic() > deadline:
            return Leftovers(by_run, by_others)
        time.sleep(0.2)


def _unused_cgroups(root: Path) -> Iterator[str]:
    """Leaves without a process; one with a process is in use, or that process is what was
    left.
    """
    for directory, children, files in os.walk(root):
        if not children and "cgroup.procs" in files:
            with contextlib.suppress(OSError):
                if not Path(directory, "cgroup.procs").read_bytes():
                    yield directory


def _mounts() -> Iterator[str]:
    for line in Path("/proc/self/mountinfo").read_text(errors="replace").splitlines():
        place, _, kind = line.partition(" - ")
        yield f"{place.split()[4]} ({kind.split()[0]})"


def _rules() -> Iterator[str]:
    """Of this network namespace; counters and comments are not rules."""
    for program in ("iptables-save", "ip6tables-save"):
        if shutil.which(program):
            done = subprocess.run(
                [program], capture_output=True, text=True, timeout=30, check=False
            )
            yield from (
                re.sub(r" ?\[\d+:\d+\]", "", line)
                for line in done.stdout.splitlines()
                if line[:1] not in ("#", "")
            )


def _bpf_programs() -> Iterator[int]:
    """Ids of all programs that are loaded."""
    last = 0
    while True:
        attr = ctypes.create_string_buffer(struct.pack("<III", last, 0, 0), 12)
        try:
            syscall("bpf", _PROG_GET_NEXT_ID, attr, 12)
        except OSError:
            return
        last = struct.unpack_from("<I", attr, 4)[0]
        yield last


def _held_by_others(pids: frozenset[int]) -> Iterator[str]:
    """Programs that are held by a descriptor of a process without the mark: another recorder, a
    tracer.
    """
    for directory in Path("/proc").glob("[0-9]*/fd"):
        if int(directory.parent.name) in pids:
            continue
        with contextlib.suppress(OSError):
            for descriptor in directory.iterdir():
                if os.readlink(descriptor) == "anon_inode:bpf-prog":
                    text = (directory.parent / "fdinfo" / descriptor.name).read_text()
                    yield from re.findall(r"^prog_id:\s*(\d+)", text, re.MULTILINE)
