"""A made-up node below a directory: /proc and /sys of as many cores as asked for, for tests and for
the cost of a tick.

Formats are those of a 5.15 kernel with ENA and cgroup v1 (fs/proc, kernel/irq/proc.c,
net/core/net-procfs.c). `step` moves every counter on; writing the same root again keeps the files'
inodes, so that descriptors kept open see the new figures.
"""

from pathlib import Path

from necroscope.model.reading import Moment
from necroscope.model.tables import SOFTIRQ_VECTORS

_VMSTAT = """\
nr_free_pages nr_zone_inactive_anon pswpin pswpout allocstall_dma allocstall_dma32 allocstall_normal allocstall_movable
pgfault pgmajfault pgsteal_kswapd pgsteal_direct pgscan_kswapd pgscan_direct slabs_scanned drop_pagecache drop_slab
oom_kill numa_pages_migrated pgmigrate_success compact_migrate_scanned compact_free_scanned compact_stall compact_fail
compact_success thp_fault_alloc thp_fault_fallback thp_split_page workingset_refault_anon workingset_refault_file
"""
_NAMED_INTERRUPTS = {
    "NMI": "Non-maskable interrupts",
    "LOC": "Local timer interrupts",
    "RES": "Rescheduling interrupts",
    "CAL": "Function call interrupts",
    "TLB": "TLB shootdowns",
}
_MEMORY_TRACKED = 68_680
_SNMP = """\
Ip: Forwarding DefaultTTL InReceives
Ip: 1 64 9
Tcp: RtoAlgorithm ActiveOpens PassiveOpens AttemptFails EstabResets CurrEstab InSegs OutSegs RetransSegs InErrs OutRsts
Tcp: 1 5 6 0 0 40 {segments} {segments} {again} 0 7
Udp: InDatagrams NoPorts InErrors OutDatagrams RcvbufErrors SndbufErrors
Udp: 9 0 0 9 0 0
"""
_NETSTAT = """\
TcpExt: SyncookiesSent ListenOverflows ListenDrops TCPTimeouts TCPSynRetrans TCPRcvCollapsed TCPAbortOnTimeout
TcpExt: 0 {drops} {drops} 3 2 0 0
IpExt: InNoRoutes
IpExt: 0
"""


def at_second(seconds: float) -> Moment:
    """A moment of the tests' time line, `seconds` after its start."""
    elapsed_ns = round(seconds * 1_000_000_000)
    return Moment(1_700_000_000_000_000_000 + elapsed_ns, 5_000_000_000 + elapsed_ns)


def make_root(path: Path, cpus: int, step: int = 0, queues: int = 32, cgroups: int = 8) -> Path:
    """Write the root, or move its counters to `step`; returns `path`. A node like the one of the
    story has 240 cgroups.
    """
    files = {
        "proc/stat": _stat(cpus, step),
        "proc/softirqs": _softirqs(cpus, step),
        "proc/interrupts": _interrupts(cpus, step, queues),
        "proc/1/net/softnet_stat": _softnet(cpus, step),
        "proc/1/net/snmp": _SNMP.format(segments=1000 * step, again=step),
        "proc/1/net/netstat": _NETSTAT.format(drops=step),
        "proc/1/net/stat/nf_conntrack": _conntrack(cpus, step),
        "proc/vmstat": _vmstat(step),
        "proc/meminfo": _MEMINFO,
        "proc/sys/fs/dentry-state": "261983\t260432\t45\t0\t4611\t0\n",
        "proc/sys/fs/inode-nr": "257195\t0\n",
        "sys/devices/system/cpu/online": f"0-{cpus - 1}\n",
        "proc/1/mountinfo": _MOUNTINFO,
        "proc/cgroups": _CGROUPS,
        **{f"proc/pressure/{name}": _pressure(step) for name in ("cpu", "memory", "io")},
        **_threads(cpus, step),
        **_network_device(cpus, step, queues),
    }
    write_files(path, files)
    if step == 0:
        _make_cgroups(path, cgroups)
        driver = path / "sys/class/net/eth0/device/driver"
        driver.unlink(missing_ok=True)
        driver.symlink_to("../../../../bus/pci/drivers/ena")
    return path


