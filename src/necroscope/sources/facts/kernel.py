"""Facts about the kernel: release, command line, how it was set, what it has loaded."""

import re
from collections.abc import Iterator
from pathlib import Path
from typing import Final

from necroscope.errors import SourceUnavailable
from necroscope.sources.cgroupfs import hierarchies
from necroscope.sources.facts.fact import Fact, fact, list_names, read_bytes, read_text

# Those that bear on cores, memory, network and cgroups; the rest of the thousand differ by boot or
# say nothing.
_SYSCTLS: Final = """\
kernel.sched_rt_runtime_us kernel.sched_rt_period_us kernel.sched_autogroup_enabled
kernel.sched_min_granularity_ns kernel.sched_wakeup_granularity_ns kernel.sched_migration_cost_ns
kernel.sched_cfs_bandwidth_slice_us kernel.numa_balancing kernel.nmi_watchdog kernel.watchdog
kernel.watchdog_thresh kernel.softlockup_panic kernel.hung_task_timeout_secs
kernel.perf_event_paranoid kernel.kptr_restrict kernel.dmesg_restrict
kernel.unprivileged_bpf_disabled kernel.pid_max kernel.threads-max kernel.panic kernel.panic_on_oops
kernel.timer_migration kernel.tainted
vm.swappiness vm.overcommit_memory vm.overcommit_ratio vm.min_free_kbytes vm.watermark_scale_factor
vm.watermark_boost_factor vm.dirty_ratio vm.dirty_background_ratio vm.dirty_bytes
vm.dirty_background_bytes vm.zone_reclaim_mode vm.vfs_cache_pressure vm.compaction_proactiveness
vm.extfrag_threshold vm.nr_hugepages vm.max_map_count vm.stat_interval vm.panic_on_oom
net.core.netdev_budget net.core.netdev_budget_usecs net.core.netdev_max_backlog net.core.dev_weight
net.core.somaxconn net.core.rmem_max net.core.wmem_max net.core.rps_sock_flow_entries
net.core.busy_poll net.core.busy_read net.core.default_qdisc net.core.bpf_jit_enable
net.ipv4.tcp_congestion_control net.ipv4.tcp_rmem net.ipv4.tcp_wmem net.ipv4.tcp_mem
net.ipv4.ip_forward net.ipv4.neigh.default.gc_thresh3 net.netfilter.nf_conntrack_max
fs.file-max fs.nr_open fs.inotify.max_user_watches fs.inotify.max_user_instances fs.aio-max-nr
"""
_FILES: Final = {
    ("kernel", "release"): "proc/sys/kernel/osrelease",
    ("kernel", "version"): "proc/version",
    ("kernel", "command_line"): "proc/cmdline",
    ("kernel", "clocksource"): "sys/devices/system/clocksource/clocksource0/current_clocksource",
    ("kernel", "lockdown"): "sys/kernel/security/lockdown",
    ("kernel", "lsm"): "sys/kernel/security/lsm",
    ("kernel", "isolated_cpus"): "sys/devices/system/cpu/isolated",
    ("kernel", "nohz_full_cpus"): "sys/devices/system/cpu/nohz_full",
    ("kernel", "smt"): "sys/devices/system/cpu/smt/control",
    ("thp", "enabled"): "sys/kernel/mm/transparent_hugepage/enabled",
    ("thp", "defrag"): "sys/kernel/mm/transparent_hugepage/defrag",
    ("thp", "khugepaged_defrag"): "sys/kernel/mm/transparent_hugepage/khugepaged/defrag",
    ("thp", "shmem_enabled"): "sys/kernel/mm/transparent_hugepage/shmem_enabled",
    ("kernel", "ksm"): "sys/kernel/mm/ksm/run",
    ("kernel", "lru_gen"): "sys/kernel/mm/lru_gen/enabled",
    ("kernel", "workqueue_cpumask"): "sys/devices/virtual/workqueue/cpumask",
}
_CHOSEN: Final = re.compile(r"[\[(](\w+)[\])]")
_MODULE_LIMIT: Final = 1_000
_SECRET_NAME: Final = re.compile(
    r"pass|secret|token|key(?!board|map)|cred|auth|chap|login|luks|iscsi|initiator|nbd|nvmf|^ds$",
    re.IGNORECASE,
)
# Who logs in to an address; or long and of no word or UUID, as tokens are.
_SECRET_VALUE: Final = re.compile(
    r"^[^/]*@|://[^/]*@|(?<![0-9A-Za-z-])[0-9A-Za-z+_]{32,}(?![0-9A-Za-z-])"
)


