"""Who is blamed, and who only was there."""

from tests.drawn_node import DrawnNode, drawn_node

from necroscope.analysis.engine import diagnose
from necroscope.analysis.report import Culprit

ID = "0a1b" * 16


def culprit_of(node: DrawnNode) -> Culprit:
    (incident,) = diagnose(node).incidents
    assert incident.verdict.culprit is not None
    return incident.verdict.culprit


def held_by(cgroup: str) -> DrawnNode:
    return drawn_node(
        f"core 0: ...........\ncore 1: ....kkkkk..\nk: system  worker[8]  {cgroup}  main > odd_loop"
    )


def test_a_task_that_was_interrupted_is_not_blamed_for_the_interrupts() -> None:
    node = drawn_node("""
        core 0:  ....................
        core 1:  ........xxxxxx......
        x: system  victim[2]  /  main > asm_common_interrupt, handle_softirqs, net_rx_action
        x: system  tool[4]  /  main > ksys_ioctl, odd_loop
        x: system  tool[4]  /  main > ksys_ioctl, odd_loop
        x: system  victim[2]  /  main > asm_common_interrupt, handle_softirqs, net_rx_action
        x: system  victim[2]  /  main > asm_common_interrupt, common_interrupt, handle_irq_event
        """)
    assert culprit_of(node).comm == "tool"


def test_an_interrupt_of_an_arm64_kernel_is_not_the_work_of_the_task_below_it() -> None:
    entered = "el1h_64_irq, el1h_64_irq_handler, el1_interrupt, do_interrupt_handler"
    node = drawn_node(f"""
        core 0:  ....................
        core 1:  ........xxxxxx......
        x: system  victim[2]  /  main > {entered}, call_on_irq_stack, gic_handle_irq, odd_handler
        x: system  tool[4]  /  main > __arm64_sys_ioctl, odd_loop
        x: system  victim[2]  /  main > {entered}, irq_exit_rcu, do_softirq_own_stack, odd_poll
        """)
    assert culprit_of(node).comm == "tool"


def test_the_unit_is_told_from_the_cgroup() -> None:
    assert culprit_of(held_by("/system.slice/agent.service")).unit == "agent.service"


def test_the_container_is_told_from_the_cgroup_and_by_its_name_where_that_is_known() -> None:
    node = held_by(f"/kubepods/burstable/pod1/{ID}")
    assert culprit_of(node).container == ID[:12]
    assert (
        culprit_of(node.add("containers", 1, container=ID, name="sidecar")).container == "sidecar"
    )


def test_many_short_processes_of_one_name_are_one_culprit_without_a_pid() -> None:
    lines = "\n".join(
        f"k: system  runc[{pid}]  /jobs  main > copy_process" for pid in range(100, 120)
    )
    found = culprit_of(drawn_node(f"core 0: ...........\ncore 1: ....kkkkk..\n{lines}"))
    assert (found.comm, found.pid) == ("runc", None)


def test_threads_with_names_of_their_own_are_one_culprit() -> None:
    pool = "\n".join(f"k: system  worker-{number}[5]  /a  main > odd_loop" for number in range(16))
    node = drawn_node(f"core 0: ...........\ncore 1: ....kkkkk..\n{pool}")
    assert (culprit_of(node).pid, culprit_of(node).path[-1]) == (5, "odd_loop")
    assert any(
        item.text.endswith("has 100% of core 1's samples")
        for item in diagnose(node).incidents[0].verdict.evidence
    )


def test_a_process_that_ran_all_along_under_another_threads_name_did_not_grow() -> None:
    node = drawn_node("""
        core 0:  ................................
        core 1:  uuuuuuuuuuuuuuuuxxxxxxxxuuuuuuuu
        u: user  step-1[7]  /  main, step
        x: system  step-2[7]  /  main, step > odd_entry, odd_trap
        x: system  step-2[7]  /  main, step > odd_entry, odd_trap
        x: system  tool[44]  /  main > ksys_ioctl, odd_loop
        """)
    assert culprit_of(node).comm == "tool"


def test_the_path_is_the_culprits_own() -> None:
    """Others are in the same functions by another way, and by more of them together."""
    loop = "fsnotify, send_to_group"
    node = drawn_node(f"""
        core 0:  ....................
        core 1:  ........xxxxxx......
        x: system  writer[4]  /  main > ksys_write, {loop}, inotify_handle_inode_event
        x: system  writer[4]  /  main > ksys_write, {loop}, inotify_handle_inode_event
        x: system  sh[5]  /  main > do_sys_open, {loop}, fanotify_handle_event
        x: system  ls[6]  /  main > do_sys_open, {loop}, fanotify_handle_event
        x: system  cat[7]  /  main > do_sys_open, {loop}, fanotify_handle_event
        """)
    found = culprit_of(node)
    assert (found.comm, found.path) == (
        "writer",
        ("main", "ksys_write", "fsnotify", "send_to_group", "inotify_handle_inode_event"),
    )


def test_who_has_less_than_half_of_a_core_does_not_hold_it() -> None:
    lines = "\n".join(
        f"k: system  job{pid}[{pid}]  /jobs  main > odd_loop" for pid in range(100, 103)
    )
    (incident,) = diagnose(
        drawn_node(f"core 0: ...........\ncore 1: ....kkkkk..\n{lines}")
    ).incidents
    assert "held in system mode for" in incident.verdict.summary
    assert "with job100 on it 34% of the time" in incident.verdict.summary
    assert any(
        item.text == "job100 has 34% of core 1's samples" for item in incident.verdict.evidence
    )


def test_the_evidence_speaks_of_the_culprit_and_of_who_had_more() -> None:
    node = drawn_node("""
        core 0:  ................................
        core 1:  uuuuuuuuuuuuuuuuxxxxxxxxuuuuuuuu
        u: user  trainer[7]  /  main, step
        x: system  trainer[7]  /  main, step > odd_entry, odd_trap
        x: system  trainer[7]  /  main, step > odd_entry, odd_trap
        x: system  tool[44]  /  main > ksys_ioctl, odd_loop
        """)
    (incident,) = diagnose(node).incidents
    assert any(
        item.text == "tool has 32% of core 1's samples, trainer 68%"
        for item in incident.verdict.evidence
    )


def test_a_task_whose_name_nobody_saw_is_a_number_and_no_origin() -> None:
    node = drawn_node(
        "core 0: ..............\ncore 1: ....kkkkkkk...\nk: system  :29838[29838]  /  read >"
        " vfs_read, seq_read, tcp4_seq_show"
    )
    (incident,) = diagnose(node).incidents
    assert incident.verdict.summary.startswith("pid 29838 (name not seen) reads")
    assert incident.verdict.origin is None
    assert incident.verdict.as_json()["culprit"]["comm"] is None
    assert incident.verdict.as_json()["culprit"]["pid"] == 29838


def test_where_interrupts_come_back_on_is_not_where_the_work_is() -> None:
    for skid in (
        "_raw_spin_unlock_irqrestore",
        "finish_task_switch.isra.0",
        "__raw_spin_unlock, _raw_spin_unlock",
        "arch_local_irq_restore",
        "__raw_spin_unlock_irqrestore, arch_local_irq_enable",
    ):
        node = drawn_node(
            "core 0: ...........\ncore 1: ....kkkkk..\nk: system  worker[8]  /  main > odd_ioctl,"
            f" odd_loop, {skid}"
        )
        assert culprit_of(node).path[-1] == "odd_loop"
        assert all(
            "unlock" not in item.text for item in diagnose(node).incidents[0].verdict.evidence
        )