def write_files(root: Path, files: dict[str, str]) -> None:
    """Write files below a root, folders included."""
    for name, text in files.items():
        file = root / name
        file.parent.mkdir(parents=True, exist_ok=True)
        file.write_text(text)


def put_into_a_cgroup_namespace(root: Path) -> None:
    """The reader's own cgroup is /pods/recorder of v2, and what its namespace shows; mounts are a
    directory and a link here.
    """
    (root / "host/pods/recorder").mkdir(parents=True)
    (root / "own").symlink_to("host/pods/recorder")
    mounts = (
        f"2 1 0:26 / {root}/own ro - cgroup2 cgroup rw\n3 1 0:26 /../.. {root}/host ro - cgroup2"
        " cgroup2 rw\n"
    )
    write_files(root, {"proc/self/mountinfo": mounts})


def _stat(cpus: int, step: int) -> str:
    lines = [
        f"cpu{cpu} {90000 + 60 * step} 12 {3000 + 30 * step} {800000 + 10 * step} 55 0 7 3 0 0"
        for cpu in range(cpus)
    ]
    total = "cpu  8640000 1152 288000 76800000 5280 0 672 288 0 0"
    interrupts = " ".join(str((irq * 7919 + step) % 100000) for irq in range(16 * cpus))
    return (
        "\n".join(
            [
                total,
                *lines,
                f"intr 99 {interrupts}",
                "ctxt 1",
                "btime 1794780126",
                "softirq 5 0 1 2 3 4",
            ]
        )
        + "\n"
    )


def _softirqs(cpus: int, step: int) -> str:
    header = " " * 20 + "".join(f"CPU{cpu:<8}" for cpu in range(cpus))
    rows = [
        f"{name.upper():>12}:" + "".join(f" {1000 * cpu + 250 * step:10}" for cpu in range(cpus))
        for name in SOFTIRQ_VECTORS
    ]
    return "\n".join([header, *rows]) + "\n"


def _interrupts(cpus: int, step: int, queues: int) -> str:
    header = " " * 11 + "".join(f"CPU{cpu:<8}" for cpu in range(cpus))
    rows = [
        _interrupt(str(24 + nvme), cpus, nvme, 5000, f"  PCI-MSI {nvme}-edge      nvme0q{nvme}")
        for nvme in range(cpus)
    ]
    for queue in range(queues):
        count = 70000 + 900 * step
        rows.append(
            _interrupt(
                str(300 + queue),
                cpus,
                queue,
                count,
                f"  PCI-MSI {81920 + queue}-edge      eth0-Tx-Rx-{queue}",
            )
        )
    for name, text in _NAMED_INTERRUPTS.items():
        rows.append(
            f"{name}:"
            + "".join(f" {500000 + cpu + 1000 * step:10}" for cpu in range(cpus))
            + f"   {text}"
        )
    return "\n".join([header, *rows, "ERR:          0", "MIS:          0"]) + "\n"


def _interrupt(label: str, cpus: int, owner: int, count: int, text: str) -> str:
    return (
        f"{label:>4}:"
        + "".join(f" {count if cpu == owner % cpus else 0:10}" for cpu in range(cpus))
        + text
    )


def _conntrack(cpus: int, step: int) -> str:
    names = "entries clashres found new invalid ignore delete chainlength insert insert_failed drop"
    line = f"{4000:08x} " + "00000000 " * 8 + f"{step:08x} {0:08x} {0:08x}\n"
    return f"{names} early_drop\n" + line * cpus


def _softnet(cpus: int, step: int) -> str:
    rows = []
    for cpu in range(cpus):
        words = [1000 * cpu + 500 * step, 0, step, 0, 0, 0, 0, 0, 0, 0, 0, 0, cpu]
        rows.append(" ".join(f"{word:08x}" for word in words))
    return "\n".join(rows) + "\n"


def _pressure(step: int) -> str:
    return "".join(
        f"{kind} avg10=0.00 avg60=0.00 avg300=0.00 total={1000 + 200 * step}\n"
        for kind in ("some", "full")
    )


def _vmstat(step: int) -> str:
    fillers = [f"nr_filler_{number} {number}" for number in range(150)]
    return "\n".join([*fillers, *(f"{name} {100 + 3 * step}" for name in _VMSTAT.split())]) + "\n"


