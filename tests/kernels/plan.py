"""Which sets run in which boot of a kernel, and how each is verified afterwards on this side."""

import sys
from collections.abc import Callable
from dataclasses import dataclass
from functools import partial
from pathlib import Path
from typing import Final

from tests.kernels.guest import Boot
from tests.kernels.kernels import Kernel
from tests.kernels.sets import (
    blackout,
    clock,
    denied,
    features,
    hotplug,
    incidents,
    own_tests,
    plain,
    reset,
    service,
    story,
    zombies,
)
from tests.kernels.story import ring

# systemd's own words for cgroup v1 alone; with psi=0 the kernel has no /proc/pressure.
_V1: Final = "systemd.unified_cgroup_hierarchy=0 systemd.legacy_systemd_cgroup_controller=1"
_NETWORK_DEVICE: Final = "e1000e"
Verify = Callable[[Path], str | None]


@dataclass(frozen=True, slots=True)
class Check:
    """One set in one boot: its module runs inside with a directory of its own, `verify` looks at
    what came out.
    """

    name: str
    module: str
    verify: Verify
    words: tuple[str, ...] = ()

    @property
    def step(self) -> list[str]:
        return [
            self.name,
            "python3",
            "-m",
            f"tests.kernels.sets.{self.module}",
            f"/out/{self.name}",
            *self.words,
        ]


@dataclass(frozen=True, slots=True)
class Planned:
    """A boot with its checks; `files` go into the guest beside the sets."""

    boot: Boot
    checks: tuple[Check, ...]
    seconds: int
    files: tuple[str, ...] = ()


def smoke() -> list[Planned]:
    return [Planned(Boot("smoke"), (_plain("record", is_v1=False),), seconds=600)]


def whole_story() -> list[Planned]:
    """The machine of the story in small: two cores are there of 96 that could be, because a walk
    reads a counter of each possible core, and two nodes, because it does so for each.
    """
    boot = Boot(
        "story",
        f"{_V1} cgroup_enable=memory",
        memory_mb=story.MEMORY_MB,
        network_device=_NETWORK_DEVICE,
        possible_cpus=96,
        numa_nodes=2,
        peer=(f"{ring.PEER[0]}:{ring.PEER[1]}", f"{sys.executable} -S {ring.__file__} 1"),
    )
    check = Check("story", "story", story.verify)
    return [Planned(boot, (check,), seconds=5400, files=("tests/kernels/story",))]


def whole(kernel: Kernel) -> list[Planned]:
    """All boots of a kernel; those with a network device where it has a driver for it."""
    v2 = (
        Check("features", "features", features.verify),
        _plain("record", is_v1=False),
        Check("hotplug", "hotplug", hotplug.verify),
        Check("clock", "clock", clock.verify),
        Check("denied", "denied", denied.verify),
    )
    lab = (Check("incidents", "incidents", incidents.verify),)
    own = (Check("own-tests", "own_tests", own_tests.verify),)
    boots = [
        Planned(Boot("v2"), v2, seconds=900),
        Planned(
            Boot("service"),
            (Check("service", "service", service.verify),),
            seconds=600,
            files=(service.FILE,),
        ),
        Planned(Boot("tests"), own, seconds=900, files=own_tests.FILES),
        Planned(Boot("incidents", "preempt=none"), lab, seconds=1500),
    ]
    if kernel.has_v1_memory:
        boots.append(
            Planned(Boot("v1", f"{_V1} psi=0"), (_plain("record-v1", is_v1=True),), seconds=600)
        )
    if kernel.softirqs_wait is not None:
        boots.append(_reset_boot(softirqs_wait=kernel.softirqs_wait))
        if kernel.has_bpf_loop:
            boots.append(_blackout_boot(softirqs_wait=kernel.softirqs_wait))
        if kernel.keeps_dead_cgroups:
            boots.append(_zombie_boot(is_v1=kernel.has_v1_memory))
    return boots


def _reset_boot(*, softirqs_wait: bool) -> Planned:
    verify = partial(reset.verify, softirqs_wait=softirqs_wait)
    runs = reset.RUNS if softirqs_wait else reset.RUNS_WITHOUT
    return Planned(
        _with_network("reset"), (Check("reset", "reset", verify, (str(runs),)),), seconds=2400
    )


def _blackout_boot(*, softirqs_wait: bool) -> Planned:
    verify = partial(blackout.verify, softirqs_wait=softirqs_wait)
    return Planned(
        _with_network("blackout"), (Check("blackout", "blackout", verify),), seconds=1200
    )


def _with_network(name: str) -> Boot:
    """preempt=none is how a server's kernel is set up; one that cannot choose its model ignores
    it.
    """
    return Boot(name, "preempt=none", network_device=_NETWORK_DEVICE)


def _zombie_boot(*, is_v1: bool) -> Planned:
    boot = Boot(
        "zombies",
        f"{_V1 if is_v1 else ''} preempt=none",
        memory_mb=3072,
        network_device=_NETWORK_DEVICE,
    )
    return Planned(boot, (Check("zombies", "zombies", zombies.verify),), seconds=900)


def _plain(name: str, *, is_v1: bool) -> Check:
    return Check(name, "plain", partial(plain.verify, is_v1=is_v1, has_pressure=not is_v1))


def verdict_of(check: Check, directory: Path, code: int | None, said: str) -> tuple[bool, str]:
    """Whether it holds, and what is to be told of it."""
    if code is None:
        return False, "the guest did not get that far"
    if code:
        return False, f"exit code {code} inside: {said.strip()[-600:]}"
    try:
        return True, check.verify(directory / check.name) or ""
    except AssertionError as error:
        return False, str(error)
    except Exception as error:  # noqa: BLE001 - what a guest handed back may be broken in any way, and the next check still counts
        return False, f"{type(error).__name__}: {error}"
