"""Waits as the analysis sees them: parts of one wait, what was waited for, and the episodes they
make.
"""

import pytest
from tests.drawn_node import at, drawn_node
from tests.drawn_waits import by, wait

from necroscope.analysis.detect import detect
from necroscope.analysis.engine import diagnose
from necroscope.analysis.episodes import EpisodeKind
from necroscope.analysis.node import Node
from necroscope.analysis.wait_channels import channel_of
from necroscope.model.span import Span

IDLE = """
    core 0:  ..............................
    core 1:  ..............................
    """


def episodes(node, kind):  # type: ignore[no-untyped-def]
    return [one for one in detect(Node(node, (at(0), at(30)))) if one.kind is kind]


def test_rows_of_a_wait_that_went_on_are_one_wait() -> None:
    node = drawn_node(IDLE)
    for lasted in (1.0, 2.0, 4.0):
        wait(node, 10, lasted, is_open=True)
    wait(node, 10, 5.5)
    (one,) = Node(node, (at(0), at(30))).waits
    assert (one.from_ns, one.seconds, one.is_open) == (at(10), 5.5, False)


def test_a_task_that_waits_for_a_core_is_an_episode_without_a_busy_core() -> None:
    (one,) = episodes(wait(drawn_node(IDLE), 10, 0.9), EpisodeKind.TASK_DELAYED)
    assert (one.cpu, one.from_ns, one.is_strong) == (1, at(10), False)
    assert "900 ms" in one.text


def test_one_that_starves_is_an_incident_even_if_nothing_explains_it() -> None:
    (incident,) = diagnose(wait(drawn_node(IDLE), 10, 6.0)).incidents
    assert incident.verdict.cause == "unknown"
    assert any("6,000 ms" in evidence.text for evidence in incident.verdict.evidence)


def test_nice_work_may_wait() -> None:
    node = wait(drawn_node(IDLE), 10, 6.0, priority=10)
    assert not episodes(node, EpisodeKind.TASK_DELAYED)


def test_many_short_waits_are_a_crowded_core_and_few_are_not() -> None:
    node = drawn_node(IDLE)
    for tenth in range(100):
        wait(node, 10 + tenth / 10, 0.08, pid=70 + tenth % 4)
    (one,) = episodes(node, EpisodeKind.TASK_DELAYED)
    assert 8 <= one.seconds <= 11
    few = drawn_node(IDLE)
    for second in range(10):
        wait(few, 10 + second, 0.08)
    assert not episodes(few, EpisodeKind.TASK_DELAYED)


def test_an_ordinary_sleep_is_no_episode() -> None:
    node = wait(drawn_node(IDLE), 10, 5.0, stack="wait_for_partner;fifo_open")
    assert not episodes(node, EpisodeKind.TASK_BLOCKED)


@pytest.mark.parametrize(
    ("stack", "name"),
    [
        ("__mutex_lock.constprop.0;rtnetlink_rcv_msg;netlink_rcv_skb", "rtnl_mutex"),
        ("__mutex_lock;cgroup_kn_lock_live;__cgroup_procs_write", "cgroup_mutex"),
        ("percpu_rwsem_wait;__percpu_down_read;cgroup_can_fork", "cgroup_threadgroup_rwsem"),
        ("rwsem_down_read_slowpath;down_read;do_user_addr_fault", "mmap_lock"),
        ("rwsem_down_write_slowpath;down_write;ext4_buffered_write_iter", "i_rwsem"),
        ("percpu_rwsem_wait;__percpu_down_read;vfs_write", "s_writers of a frozen file system"),
        ("__mutex_lock;nvme_reset_work", "the lock of nvme_reset_work"),
    ],
)
def test_a_lock_is_named_by_who_asks_for_it(stack: str, name: str) -> None:
    channel = channel_of("blocked", tuple(stack.split(";")))
    assert (channel.kind, channel.name) == ("lock", name)


@pytest.mark.parametrize(
    ("stack", "release", "name"),
    [
        (
            "cgroup_kn_lock_live;__cgroup_procs_write",
            "__mutex_unlock_slowpath.isra.0",
            "cgroup_mutex",
        ),
        ("do_truncate;path_openat", "rwsem_wake.isra.0;up_write", "i_rwsem"),
        ("exit_signals;do_exit", "percpu_rwsem_wake_function", "cgroup_threadgroup_rwsem"),
    ],
)
def test_where_the_kernel_hides_the_slow_path_the_way_it_was_woken_tells_the_lock(
    stack: str, release: str, name: str
) -> None:
    woken_by = ("wake_up_q", *release.split(";"))
    assert channel_of("blocked", tuple(stack.split(";")), woken_by).name == name


def test_a_global_lock_that_was_not_given_back_is_known_by_its_caller() -> None:
    assert channel_of("blocked", ("rtnl_lock", "devinet_ioctl")).name == "rtnl_mutex"
    assert channel_of("blocked", ("ext4_sync_file",)).kind == "other"


@pytest.mark.parametrize(
    ("stack", "kind"),
    [
        (
            "balance_dirty_pages;balance_dirty_pages_ratelimited_flags;generic_perform_write",
            "writeback",
        ),
        ("folio_wait_bit_common;filemap_fault", "device"),
        ("submit_bio_wait;blkdev_issue_discard", "device"),
        ("nv_drive_lock", "other"),
        ("", "other"),
    ],
)
def test_other_sleeps_are_reported_by_their_functions(stack: str, kind: str) -> None:
    assert channel_of("blocked", tuple(filter(None, stack.split(";")))).kind == kind


