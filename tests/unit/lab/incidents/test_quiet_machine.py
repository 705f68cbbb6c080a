"""On a machine where nothing happened no scenario of memory, files and locks may claim its
impact.
"""

from pathlib import Path
from types import SimpleNamespace
from typing import Any

import pytest

from necroscope.lab.incidents.blocked_io import BlockedIo
from necroscope.lab.incidents.compaction_stall import CompactionStall
from necroscope.lab.incidents.dentry_walk import DentryWalk
from necroscope.lab.incidents.direct_reclaim import DirectReclaim
from necroscope.lab.incidents.fork_exec_churn import ForkExecChurn
from necroscope.lab.incidents.fsnotify_storm import FsnotifyStorm
from necroscope.lab.incidents.kswapd_reclaim import KswapdReclaim
from necroscope.lab.incidents.memcg_limit_reclaim import MemcgLimitReclaim
from necroscope.lab.incidents.mountinfo_reparse import MountinfoReparse
from necroscope.lab.incidents.page_fault_storm import PageFaultStorm
from necroscope.lab.incidents.path_lookup_contention import PathLookupContention
from necroscope.lab.incidents.rstat_flush_contention import RstatFlushContention
from necroscope.lab.incidents.spinlock_contention import SpinlockContention
from necroscope.lab.incidents.tlb_shootdown import TlbShootdown
from necroscope.lab.measured import Measurements
from necroscope.lab.scenario import ImpactMissing, Scenario

NS = 1_000_000_000
ACTOR = SimpleNamespace(comm="app", pid=1)
CGROUP = SimpleNamespace(path="/pod", is_v2=False, file=lambda name: f"/pod/{name}")
LEFT_BY_PROVOKE: dict[type[Scenario], dict[str, Any]] = {
    BlockedIo: {"readers": [ACTOR], "server": ACTOR, "source": "a", "mount": "/m"},
    CompactionStall: {"log": "/log", "job": ACTOR, "server": ACTOR},
    DentryWalk: {
        "log": Path("/nowhere"),
        "count": 1_000_000,
        "cleaner": ACTOR,
        "prober": ACTOR,
        "path": "/pod",
    },
    DirectReclaim: {"workers": [ACTOR], "settled": [CGROUP]},
    ForkExecChurn: {"agent": ACTOR, "path": "/pod"},
    FsnotifyStorm: {"log": "/log", "writer": ACTOR, "watcher": ACTOR, "instances": 50},
    KswapdReclaim: {"kswapd": 1, "readers": [ACTOR], "settled": [CGROUP]},
    MemcgLimitReclaim: {
        "pod": CGROUP,
        "counter": "memory.failcnt",
        "reader": ACTOR,
        "container": CGROUP,
    },
    MountinfoReparse: {"log": "/log", "count": 3000, "reader": ACTOR, "mounter": ACTOR},
    PageFaultStorm: {"process": ACTOR, "path": "/pod"},
    PathLookupContention: {"workers": [ACTOR], "holder": ACTOR},
    RstatFlushContention: {"logs": ["/log"], "readers": [ACTOR], "pods": CGROUP},
    SpinlockContention: {"workers": [ACTOR], "keeper": ACTOR, "count": 5000, "path": Path("/db")},
    TlbShootdown: {"others": [0], "process": ACTOR},
}


def quiet() -> Measurements:
    """Two idle cores, all counters at rest."""
    readings = {
        "/proc/stat": [(second * NS, _stat(second)) for second in range(30)],
        "/proc/vmstat": [(second * NS, "pgfault 5\npgmigrate_success 7\n") for second in range(30)],
        "/proc/meminfo": [(second * NS, "MemFree: 9000000 kB\n") for second in range(30)],
        "/proc/1/stat": [(second * NS, "1 (app) S 0 0") for second in range(30)],
        "/proc/1/schedstat": [(second * NS, "5 5 5") for second in range(30)],
        "/pod/memory.failcnt": [(second * NS, "3\n") for second in range(30)],
    }
    return Measurements(readings, (0, 10 * NS), (10 * NS, 25 * NS))


def _stat(second: int) -> str:
    return (
        "".join(f"cpu{core} {second} 0 {second} {second * 98} 0 0 0 0\n" for core in (0, 1))
        + f"processes {second}\n"
    )


@pytest.mark.parametrize("scenario", LEFT_BY_PROVOKE, ids=lambda scenario: scenario.name)
def test_nothing_is_claimed(scenario: type[Scenario]) -> None:
    one = scenario()
    for name, value in LEFT_BY_PROVOKE[scenario].items():
        setattr(one, name, value)
    stage: Any = SimpleNamespace(core=1, other_cores=[0], seconds=15.0)
    with pytest.raises(ImpactMissing):
        one.verify(stage, quiet())