def _threads(cpus: int, step: int) -> dict[str, str]:
    files = {"proc/2/comm": "kthreadd\n"}
    pids = [10 + 6 * cpu for cpu in range(cpus)]
    files["proc/2/task/2/children"] = " ".join(map(str, pids)) + " "
    for cpu, pid in enumerate(pids):
        files[f"proc/{pid}/comm"] = f"ksoftirqd/{cpu}\n"
        files[f"proc/{pid}/schedstat"] = (
            f"{40_000_000 + 2_000_000 * step} {900_000 + 40_000 * step} {969 + 5 * step}\n"
        )
        zeros = " 0" * 13
        files[f"proc/{pid}/stat"] = (
            f"{pid} (ksoftirqd/{cpu}) S 2 0 0 0 -1 69238848 0 0 0 0 4 0 0 0 20 0 1 0 31 0 0"
            f" 18446744073709551615 0 0 0 0 0 0 0 2147483647 0 1 0 0 17 {cpu}{zeros}\n"
        )
    return files


def _network_device(cpus: int, step: int, queues: int) -> dict[str, str]:
    base = "sys/class/net/eth0"
    files = {
        f"proc/irq/{300 + queue}/effective_affinity_list": f"{queue % cpus}\n"
        for queue in range(queues)
    }
    files |= {
        f"{base}/queues/tx-{queue}/tx_timeout": f"{step if queue == 3 else 0}\n"
        for queue in range(queues)
    }
    files |= {f"{base}/device/msi_irqs/{300 + queue}": "msix\n" for queue in range(queues)}
    counters = ("rx_dropped", "tx_dropped", "rx_errors", "tx_errors", "rx_packets", "tx_packets")
    files |= {
        f"{base}/statistics/{name}": f"{5 if name.endswith('dropped') else 7000 + step}\n"
        for name in counters
    }
    files |= {f"{base}/carrier_changes": "2\n", f"{base}/ifindex": "2\n", f"{base}/iflink": "2\n"}
    return files


def _make_cgroups(root: Path, cgroups: int) -> None:
    for controller, extra in (
        (
            "memory",
            {
                "memory.failcnt": "0\n",
                "memory.oom_control": "oom_kill_disable 0\nunder_oom 0\noom_kill 0\n",
            },
        ),
        ("cpu,cpuacct", {"cpu.stat": "nr_periods 0\nnr_throttled 0\nthrottled_time 0\n"}),
    ):
        top = root / "sys/fs/cgroup" / controller
        folders = [top, *(top / "kubepods" / f"pod{number}" for number in range(cgroups - 2))]
        for folder in folders:
            folder.mkdir(parents=True, exist_ok=True)
            write_files(folder, extra)
        write_files(top, {"release_agent": "\n"})


_MEMINFO = """\
MemTotal:       1188432416 kB
MemFree:        23849712 kB
MemAvailable:   24219936 kB
Buffers:          115332 kB
Cached:           193524 kB
SwapCached:            0 kB
SwapTotal:             0 kB
SwapFree:              0 kB
Dirty:             16716 kB
Writeback:             0 kB
AnonPages:         20536 kB
Mapped:            13856 kB
Shmem:             12776 kB
KReclaimable:     364916 kB
Slab:             398196 kB
SReclaimable:     364916 kB
SUnreclaim:        33280 kB
KernelStack:        1508 kB
PageTables:         2012 kB
Percpu:              664 kB
"""
_MOUNTINFO = """\
31 23 0:28 / /sys/fs/cgroup ro,nosuid - tmpfs tmpfs ro,mode=755
35 31 0:32 / /sys/fs/cgroup/memory rw,nosuid,relatime shared:9 - cgroup cgroup rw,memory
36 31 0:33 / /sys/fs/cgroup/cpu,cpuacct rw,nosuid,relatime shared:10 - cgroup cgroup rw,cpu,cpuacct
"""
_CGROUPS = f"""\
#subsys_name\thierarchy\tnum_cgroups\tenabled
cpu\t3\t240\t1
cpuacct\t3\t240\t1
memory\t4\t{_MEMORY_TRACKED}\t1
rdma\t0\t1\t1
"""