def redact_command_line(text: str) -> str:
    """Parameters of iSCSI, LUKS and installers hold secrets, and facts are pushed: their names
    stay, because nodes differ in them.
    """
    return " ".join(map(_redact_parameter, text.split()))


def _redact_parameter(parameter: str) -> str:
    name, separator, value = parameter.partition("=")
    is_secret = _SECRET_NAME.search(name) or _SECRET_VALUE.search(value)
    return f"{name}=(redacted)" if separator and is_secret else parameter


def collect(root: Path) -> Iterator[Fact]:
    for (kind, name), path in _FILES.items():
        text = read_text(root / path)
        if text is not None:
            if name == "command_line":
                text = redact_command_line(text)
            chosen = _CHOSEN.search(text) if kind == "thp" else None
            yield fact(kind, name, chosen[1] if chosen else text)
    for name in _SYSCTLS.split():
        value = read_text(root / "proc/sys" / name.replace(".", "/"))
        if value is not None:
            yield fact("sysctl", name, value)
    yield from _modules(root)
    for name in list_names(root / "sys/devices/system/cpu/vulnerabilities"):
        yield fact(
            "vulnerability",
            name,
            read_text(root / "sys/devices/system/cpu/vulnerabilities" / name) or "",
        )
    model = preemption_model(
        read_text(root / "sys/kernel/debug/sched/preempt"),
        read_text(root / "proc/cmdline"),
        read_text(root / "proc/version"),
    )
    if model is not None:
        yield fact("kernel", "preemption", model)
    mode = _cgroup_mode(root)
    if mode is not None:
        yield fact("cgroup", "mode", mode)


def preemption_model(
    chosen: str | None, command_line: str | None, version: str | None
) -> str | None:
    """debugfs brackets the one in force; else it was asked for at boot; else what the kernel was
    built as.
    """
    match = _CHOSEN.search(chosen or "")
    if match is not None:
        return match[1]
    asked = re.search(r"(?:^| )preempt=(\w+)", command_line or "")
    if asked is not None:
        return asked[1]
    built = re.search(r" (PREEMPT\w*) ", version or "")
    if built is not None:
        return {"PREEMPT": "full", "PREEMPT_RT": "rt"}.get(built[1], built[1])
    return "none or voluntary" if version else None


def _modules(root: Path) -> Iterator[Fact]:
    """A module's own version where it says one, else that it is there. Reference counts come and go
    and are left out.
    """
    lines = (read_bytes(root / "proc/modules") or b"").splitlines()
    for line in lines[:_MODULE_LIMIT]:
        name = line.split(b" ", 1)[0].decode("utf-8", "backslashreplace")
        taints = re.search(rb"\(([A-Z]+)\)\s*$", line)
        version = read_text(root / "sys/module" / name / "version") or "loaded"
        yield fact("module", name, version + (f" ({taints[1].decode()})" if taints else ""))


def _cgroup_mode(root: Path) -> str | None:
    """v2 alone, v1 alone, or hybrid: both."""
    try:
        versions = {hierarchy.version for hierarchy in hierarchies.read(root)}
    except SourceUnavailable:
        return None
    return {frozenset({1}): "v1", frozenset({2}): "v2"}.get(frozenset(versions), "hybrid")
