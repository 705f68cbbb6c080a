"""Public incidents, drawn from what their authors published: named by the right mechanism, or
described by it, and nobody else accused. docs/public-incidents.md has the list.
"""

import pytest
from tests.drawn_node import DrawnNode, drawn_node
from tests.drawn_waits import by, wait

from necroscope.analysis.engine import diagnose
from necroscope.analysis.report import Incident

READ = "Read > ksys_read, vfs_read"
WORKER = "> kthread, worker_thread, process_one_work"
SOFTIRQ = "run_ksoftirqd, handle_softirqs"
TIMER = f"{SOFTIRQ}, run_timer_softirq, __run_timers, call_timer_fn"
RECEIVE = f"{SOFTIRQ}, net_rx_action, __napi_poll"
HELD = "." * 30 + "h" * 14 + "." * 20
ENA = "ena 0000:00:05.0 ens5: TX q 1 is paused for too long; napi handler hasn't been called"


def core_held(work: str, turns: str = HELD, beside: str = "") -> DrawnNode:
    return drawn_node(f"core 0:  {beside or '.' * len(turns)}\ncore 1:  {turns}\nh: {work}")


def packets(node: DrawnNode, per_s: int) -> DrawnNode:
    for second in range(1, 64):
        now = per_s if 31 <= second <= 44 else 50
        node.add("softnet", second, cpu=1, processed=now, dropped=0, time_squeeze=0)
    return node


def only(node: DrawnNode) -> Incident:
    (incident,) = diagnose(node).incidents
    return incident


def words_of(incident: Incident) -> str:
    verdict = incident.verdict
    return " ".join([verdict.summary, *(item.text for item in verdict.evidence)])


def test_github_2019_a_statistics_reader_walks_dead_memcgs() -> None:
    path = f"{READ}, seq_read, mem_cgroup_stat_show, memcg_stat_show, mem_cgroup_iter"
    node = core_held(f"system  cadvisor[900]  /kubepods/pod1  {path}")
    incident = only(node.zombies(20, 38_000).delay(35, 1, 0.3))
    assert incident.verdict.cause == "zombie-memcg-walk"
    assert incident.verdict.culprit is not None
    assert incident.verdict.culprit.comm == "cadvisor"


def test_ena_220_hung_flusher_and_linkwatch_are_not_a_silent_disk() -> None:
    node = drawn_node(f"core 0:  {'.' * 200}\ncore 1:  {'.' * 200}")
    for pid, name, trace in (
        (310, "kworker/u9:1", ("__mutex_lock", "rtnl_lock", "linkwatch_event")),
        (311, "kworker/1:0", ("__mutex_lock", "rtnl_lock", "linkwatch_event")),
    ):
        frames = "\n".join(f" {one}+0x1/0x2" for one in ("__schedule", "schedule", *trace))
        line = f"INFO: task {name}:{pid} blocked for more than 120 seconds."
        fields = f'{{"comm": "{name}", "pid": {pid}, "blocked_s": 120}}'
        node.event(180, "hung_task", line, pid=pid, comm=name, lines=frames, fields=fields)
    for incident in diagnose(node).incidents:
        assert incident.verdict.cause == "unknown"
        assert "waiting for the lock of rtnl_lock" in incident.verdict.summary
        assert "blocked-io" not in [one.cause for one in incident.alternatives]


def test_eks_454_a_flusher_that_holds_the_poll_of_a_queue_is_reported_with_its_walk() -> None:
    path = f"{WORKER}, wb_workfn, wb_do_writeback, queue_io, move_expired_inodes"
    node = core_held(f"system  kworker/u8:2[77]  /  {path}", turns="." * 30 + "h" * 24 + "." * 10)
    node.event(
        53, "nic_napi_starved", ENA, cpu=1, device="ens5", queue=1, fields='{"napi_scheduled": 1}'
    ).delay(52, 1, 20.0)
    incident = only(node)
    assert incident.core == 1
    assert incident.verdict.cause in ("irq-core-collision", "unknown")
    assert incident.verdict.culprit is not None
    assert incident.verdict.culprit.path[-1] == "move_expired_inodes"


