"""Tasks behind a sleeping lock of the kernel, with all cores idle."""

from tests.drawn_node import DrawnNode, drawn_node
from tests.drawn_waits import by, wait

from necroscope.analysis.engine import diagnose

RTNL = "__mutex_lock.constprop.0;rtnetlink_rcv_msg;netlink_rcv_skb;__sys_sendto"
UNLOCK = "wake_up_q;__mutex_unlock_slowpath;rtnl_unlock;rtnl_dellink;rtnetlink_rcv_msg"
UP_WRITE = "wake_up_q;rwsem_wake;up_write;iterate_dir"
DIRECTORY = "rwsem_down_read_slowpath;down_read;iterate_dir;__x64_sys_getdents64"


def idle() -> DrawnNode:
    return drawn_node(
        """
        core 0:  ..............................
        core 1:  ..............................
        """
    )


def behind_rtnl() -> DrawnNode:
    node = idle()
    for pid, second in ((101, 10.0), (102, 10.4), (103, 11.0)):
        ended = by("cni-plugin", 90, stack=UNLOCK)
        wait(node, second, 12.5 - second, comm=f"ip-{pid}", pid=pid, stack=RTNL, **ended)
    return node


def test_the_lock_its_holder_and_who_waited_are_named() -> None:
    (incident,) = diagnose(behind_rtnl()).incidents
    verdict = incident.verdict
    assert (incident.core, verdict.cause) == (None, "kernel-lock-convoy")
    assert verdict.confidence >= 0.9
    assert "3 tasks waited up to 2.5 s for rtnl_mutex, which cni-plugin held" in verdict.summary
    assert verdict.culprit is not None
    assert (verdict.culprit.comm, verdict.culprit.pid) == ("cni-plugin", 90)
    assert verdict.culprit.path[0] == "rtnetlink_rcv_msg"


def test_what_the_holder_waited_for_is_followed() -> None:
    node = wait(
        behind_rtnl(), 10.1, 2.3, comm="cni-plugin", pid=90, stack="synchronize_net;nf_unregister"
    )
    (incident,) = diagnose(node).incidents
    texts = [evidence.text for evidence in incident.verdict.evidence]
    followed = "meanwhile cni-plugin[90] waited 2.30 s for a grace period of RCU (synchronize_net)"
    assert any(followed in text for text in texts)


def test_a_holder_that_worked_is_reported_with_what_it_worked_on() -> None:
    node = drawn_node(
        """
        core 0:  ..........www.................
        core 1:  ..............................
        w: system  cni-plugin[90]  /pods  rtnl_dellink, unregister_netdevice_many, device_del
        """
    )
    for pid in (101, 102):
        ended = by("cni-plugin", 90, stack=UNLOCK)
        wait(node, 10.0, 2.5, comm=f"ip-{pid}", pid=pid, stack=RTNL, **ended)
    found = [
        evidence.text
        for incident in diagnose(node).incidents
        if incident.verdict.cause == "kernel-lock-convoy"
        for evidence in incident.verdict.evidence
    ]
    assert any(
        "cni-plugin[90] ran for 2." in text and "device_del < unregister" in text for text in found
    )
    assert not any("no wait of cni-plugin itself" in text for text in found)


def test_one_that_passes_the_lock_on_is_not_the_one_that_held_it() -> None:
    node = idle()
    wait(node, 10, 2.0, comm="first", pid=101, stack=RTNL, **by("slow", 90, stack=UNLOCK))
    wait(node, 10.5, 1.501, comm="second", pid=102, stack=RTNL, **by("first", 101, stack=UNLOCK))
    (incident,) = diagnose(node).incidents
    assert incident.verdict.culprit is not None
    assert incident.verdict.culprit.comm == "slow"


def test_a_lock_that_was_not_given_back_is_reported_as_such() -> None:
    node = idle()
    for pid in (101, 102):
        wait(node, 10, 12.0, pid=pid, stack=RTNL, is_open=True)
    (incident,) = diagnose(node).incidents
    assert incident.verdict.cause == "kernel-lock-convoy"
    assert "not released" in incident.verdict.summary


