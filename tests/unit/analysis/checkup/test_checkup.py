"""Each question of the check-up: what it finds, and what it leaves alone."""

import json
from dataclasses import replace

from necroscope.analysis.checkup import crash_loops
from necroscope.analysis.checkup.checkup import COULD_NOT_TELL, PROBLEM, WELL, check_up
from necroscope.analysis.checkup.finding import Finding, Level

S = 1_000_000_000
NOW_NS = 1_776_248_000 * S


def findings(node) -> dict[str, Finding]:
    return {finding.question: finding for finding in check_up(node.seen()).findings}


def test_a_quiet_node_is_well(node) -> None:
    checkup = check_up(node.seen())
    assert checkup.findings == ()
    assert checkup.exit_code == WELL


def test_a_core_held_by_the_kernel_is_a_problem_and_says_by_whom(node) -> None:
    node.cores(1, 3, system=0.97, user=0.01)
    node.sampled(1, "kubelet", "mem_cgroup_iter", 90)
    node.sampled(0, "python", None, 3)
    found = findings(node)["saturated-core"]
    assert found.title.startswith("core 1 is held: 97% of the last 3 seconds")
    assert found.facts == ("kubelet (pid 7) had 90 of 90 samples, most often in mem_cgroup_iter",)
    assert check_up(node.seen()).exit_code == PROBLEM


def test_user_time_alone_is_what_busy_nodes_do(node) -> None:
    node.core(1, user=1.0)
    assert findings(node) == {}


def test_a_core_whose_time_is_stolen_is_held(node) -> None:
    node.cores(1, 3, steal=0.95)
    assert "most of it steal" in findings(node)["saturated-core"].title


def test_a_core_that_had_some_time_left_in_the_look_is_not_held(node) -> None:
    node.cores(1, 3, system=1.0)
    node.core(1, idle=1.0)
    assert findings(node) == {}


def test_a_single_second_is_reported_and_fails_nothing(node) -> None:
    node.cores(1, 1, system=1.0)
    assert findings(node)["saturated-core"].level is Level.NOTICE
    assert check_up(node.seen()).exit_code == WELL


def test_a_softirq_that_still_waits_is_a_stall(node) -> None:
    node.add("softirq_delay", cpu=1, vector="net_rx", worst_ns=1000, pending_ns=3 * S)
    assert (
        findings(node)["softirq-stall"].title
        == "core 1: a net_rx softirq waited 3 s for its handler"
    )


def test_a_short_softirq_delay_is_none(node) -> None:
    node.add("softirq_delay", cpu=1, vector="net_rx", worst_ns=20_000_000)
    assert findings(node) == {}


def test_a_throttled_real_time_task_is_reported_and_fails_nothing(node) -> None:
    node.add(
        "events",
        time=NOW_NS - 60 * S,
        kind="rt_throttled",
        by_kernel=True,
        message="sched: RT throttling activated",
    )
    assert findings(node)["kernel-log"].level is Level.NOTICE


def test_a_reset_of_this_hour_is_a_problem_and_an_older_one_a_notice(node) -> None:
    node.add(
        "events",
        time=NOW_NS - 3700 * S,
        kind="nic_reset",
        by_kernel=True,
        message="Trigger reset is on",
        device="eth0",
    )
    assert findings(node)["kernel-log"].level is Level.NOTICE
    node.add(
        "events",
        time=NOW_NS - 60 * S,
        kind="nic_reset",
        by_kernel=True,
        message="Trigger reset is on",
        device="eth0",
    )
    found = findings(node)["kernel-log"]
    assert found.level is Level.PROBLEM
    assert found.title == "network device resets in the kernel log: 2, the last 1 min ago"
    assert "eth0" in found.facts[0]
    assert found.hint.startswith("keep a recorder running")


def test_a_line_that_the_kernel_did_not_write_is_no_reset(node) -> None:
    node.add("events", kind="nic_reset", by_kernel=False, message="Trigger reset is on")
    assert findings(node) == {}