def test_aks_18443_workers_that_spin_over_inodes_of_dying_cgroups_are_reported_by_that_function() -> (
    None
):
    spin = f"{WORKER}, inode_switch_wbs_work_fn, inode_do_switch_wbs, _raw_spin_lock"
    node = drawn_node(
        f"core 0:  {HELD}\ncore 1:  {HELD}\n"
        f"h: system  kworker/u9:3[80]  /  {spin}, native_queued_spin_lock_slowpath"
    )
    incident = diagnose(node).incidents[0]
    assert incident.verdict.cause == "spinlock-contention"
    assert "inode_do_switch_wbs" in words_of(incident)


def test_nvsentinel_1334_a_poll_that_never_ends_is_the_cause_and_not_many_packets() -> None:
    node = core_held(f"softirq  ksoftirqd/1[17]  /  > {RECEIVE}, mlx5e_napi_poll")
    incident = only(packets(node, 3))
    assert incident.verdict.cause == "interrupt-handler"
    assert "mlx5e_napi_poll held core 1" in incident.verdict.summary


def test_alibaba_ipvs_estimation_in_a_timer_is_named() -> None:
    node = core_held(f"softirq  swapper/1[0]  /  > {TIMER}, estimation_timer, ip_vs_read_cpu_stats")
    node.add("populations", 10, kind="ipvs-services", count=18_000)
    incident = only(node)
    assert incident.verdict.cause == "interrupt-handler"
    assert "over 18,000 ipvs services" in incident.verdict.summary


@pytest.mark.parametrize("count", [182_000, 40_000])
def test_ack_and_k8s_64137_a_walk_over_living_cgroups_is_a_walk_and_they_are_no_zombies(
    count: int,
) -> None:
    path = "openat > do_sys_openat2, path_openat, link_path_walk, kernfs_iop_lookup, cgroup_frob"
    turns = "....h...hh...hhh...hhhh...hhhhh...hhhhhh...hhhhhhh......"
    node = core_held(f"system  kubelet[55]  /system.slice/kubelet.service  {path}", turns)
    for number in range(8):
        share = (number + 1) / 8
        node.add(
            "cgroups",
            number * 7,
            controller="memory",
            path="/",
            tracked=round(count * share),
            visible=round(count * share),
            dying=0,
        )
    incident = diagnose(node).incidents[-1]
    assert incident.verdict.cause == "kernel-state-walk"
    assert incident.verdict.walked is not None
    assert incident.verdict.walked.population == "cgroups"
    assert incident.verdict.culprit is not None
    assert incident.verdict.culprit.comm == "kubelet"


def test_cloudflare_2015_a_receive_queue_that_is_collapsed_is_named() -> None:
    path = f"{RECEIVE}, process_backlog, ip_rcv, tcp_v4_rcv, tcp_prune_queue, tcp_collapse"
    incident = only(packets(core_held(f"softirq  ksoftirqd/1[17]  /  > {path}"), 900))
    assert incident.verdict.cause == "interrupt-handler"
    assert "tcp_collapse" in incident.verdict.summary


def test_cloudflare_2025_a_trie_that_is_freed_entry_by_entry_is_reported_with_its_worker() -> None:
    path = f"{WORKER}, bpf_map_free_deferred, trie_free"
    node = core_held(f"system  kworker/u9:1[66]  /  {path}", turns="." * 20 + "h" * 24 + "." * 20)
    line = "watchdog: BUG: soft lockup - CPU#1 stuck for 22s! [kworker/u9:1:66]"
    node.event(44, "soft_lockup", line, cpu=1, comm="kworker/u9:1", pid=66)
    incident = only(node)
    assert incident.verdict.cause in ("unknown", "kernel-state-walk")
    assert incident.verdict.culprit is not None
    assert incident.verdict.culprit.path[-1] == "trie_free"
    assert "trie_free" in incident.verdict.summary


def test_netflix_2026_containers_that_copy_a_long_mount_table_are_a_walk() -> None:
    path = "unshare > ksys_unshare, unshare_nsproxy_namespaces, copy_mnt_ns, copy_tree, clone_mnt"
    node = core_held(f"system  runc[91]  /system.slice/containerd.service  {path}")
    node.add("populations", 5, kind="mounts", count=31_000)
    incident = only(node)
    assert incident.verdict.cause == "kernel-state-walk"
    assert "31,000 mounts" in incident.verdict.summary