def test_a_directory_held_while_its_holder_waits_for_the_disk_is_not_named() -> None:
    node = idle()
    for pid in (101, 102):
        wait(node, 10, 1.5, pid=pid, stack=DIRECTORY, **by("find", 90, stack=UP_WRITE))
    wait(node, 10, 1.5, comm="find", pid=90, stack="folio_wait_bit_common;ext4_bread")
    assert not diagnose(node).incidents


def test_a_moment_of_one_task_is_no_incident() -> None:
    assert not diagnose(wait(idle(), 10, 0.3, stack=RTNL, **by("ip", 90))).incidents
    assert not diagnose(wait(idle(), 10, 0.4, stack=DIRECTORY, **by("ls", 90))).incidents


def test_two_directories_are_two_convoys() -> None:
    node = idle()
    for pid, holder in ((101, 90), (102, 90), (103, 91)):
        ended = by(f"find-{holder}", holder, stack=UP_WRITE)
        wait(node, 10 + (pid - 101) / 9, 1.5, f"ls-{pid}", pid, stack=DIRECTORY, **ended)
    (incident,) = diagnose(node).incidents
    assert "2 tasks waited up to 1.5 s for i_rwsem, which find-90 held" in incident.verdict.summary


def test_the_maps_of_two_processes_are_two_locks() -> None:
    node, stack = idle(), "rwsem_down_read_slowpath;down_read;do_user_addr_fault"
    for pid in (101, 102):
        wait(node, 10, 1.5, pid=pid, stack=stack, **by("jit", pid, stack=UP_WRITE) | {"by_tid": 9})
    assert "a task waited" in diagnose(node).incidents[0].verdict.summary


def test_one_that_freed_a_sleeper_by_a_signal_did_not_hold_the_lock() -> None:
    node, stack = idle(), "wake_up_state;signal_wake_up_state;complete_signal"
    for pid in (101, 102):
        wait(node, 10, 2.5, pid=pid, stack=RTNL, **by("kill", 90, stack=stack))
    verdict = diagnose(node).incidents[0].verdict
    assert "whose holder was not seen" in verdict.summary
    assert verdict.culprit is None or verdict.culprit.comm != "kill"


def test_the_thread_that_ran_inside_mmap_lock_held_it_although_nobody_saw_it_end() -> None:
    node = drawn_node(
        """
        core 0:  ..............................
        core 1:  ..........ffffffff............
        f: system  filler[70]  /a  main > do_syscall_64, do_madvise, handle_mm_fault, clear_page
        """
    )
    killed = by("kill", 90, stack="complete_signal;do_send_sig_info;__x64_sys_kill;do_syscall_64")
    wait(node, 10, 8.0, "service", 70, tid=71, stack="vm_mmap_pgoff;do_syscall_64", **killed)
    (incident,) = [i for i in diagnose(node).incidents if i.core is None]
    assert incident.verdict.cause == "kernel-lock-convoy"
    assert "mmap_lock of process 70, which filler held" in incident.verdict.summary
    assert incident.verdict.culprit is not None
    assert incident.verdict.culprit.comm == "filler"


def test_another_process_in_the_same_section_is_not_the_holder() -> None:
    node = drawn_node(
        """
        core 0:  ..............................
        core 1:  ..........ffffffff............
        f: system  other[99]  /a  main > do_syscall_64, do_madvise, handle_mm_fault, clear_page
        """
    )
    wait(node, 10, 8.0, "service", 70, tid=71, stack="vm_mmap_pgoff", is_open=True)
    (incident,) = [i for i in diagnose(node).incidents if i.core is None]
    assert incident.verdict.cause == "unknown"


def test_many_that_take_a_lock_in_turn_are_told_as_a_crowd() -> None:
    node = drawn_node(
        """
        core 0:  ..............................
        core 1:  ..............................
        """
    )
    for turn in range(40):
        pid, before = 70 + turn % 6, 70 + (turn + 5) % 6
        given = by(f"mover-{before}", before, stack="__mutex_unlock_slowpath;do_renameat2")
        where = "do_renameat2;__x64_sys_rename"
        lasts_s = min(0.6, 0.1 * (turn + 2))  # the first ones wait for one or two
        wait(node, 10 + turn / 10, lasts_s, f"mover-{pid}", pid, stack=where, **given)
    (incident,) = diagnose(node).incidents
    assert incident.verdict.cause == "kernel-lock-convoy"
    assert "took in turn" in incident.verdict.summary