def test_many_dead_cgroups_are_a_leak(node) -> None:
    node.add("cgroups", controller="memory", path="/", tracked=68_920, visible=240)
    assert (
        findings(node)["zombie-cgroups"].title
        == "68,680 dead memory cgroups are held, 240 are alive"
    )


def test_a_count_of_dead_cgroups_is_reported_and_fails_nothing_unless_a_walk_was_slow(node) -> None:
    node.add("cgroups", controller="memory", path="/", tracked=68_920, visible=240)
    assert findings(node)["zombie-cgroups"].level is Level.NOTICE
    assert check_up(node.seen()).exit_code == WELL
    assert (
        check_up(
            node.seen(), (Finding("probe", Level.PROBLEM, "the slowest read took 5 s"),)
        ).exit_code
        == PROBLEM
    )


def test_dying_as_the_kernel_counts_them_goes_before_arithmetic(node) -> None:
    node.add("cgroups", controller="memory", path="/", tracked=68_920, visible=240, dying=12)
    assert findings(node) == {}


def test_cgroups_that_could_not_be_counted_are_said_to_be_so(node) -> None:
    node.add("cgroups", controller="memory", path="/")
    checkup = check_up(node.seen())
    assert checkup.findings[0].level is Level.UNKNOWN
    assert checkup.exit_code == COULD_NOT_TELL


def unit(node, **values: object) -> None:
    states = {
        "unit": "ecs.service",
        "load_state": "loaded",
        "active_state": "activating",
        "sub_state": "auto-restart",
    }
    node.add(
        "units",
        **states | {"result": "exit-code", "main_status": 1, "file_state": "enabled"} | values,
    )


def test_a_unit_that_restarts_again_and_again_crash_loops(node) -> None:
    unit(node, restarts=68_680)
    found = findings(node)["crash-loop"]
    assert found.title == "ecs.service crash-loops: 68,680 restarts, now auto-restart"
    assert "systemctl disable --now ecs.service" in found.hint


def test_a_unit_that_recovered_is_no_crash_loop(node) -> None:
    unit(node, restarts=68_680)
    unit(node, restarts=68_680, active_state="active", sub_state="running", result="success")
    assert findings(node) == {}


def test_a_container_that_is_restarted_again_and_again_crash_loops(node) -> None:
    agent(node, state="running", started_ns=NOW_NS - 400 * S)
    found = findings(node)["crash-loop"]
    assert found.title == "container kube-system/p-1/agent crash-loops: 12 restarts"
    assert found.facts[1] == "its pod is of StatefulSet kube-system/p, by the form of its name"
    assert found.hint == "kubectl -n kube-system describe pod p-1"


def agent(node, **values: object) -> None:
    node.add(
        "containers",
        container="abc",
        name="agent",
        pod="p-1",
        namespace="kube-system",
        **{"restarts": 12} | values,
    )


def test_a_container_that_has_run_since_its_restarts_is_no_crash_loop(node) -> None:
    agent(node, state="running", started_ns=NOW_NS - 700 * S)
    assert findings(node) == {}


def test_a_container_that_waits_for_its_next_start_crash_loops(node) -> None:
    agent(node, state="exited", started_ns=NOW_NS - 200 * S)
    assert "crash-loop" in findings(node)


def test_a_container_that_came_to_rest_is_a_crash_loop_only_if_it_failed(node) -> None:
    agent(node, state="exited", exit_code=0, started_ns=NOW_NS - 5 * S)
    assert findings(node) == {}
    agent(node, state="exited", exit_code=1, started_ns=NOW_NS - 7000 * S)
    assert "crash-loop" in findings(node)


def test_a_vendors_unit_that_never_came_up_is_reported(node) -> None:
    unit(
        node,
        preset="enabled",
        fragment="/lib/systemd/system/ecs.service",
        active_state="failed",
        sub_state="failed",
    )
    assert findings(node)["vendor-unit"].level is Level.NOTICE
    assert check_up(node.seen()).exit_code == WELL