@pytest.mark.parametrize(
    "lock",
    [
        "__mutex_lock.constprop.0;cgroup_kn_lock_live;cgroup_mkdir;kernfs_iop_mkdir",
        "__mutex_lock.constprop.0;cgroup_lock_and_drain_offline;cgroup_kn_lock_live;cgroup_rmdir",
    ],
    ids=("benchexec 1293", "titus-executor 975"),
)
def test_tasks_behind_the_mutex_of_cgroups_are_a_convoy_and_no_disk(lock: str) -> None:
    node = drawn_node(f"core 0:  {'.' * 40}\ncore 1:  {'.' * 40}")
    unlock = "wake_up_q;__mutex_unlock_slowpath;cgroup_kn_unlock;cgroup_rmdir"
    for pid, second in ((101, 10.0), (102, 10.4), (103, 11.0)):
        ended = by("reaper", 90, stack=unlock)
        wait(node, second, 13.0 - second, comm=f"run-{pid}", pid=pid, stack=lock, **ended)
    incident = only(node)
    assert incident.verdict.cause == "kernel-lock-convoy"
    assert incident.verdict.culprit is not None
    assert incident.verdict.culprit.comm == "reaper"


def test_kuberay_3827_a_raylet_that_waits_for_its_core_is_told_apart_from_rays_own_line() -> None:
    node = drawn_node(
        f"core 0:  {'.' * 60}\ncore 1:  {'.' * 30}{'h' * 20}{'.' * 10}\n"
        "h: user  indexer[44]  /kubepods/b  main, work"
    )
    for second in range(30, 50):
        wait(node, second, 0.95, comm="raylet", pid=71, **by("indexer", 44))
    node.event(55, "ray_node_dead", "Node 10.0.0.7 marked dead: health check failed")
    incidents = diagnose(node).incidents
    ray = next(one for one in incidents if any(e.kind == "ray_node_dead" for e in one.events))
    assert ray.core is None
    assert ray.verdict.cause == "unknown"


def test_suse_a_slow_console_that_holds_softirqs_back_is_reported_with_its_path() -> None:
    path = "printk > vprintk_emit, console_unlock, serial8250_console_write, wait_for_xmitr"
    node = core_held(f"system  kworker/1:0[60]  /  {path}")
    for second in range(31, 44):
        node.delay(second, 1, 0.9, "timer").delay(second, 1, 0.9, "net_rx")
    incident = only(node)
    assert incident.verdict.cause == "softirq-blackout"
    assert incident.verdict.culprit is not None
    assert "serial8250_console_write" in incident.verdict.culprit.path


def test_runc_4853_and_dcgm_311_a_busy_daemon_is_described_by_its_own_path() -> None:
    for comm, path in (
        ("systemd", "sd_event_dispatch, bus_process > ksys_read, vfs_read, kernfs_fop_read_iter"),
        ("dcgm-exporter", "nvmlDeviceGet > do_vfs_ioctl, nvidia_unlocked_ioctl, rm_ioctl"),
    ):
        incident = only(core_held(f"system  {comm}[1]  /system.slice/{comm}.service  {path}"))
        assert incident.verdict.cause == "unknown"
        assert f"by {comm} in" in incident.verdict.summary
        assert incident.verdict.origin is not None
        assert incident.verdict.origin.name == f"{comm}.service"


def test_booking_2018_the_seconds_before_the_crash_are_there_with_the_core_and_its_path() -> None:
    node = core_held("system  mysqld[12]  /  write > ksys_write, vfs_write, ext4_frob_tree")
    node.event(52, "kernel_panic", "Kernel panic - not syncing: Fatal exception")
    incidents = diagnose(node).incidents
    held = next(one for one in incidents if one.core == 1)
    assert "by mysqld in ext4_frob_tree" in held.verdict.summary
    assert any(event.kind == "kernel_panic" for one in incidents for event in one.events)


def test_cloudflare_2024_a_search_for_a_free_port_is_a_walk_over_sockets() -> None:
    path = "connect > __sys_connect, inet_stream_connect, tcp_v4_connect, __inet_hash_connect"
    node = core_held(f"system  proxy[31]  /system.slice/proxy.service  {path}")
    node.add("populations", 5, kind="tcp-sockets", count=27_000)
    incident = only(node)
    assert incident.verdict.cause == "kernel-state-walk"
    assert "27,000 tcp sockets" in incident.verdict.summary
