"""Softirqs that do not run on a core."""

from tests.drawn_node import DrawnNode, drawn_node

from necroscope.analysis.engine import diagnose


def held(frames: str = "__x64_sys_ioctl, odd_driver_loop", mode: str = "system") -> DrawnNode:
    return drawn_node(
        f"""
        core 0:  ..............................
        core 1:  ..........dddddd..............
        d: {mode}  driver-tool[31]  /system.slice/tool.service  main > {frames}
        """
    )


def test_timers_and_packets_that_wait_alike_are_a_blackout() -> None:
    (incident,) = diagnose(held().delay(16, 1, 1.4, "net_rx").delay(16, 1, 1.4, "timer")).incidents
    assert (incident.core, incident.mode, incident.verdict.cause) == (
        1,
        "system",
        "softirq-blackout",
    )
    assert incident.verdict.culprit is not None
    assert incident.verdict.culprit.comm == "driver-tool"
    assert "up to 1.4 s" in incident.verdict.summary


def test_a_stall_in_progress_is_seen_before_it_ends() -> None:
    node = held().delay(12, 1, 0.0, "timer", pending_s=1.5).delay(12, 1, 0.0, "rcu", pending_s=1.1)
    assert diagnose(node).incidents[0].verdict.cause == "softirq-blackout"


def test_one_kind_of_packets_that_waits_is_not_enough() -> None:
    (incident,) = diagnose(held().delay(16, 1, 1.4, "net_rx")).incidents
    assert incident.verdict.cause != "softirq-blackout"


def test_a_core_full_of_softirqs_delays_them_itself() -> None:
    node = held("asm_common_interrupt, handle_softirqs, net_rx_action, odd_poll", "softirq")
    (incident,) = diagnose(node.delay(16, 1, 0.3, "net_rx").delay(16, 1, 0.3, "timer")).incidents
    assert incident.verdict.cause != "softirq-blackout"


def test_the_mechanism_behind_it_is_named_where_it_is_known() -> None:
    node = held("ksys_read, memcg_stat_show, mem_cgroup_iter").zombies(9, 70_000)
    (incident,) = diagnose(node.delay(16, 1, 4.0, "net_rx").delay(16, 1, 4.0, "timer")).incidents
    assert incident.verdict.cause == "zombie-memcg-walk"
    assert "zombie-memcg-walk explains it more precisely" in [
        other.why_not for other in incident.alternatives
    ]


def test_who_had_less_than_half_of_the_core_is_not_said_to_have_held_them_back() -> None:
    lines = "".join(
        f"\n        d: system  tool{pid}[{pid}]  /  main > odd_loop" for pid in (40, 41)
    )
    node = drawn_node(
        f"""
        core 0:  ..............................
        core 1:  ..........dddddd..............
        d: system  driver-tool[31]  /  main > odd_driver_loop{lines}
        """
    )
    (incident,) = diagnose(node.delay(16, 1, 1.4, "net_rx").delay(16, 1, 1.4, "timer")).incidents
    assert incident.verdict.cause == "softirq-blackout"
    assert incident.verdict.summary.startswith("something held back")


def test_waits_on_all_cores_at_once_are_a_machine_that_was_not_run() -> None:
    node = held()
    for cpu in (0, 1):
        node.delay(16, cpu, 1.4, "net_rx").delay(16, cpu, 1.4, "timer")
    assert not [
        one
        for one in diagnose(node).incidents
        if one.verdict.cause == "softirq-blackout" and one.verdict.confidence >= 0.5
    ]


def stopped(others: str = "." * 24, seconds: str = "___") -> DrawnNode:
    busy = "\n".join(f"core {cpu}:  uuuuuuuuuu{seconds}uuuuuuuuuuu" for cpu in range(4))
    idle = "\n".join(f"core {cpu}:  {others}" for cpu in range(4, 16))
    return drawn_node(f"{busy}\n{idle}\nu: user  trainer[7]  /pods/t  main, step")


def blackouts(node: DrawnNode) -> list[float]:
    return [
        one.verdict.confidence
        for one in diagnose(node).incidents
        if one.verdict.cause == "softirq-blackout"
    ]


def test_time_that_all_busy_cores_lose_at_once_is_a_machine_that_was_stopped() -> None:
    (incident,) = diagnose(stopped()).incidents
    assert incident.verdict.cause == "unknown"
    (other,) = (one for one in incident.alternatives if one.cause == "softirq-blackout")
    assert "4 cores lost the same time and the others were idle" in other.why_not


def test_time_that_is_lost_beside_cores_that_run_on_is_held_back() -> None:
    assert blackouts(stopped(others="u" * 24))


def test_lost_time_on_one_core_is_its_own() -> None:
    node = drawn_node(
        """
        core 0:  ........................
        core 1:  uuuuuuuuuu___uuuuuuuuuuu
        u: user  trainer[7]  /pods/t  main, step
        """
    )
    assert blackouts(node)


def test_time_that_is_lost_while_the_core_is_sampled_was_lost_in_short_stretches() -> None:
    """/proc/pagetypeinfo: interrupts are off for milliseconds, again and again."""
    node = drawn_node(
        """
        core 0:  ........................
        core 1:  ..........ppp...........
        p: lost  agent[8]  /a  main > do_syscall_64, vfs_read, pagetypeinfo_show
        """
    )
    assert not blackouts(node)