def test_all_queues_on_one_core_collide(node) -> None:
    for queue in range(4):
        node.add(
            "interrupts",
            cpu=1,
            irq=str(30 + queue),
            action="eth0",
            device="eth0",
            queue=queue,
            affinity="1",
            count=9,
        )
    assert findings(node)["irq-collision"].title == "eth0: all 4 queues interrupt core 1"


def test_queues_on_different_cores_do_not_collide(node) -> None:
    for queue in range(2):
        node.add(
            "interrupts",
            cpu=queue,
            irq=str(30 + queue),
            action="eth0",
            device="eth0",
            queue=queue,
            affinity=str(queue),
        )
    assert findings(node) == {}


def test_problems_come_before_notices(node) -> None:
    unit(
        node,
        preset="enabled",
        fragment="/lib/systemd/system/ecs.service",
        active_state="failed",
        sub_state="failed",
    )
    node.cores(0, 3, system=1.0)
    assert [finding.level for finding in check_up(node.seen()).findings] == [
        Level.PROBLEM,
        Level.NOTICE,
    ]


def test_a_task_that_gets_no_core_behind_a_real_time_task_is_a_problem(node) -> None:
    wait = {"kind": "runnable", "cpu": 1, "comm": "trainer", "pid": 71, "policy": "other"}
    by = {"by_comm": "spin", "by_pid": 9, "by_tid": 9, "by_policy": "fifo"}
    node.add("waits", waited_ns=950 * S // 1000, by_ran_ns=950 * S // 1000, **wait, **by)
    found = findings(node)["task-waits"]
    assert found.level is Level.PROBLEM
    assert "trainer (pid 71)" in found.title
    assert "spin (pid 9, fifo)" in found.facts[0]
    assert found.hint.endswith("chrt --other -p 0 9")


def test_nice_and_batch_work_may_wait(node) -> None:
    wait = {"kind": "runnable", "cpu": 1, "waited_ns": 3 * S}
    node.add("waits", comm="backup", policy="other", priority=19, **wait)
    node.add("waits", comm="index", policy="batch", **wait)
    assert findings(node) == {}


def test_a_task_behind_a_lock_of_the_kernel_is_reported(node) -> None:
    stacks = {"stack": "do_mprotect_pkey", "by_stack": "wake_up_q;rwsem_wake.isra.0;up_write"}
    node.add("waits", kind="blocked", comm="jvm", policy="other", waited_ns=2 * S, **stacks)
    assert "lock of the kernel" in findings(node)["task-waits"].title
    assert check_up(node.seen()).exit_code == WELL


def test_a_kernel_log_that_cannot_be_read_is_not_a_node_that_is_well(node) -> None:
    node.add("gaps", table="log", cause="may not read /dev/kmsg (CAP_SYSLOG)")
    checkup = check_up(node.seen())
    assert checkup.exit_code == COULD_NOT_TELL
    found = next(one for one in checkup.findings if one.question == "not-read")
    assert found.facts == ("may not read /dev/kmsg (CAP_SYSLOG)",)


def test_a_source_that_came_back_is_not_missing(node) -> None:
    node.add("gaps", table="log", cause="late")
    node.add("log", message="hello")
    assert "not-read" not in findings(node)


def test_a_finding_points_to_the_recorder_that_runs(node) -> None:
    node.cores(0, 5, system=1.0)
    seen = replace(node.seen(), recording="/data/rec")
    held = next(one for one in check_up(seen).findings if one.question == "saturated-core")
    assert held.hint == "ask the running recorder: necroscope diagnose /data/rec"


def test_connections_dropped_in_the_second_of_the_look_are_a_problem(node) -> None:
    node.add("network", elapsed_ns=S, listen_drops=7)
    assert findings(node)["network-losses"].title.startswith("7 connections were dropped")


def test_a_watchdog_that_fired_since_the_device_came_up_is_reported(node) -> None:
    node.add("nics", device="eth0", driver="ena", counter="tx-3/tx_timeout", value=2)
    found = findings(node)["network-losses"]
    assert (found.level.value, "on queue 3, 2 times" in found.title) == ("notice", True)


def recreate(node, count: int, ended_s: float = 5, code: int = 5) -> None:
    """A container that a supervisor removes and makes again each 11 s, the last time some seconds
    ago.
    """
    for number in range(count):
        own = {"container": f"{number:x}" * 64, "name": "ecs-agent", "image": "ecs-agent:1.8"}
        end_ns = NOW_NS - round((ended_s + 11 * (count - 1 - number)) * S)
        for kind, time_ns, more in (
            ("container_start", end_ns - 10 * S, {}),
            ("container_die", end_ns, {"exit_code": code}),
        ):
            node.add("events", time=time_ns, kind=kind, fields=json.dumps(own | more))


def test_a_container_that_is_recreated_under_new_ids_crash_loops_and_leads_to_its_unit(
    node,
) -> None:
    recreate(node, 6)
    made = {"name": "ecs-agent", "unit": "ecs.service", "how": "conmon watches it"}
    node.add("events", kind="container_made", fields=json.dumps(made))
    node.add(
        "units",
        unit="ecs.service",
        fragment="/lib/systemd/system/ecs.service",
        file_state="enabled",
        preset="enabled",
        active_state="active",
    )
    found = findings(node)["crash-loop"]
    assert found.level is Level.PROBLEM
    assert found.title == (
        "container ecs-agent crash-loops: re-created every 11 s, 6 times, always 10 s old at its"
        " end"
    )
    assert found.facts == (
        "exit code 5 in 6 of 6 ends, image ecs-agent:1.8",
        "made by ecs.service: conmon watches it",
        "unit file /lib/systemd/system/ecs.service, enabled, preset enabled",
    )
    assert found.hint.endswith("systemctl disable --now ecs.service")


def test_the_maker_that_the_check_up_watched_for_itself_is_named(node) -> None:
    recreate(node, 6)
    seen = node.seen()
    assert "who makes it was not seen" in check_up(seen).findings[0].facts[-1]
    watched = replace(seen, makers={"ecs-agent": ("ecs.service", "podman names it")})
    assert "made by ecs.service: podman names it" in check_up(watched).findings[0].facts
    assert crash_loops.units_to_ask(watched) == ["ecs.service"]


def test_what_a_crash_looping_unit_wrote_is_quoted_where_it_was_asked_for(node) -> None:
    node.add("units", unit="a.service", result="start-limit-hit", sub_state="failed")
    seen = replace(node.seen(), own_logs={"a.service": ("no credentials",)})
    (found,) = check_up(seen).findings
    assert found.facts[-1] == "its log: no credentials"
    assert crash_loops.units_to_ask(seen) == ["a.service"]


def test_what_a_recreated_container_and_its_unit_wrote_is_quoted_apart(node) -> None:
    recreate(node, 6)
    makers = {"ecs-agent": ("ecs.service", "podman names it")}
    logs = {"ecs-agent": ("no credentials",), "ecs.service": ("starting again",)}
    facts = check_up(replace(node.seen(), makers=makers, own_logs=logs)).findings[0].facts
    assert (facts[1], facts[-1]) == ("its log: no credentials", "the unit's log: starting again")


def test_a_container_that_was_recreated_an_hour_ago_or_ends_well_is_left_alone(node) -> None:
    recreate(node, 6, ended_s=3600)
    assert findings(node) == {}


def test_a_container_that_does_its_work_and_comes_again_is_left_alone(node) -> None:
    recreate(node, 6, code=0)
    assert findings(node) == {}


def test_a_container_daemon_that_did_not_answer_leaves_the_question_open(node) -> None:
    checkup = check_up(replace(node.seen(), silent=("containers",)))
    (found,) = checkup.findings
    assert found.title == "cannot say whether a container crash-loops"
    assert checkup.exit_code == COULD_NOT_TELL