@pytest.mark.parametrize(
    ("kind", "stack", "found", "words"),
    [
        ("unread", "anon_pipe_write;vfs_write", "unread", "full pipe"),
        ("unread", "request_wait_answer;fuse_file_write_iter", "device", "file server"),
        ("file_lock", "request_wait_answer;fuse_file_flock", "device", "file server"),
        ("blocked", "handle_userfault;__handle_mm_fault", "other", "userfaultfd(2)"),
        ("blocked", "kernel_clone;__do_sys_vfork", "child", "vfork"),
        ("blocked", "unix_wait_for_peer;unix_stream_connect", "answer", "accept"),
        ("blocked", "wait_for_partner;fifo_open", "ordinary", "FIFO"),
        ("blocked", "inet_wait_for_connect;__inet_stream_connect", "ordinary", "another machine"),
        ("unread", "wait_woken;n_tty_write;file_tty_write", "unread", "full pipe"),
        ("unread", "do_msgsnd;__x64_sys_msgsnd", "unread", "full pipe"),
        ("blocked", "do_freezer_trap;get_signal", "stopped", "frozen"),
        ("stopped", "get_signal;arch_do_signal_or_restart", "stopped", "frozen"),
        ("stopped", "ptrace_stop;get_signal", "stopped", "tracer"),
        ("stopped", "", "stopped", "stopped"),
    ],
)
def test_no_sleep_for_another_process_is_called_a_lock_or_idle(
    kind: str, stack: str, found: str, words: str
) -> None:
    channel = channel_of(kind, tuple(filter(None, stack.split(";"))))
    assert channel.kind == found
    assert words in channel.words


def test_who_waits_for_rcu_behind_another_stands_at_no_lock() -> None:
    woken_by = ("wake_up_q", "__mutex_unlock_slowpath", "synchronize_rcu_expedited")
    channel = channel_of("blocked", ("exp_funnel_lock", "synchronize_rcu_expedited"), woken_by)
    assert channel.kind == "ordinary"


def test_a_wait_without_a_known_mechanism_is_described() -> None:
    stack = "handle_userfault;__handle_mm_fault"
    woken = by("pager", 90, stack="userfaultfd_wake_function;__wake_up")
    node = wait(drawn_node(IDLE), 10, 12.0, "guest", stack=stack, **woken)
    (incident,) = diagnose(node).incidents
    verdict = incident.verdict
    assert verdict.cause == "unknown"
    assert verdict.summary.startswith("guest[71] waited 12.00 s in a page fault")
    texts = " / ".join(evidence.text for evidence in verdict.evidence)
    assert "slept in handle_userfault < __handle_mm_fault" in texts
    assert "pager[90] ended it, through userfaultfd_wake_function" in texts
    assert "idle" in texts
    assert any("--victim 71" in text for text in verdict.fix)


def test_two_waits_at_one_moment_have_ids_of_their_own() -> None:
    node = wait(drawn_node(IDLE), 10, 12.0, "guest", stack="handle_userfault")
    wait(node, 10, 12.0, "shell", 80, stack="kernel_clone;__do_sys_vfork")
    assert len({incident.id for incident in diagnose(node).incidents}) == 2


def test_rows_of_one_wait_are_counted_once() -> None:
    """One task that waits now and then is no crowd, however often each wait was written."""
    node = drawn_node(IDLE)
    for second in range(8, 20):
        for lasted in (0.05, 0.08, 0.1, 0.12):
            wait(node, second, lasted, is_open=True)
        wait(node, second, 0.15)
    assert not episodes(node, EpisodeKind.TASK_DELAYED)


def test_a_long_wait_is_a_part_of_each_second_that_it_lasts() -> None:
    node = drawn_node(IDLE)
    for lasted in (1.0, 2.0, 4.0, 8.0):
        wait(node, 10, lasted, is_open=True)
    found = episodes(node, EpisodeKind.TASK_DELAYED)
    assert {round(one.level, 1) for one in found} == {8.0}
    assert {one.amount for one in found} == {1}


def test_a_cgroup_below_one_without_quota_left_does_not_crowd_a_core() -> None:
    node = drawn_node(IDLE)
    for tenth in range(100):
        wait(node, 10 + tenth / 10, 0.08, pid=70 + tenth % 4, cgroup="/pod/app")
    assert episodes(node, EpisodeKind.TASK_DELAYED)
    for second in (15, 20):
        node.add(
            "cgroups", second, controller="cpu", path="/pod", nr_throttled=9, throttled_ns=4 * 10**9
        )
    assert not episodes(node, EpisodeKind.TASK_DELAYED)


def test_who_comes_to_wait_for_a_rwsem_and_lets_others_go_on_did_not_have_it() -> None:
    node = drawn_node(IDLE)
    passed = by("python", 80, stack="wake_up_q;rwsem_down_write_slowpath;vm_mmap_pgoff")
    wait(node, 10, 2.0, stack="__access_remote_vm;proc_pid_cmdline_read", **passed)
    (one,) = Node(node, Span(at(0), at(30))).waits
    assert one.channel.kind == "lock"
    assert one.given_by is None
