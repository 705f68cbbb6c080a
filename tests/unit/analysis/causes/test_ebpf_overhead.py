"""Programs at hooks cost those who pass there; a program that is tried out, or the recorder's own,
does not.
"""

from tests.drawn_node import drawn_node

from necroscope.analysis.engine import diagnose

ENTRY = "do_syscall_64, syscall_trace_enter, __bpf_trace_sys_enter, bpf_trace_run2"
PROGRAM = "bpf_prog_66d006de52adb6a7_sys_enter"


def picture(*paths: str, modes: str = "system") -> str:
    lines = "\n".join(
        f"    p: {modes}  {comm}  /  main, stat > {path}"
        for comm, path in (each.split(" ", 1) for each in paths)
    )
    return (
        "core 0:  ..............................\n    core 1: "
        f" ...............pppppp.........\n{lines}"
    )


def test_a_program_on_every_system_call_is_named_with_who_pays() -> None:
    paths = (
        f"trainer[10] {ENTRY}, {PROGRAM}, __htab_map_lookup_elem",
        f"loader[11] {ENTRY}, {PROGRAM}",
        "trainer[10] do_syscall_64, vfs_statx",
    )
    (incident,) = diagnose(drawn_node(picture(*paths))).incidents
    assert (incident.core, incident.verdict.cause) == (1, "ebpf-overhead")
    assert incident.verdict.culprit is not None
    assert incident.verdict.culprit.comm == "trainer"
    assert incident.verdict.origin is not None
    assert incident.verdict.origin.name == "BPF program sys_enter"
    assert any("loader" in item.text for item in incident.verdict.evidence)


def test_a_cheap_program_is_not_named() -> None:
    paths = (f"trainer[10] {ENTRY}, {PROGRAM}", *["trainer[10] do_syscall_64, vfs_statx"] * 4)
    (incident,) = diagnose(drawn_node(picture(*paths))).incidents
    assert incident.verdict.cause == "unknown"


def test_a_test_run_is_its_owners_own_work() -> None:
    path = (
        "owner[12] do_syscall_64, __sys_bpf, bpf_prog_test_run_skb, bpf_test_run, bpf_trace_run2,"
        " bpf_prog_11d006de52adb6a7_main"
    )
    (incident,) = diagnose(drawn_node(picture(path))).incidents
    assert incident.verdict.cause == "unknown"


def test_the_recorders_own_programs_are_left_out() -> None:
    path = (
        "trainer[10] __raise_softirq_irqoff, perf_trace_softirq, trace_call_bpf,"
        " bpf_prog_66d006de52adb6a7_necroscope"
    )
    (incident,) = diagnose(drawn_node(picture(path))).incidents
    assert incident.verdict.cause == "unknown"


def test_a_lock_that_a_program_waits_for_is_still_the_programs_cost() -> None:
    path = (
        f"trainer[10] {ENTRY}, {PROGRAM}, htab_map_update_elem, _raw_spin_lock_irqsave,"
        " native_queued_spin_lock_slowpath"
    )
    (incident,) = diagnose(drawn_node(picture(path))).incidents
    assert incident.verdict.cause == "ebpf-overhead"


def test_a_function_that_a_trampoline_calls_is_not_the_programs_cost() -> None:
    plain = (
        "reader[10] do_syscall_64, ksys_read, bpf_trampoline_6442536467, vfs_read, filemap_read,"
        " copy_page_to_iter"
    )
    (incident,) = diagnose(drawn_node(picture(plain))).incidents
    assert incident.verdict.cause == "unknown"
    paid = (
        f"reader[10] do_syscall_64, ksys_read, bpf_trampoline_6442536467, {PROGRAM},"
        " htab_map_update_elem"
    )
    (incident,) = diagnose(drawn_node(picture(plain, paid))).incidents
    assert incident.verdict.cause == "ebpf-overhead"
    assert incident.verdict.summary.startswith("BPF program sys_enter takes 50%")
    assert incident.verdict.evidence[0].text.startswith("BPF programs at hooks: 50%")


def test_a_program_without_a_name_is_known_by_its_hook() -> None:
    (incident,) = diagnose(drawn_node(picture(f"trainer[10] {ENTRY}, [unknown]"))).incidents
    assert incident.verdict.cause == "ebpf-overhead"


POLL = "run_ksoftirqd, handle_softirqs, net_rx_action, __napi_poll, ena_io_poll"


def test_a_datapath_is_no_overhead_of_system_calls() -> None:
    paths = (
        (
            f"ksoftirqd/1[17] {POLL}, tcf_classify, cls_bpf_classify,"
            " bpf_prog_0123456789abcdef_cil_from_netdev"
        ),
        f"ksoftirqd/1[17] {POLL}, tcp_v4_rcv",
    )
    assert "ebpf-overhead" not in [
        one.verdict.cause
        for one in diagnose(drawn_node(picture(*paths, modes="softirq"))).incidents
    ]


def test_a_filter_of_a_cgroup_in_a_softirq_is_nobodys_system_call() -> None:
    path = (
        f"ksoftirqd/1[17] {POLL}, sk_filter_trim_cap, __cgroup_bpf_run_filter_skb,"
        " bpf_prog_0123456789abcdef_sd_fw_ingress"
    )
    assert "ebpf-overhead" not in [
        one.verdict.cause for one in diagnose(drawn_node(picture(path, modes="softirq"))).incidents
    ]


def test_a_datapath_below_a_send_is_the_programs_own_work() -> None:
    path = (
        "sender[10] do_syscall_64, tcp_sendmsg, tcf_classify, cls_bpf_classify,"
        " bpf_prog_0123456789abcdef_cil_to_netdev"
    )
    (incident,) = diagnose(drawn_node(picture(path))).incidents
    assert incident.verdict.cause == "unknown"
