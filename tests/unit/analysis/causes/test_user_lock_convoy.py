"""Threads behind a lock of their own program."""

from tests.drawn_node import DrawnNode, drawn_node
from tests.drawn_waits import by, wait

from necroscope.analysis.engine import diagnose
from necroscope.analysis.wait_channels import channel_of, is_release

UNLOCK = "wake_up_q;futex_wake;do_futex;__x64_sys_futex"
LOCK = 0x7F0010


def threads(
    count: int = 3,
    lasts_s: float = 0.8,
    holder: str = "compactor",
    apart: int = 0,
    woken_by: str = UNLOCK,
) -> DrawnNode:
    node = drawn_node(
        """
        core 0:  ..............................
        core 1:  ..............................
        """
    )
    for number in range(count):
        ended = by(holder, 70, stack=woken_by) | {"by_tid": 75}
        futex = {
            "kind": "futex",
            "stack": "futex_wait_queue;futex_wait;do_futex",
            "tid": 80 + number,
            "futex": LOCK + apart * number,
        }
        wait(node, 10, lasts_s, comm="consul", pid=70, **futex, **ended)
    return node


def test_the_thread_that_held_the_lock_is_named_and_not_the_kernel() -> None:
    (incident,) = diagnose(threads()).incidents
    verdict = incident.verdict
    assert verdict.cause == "user-lock-convoy"
    assert verdict.culprit is not None
    assert verdict.culprit.comm == "compactor"
    assert any(advice.what == "kernel tuning" for advice in verdict.will_not_help)
    assert verdict.fix[0].startswith("gdb -p 70 ")


def test_a_sleep_that_is_not_recorded_is_not_denied() -> None:
    """A holder in nanosleep(2) or read(2) leaves no row in `waits`."""
    (incident,) = diagnose(threads()).incidents
    texts = [item.text for item in incident.verdict.evidence]
    assert any("slept on a timer, socket or pipe (not recorded)" in text for text in texts)


def test_a_holder_with_the_name_of_its_program_is_called_by_its_number() -> None:
    named, unnamed = (
        diagnose(threads(holder=name)).incidents[0].verdict.summary
        for name in ("compactor", "consul")
    )
    assert named.endswith("a lock of their own program that compactor held")
    assert unnamed.endswith("a lock of their own program that its thread 75 held")


def test_a_moment_is_what_locks_are_for() -> None:
    assert not diagnose(threads(2, 0.25)).incidents


def test_a_holder_that_slept_in_the_kernel_is_not_blamed_with_confidence() -> None:
    blamed = diagnose(threads()).incidents[0].verdict.confidence
    node = threads()
    stack = "rwsem_down_write_slowpath;down_write;do_mprotect_pkey"
    wait(node, 10, 0.7, comm="compactor", pid=70, tid=75, stack=stack, **by("jit", 60))
    verdicts = [incident.verdict for incident in diagnose(node).incidents]
    doubted = [v.confidence for v in verdicts if v.cause == "user-lock-convoy"]
    assert all(confidence < blamed - 0.3 for confidence in doubted)


def test_threads_that_wait_each_at_an_address_of_its_own_wait_for_work() -> None:
    """As in musl's condition variables and oneTBB's semaphores, whose value is 2 too."""
    assert not diagnose(threads(8, 1.5, apart=64)).incidents


def test_one_that_sends_a_signal_did_not_hold_the_lock() -> None:
    woken_by = "signal_wake_up_state;complete_signal;__send_signal_locked;do_send_sig_info"
    assert not diagnose(threads(woken_by=woken_by)).incidents


def test_a_sleep_elsewhere_in_the_call_is_not_a_wait_for_the_lock() -> None:
    assert channel_of("futex", ("do_freezer_trap", "get_signal")).kind == "ordinary"
    assert channel_of("futex", ("futex_do_wait", "__futex_wait")).kind == "futex"


def test_a_holder_that_waits_for_an_answer_is_followed_and_still_holds_the_lock() -> None:
    node = threads(lasts_s=4.0)
    silent = {"kind": "unanswered", "stack": "unix_stream_read_generic", "is_open": True, "tid": 75}
    wait(node, 10.5, 3.5, "compactor", 70, **silent, **by("backend", 90, stack="do_signal_stop"))
    (incident,) = diagnose(node).incidents
    assert incident.verdict.cause == "user-lock-convoy"
    assert incident.verdict.confidence > 0.9
    assert incident.verdict.summary.endswith("that compactor held; it waits for backend[90]")


def test_the_one_that_has_the_holders_core_is_what_to_act_on() -> None:
    node = drawn_node("""
        core 0:  ..............................
        core 1:  ..............................
        """)
    given = by("flusher", 70, stack="futex_wake;do_futex;do_syscall_64")
    for tid in (71, 72):
        wait(node, 10, 1.5, "server", 70, tid=tid, kind="futex", futex=4096, **given)
    wait(node, 10.05, 1.4, "flusher", 70, **by("audio", 99, policy="fifo", ran_ns=10**9))
    (incident,) = [i for i in diagnose(node).incidents if i.core is None]
    assert incident.verdict.cause == "user-lock-convoy"
    assert incident.verdict.origin is not None
    assert incident.verdict.origin.name == "audio"


def test_threads_of_a_program_that_has_no_core_are_not_a_convoy() -> None:
    """npm on a machine with far more work than cores: whoever has its lock is not running."""
    node = drawn_node("""
        core 0:  cccccccccccccccccccccccccccccc
        core 1:  cccccccccccccccccccccccccccccc
        c: user  cc1[50]  /build  main
        """)
    given = by("npm ci", 70, stack="futex_wake;do_futex;do_syscall_64")
    for turn in range(8):
        for tid in (71, 72):
            wait(node, 10 + turn, 0.4, "npm", 70, tid=tid, kind="futex", futex=4096, **given)
        for slice_ in range(6):
            wait(node, 10 + turn + slice_ / 8, 0.08, "npm ci", 70)
    assert "user-lock-convoy" not in [i.verdict.cause for i in diagnose(node).incidents]


def test_a_kill_for_memory_elsewhere_is_not_told_with_a_lock() -> None:
    node = drawn_node("""
        core 0:  ..............................
        core 1:  ..............................
        """)
    given = by("flusher", 70, stack="futex_wake;do_futex;do_syscall_64")
    for tid in (71, 72):
        wait(node, 10, 1.5, "server", 70, tid=tid, kind="futex", futex=4096, **given)
    node.event(11, "oom_kill", "Memory cgroup out of memory: Killed process 99 (leaky)")
    (incident,) = diagnose(node).incidents
    assert not incident.events


IDLE = """
    core 0:  ..............................
    core 1:  ..............................
    """


def processes(wakers: tuple[int, ...] = (90, 91, 92), drawn: str = IDLE) -> DrawnNode:
    """Processes 91 to 93 wait for a semaphore, which these gave them one after the other."""
    node, lasts_s = drawn_node(drawn), 6.0
    sleep = {"kind": "semaphore", "stack": "futex_do_wait;__futex_wait;futex_wait;do_futex"}
    for number, waker in enumerate(wakers):
        pid = 91 + number
        given = by("worker", waker, stack=UNLOCK)
        wait(node, 10, lasts_s + 0.1 * number, "worker", pid, futex=LOCK, **sleep, **given)
    return node


def asleep(node: DrawnNode, second: float, lasts_s: float, pid: int = 90) -> DrawnNode:
    nap = {"kind": "asleep", "stack": "hrtimer_nanosleep;common_nsleep", "is_open": True}
    return wait(node, second, lasts_s, "worker", pid, **nap)


def test_a_process_that_sleeps_with_a_semaphore_that_others_hand_on_is_named() -> None:
    (incident,) = diagnose(asleep(processes(), 9, 4.5)).incidents
    verdict = incident.verdict
    assert verdict.cause == "user-lock-convoy"
    assert verdict.culprit is not None
    assert verdict.culprit.pid == 90
    assert verdict.summary == (
        "3 processes of worker waited up to 6.2 s for a semaphore that worker[90] held"
    )
    texts = [item.text for item in verdict.evidence]
    assert any("worker[90] slept 4.50 s voluntarily" in text for text in texts)


def test_a_process_that_computes_with_a_semaphore_is_named() -> None:
    drawn = """
        core 0:  ..............................
        core 1:  ..........cccccc..............
        c: user  worker[90]  /app  main > compute
        """
    causes = [incident.verdict.cause for incident in diagnose(processes(drawn=drawn)).incidents]
    assert "user-lock-convoy" in causes


def test_processes_that_one_gives_work_to_by_a_semaphore_are_not_a_convoy() -> None:
    """The producer never waits for the semaphore: it is no lock, however long it slept."""
    assert not diagnose(asleep(processes((90, 90, 90)), 9, 5)).incidents


def test_a_pool_whose_workers_wait_for_work_behind_each_other_is_not_a_convoy() -> None:
    """multiprocessing.Pool: one sleeps in a pipe with the lock, the others sleep for the lock."""
    assert not diagnose(processes()).incidents


def test_what_a_worker_did_after_it_gave_the_semaphore_on_is_not_why_others_waited() -> None:
    assert not diagnose(asleep(processes(), 16.05, 8)).incidents


def test_a_lock_in_memory_that_processes_share_is_one_lock() -> None:
    node = drawn_node(IDLE)
    sleep = {"kind": "futex", "stack": "futex_wait_queue;futex_wait;do_futex", "futex": LOCK}
    for pid in (81, 82, 83):
        wait(node, 10, 2.0, "worker", pid, **sleep, **by("writer", 80, stack=UNLOCK))
    for turn in range(10):
        wait(node, 10 + turn / 5, 0.15, "writer", 80)
    (incident,) = diagnose(node).incidents
    verdict = incident.verdict
    assert verdict.cause == "user-lock-convoy"
    assert verdict.culprit is not None
    assert verdict.culprit.comm == "writer"
    texts = [item.text for item in verdict.evidence]
    assert "writer[80] waited 1.50 s of it for a core, again and again" in texts


def inverted(policy: str, priority: int) -> DrawnNode:
    """Threads behind a lock whose holder gets a core for a moment now and then."""
    node = drawn_node("""
        core 0:  ..............................
        core 1:  ssssssssssssssssssssssssssssss
        s: user  server[70]  /app  main > spin
        """)
    given = by("sweeper", 70, stack=UNLOCK) | {"by_tid": 75}
    for tid in (71, 72):
        wait(node, 10, 8.0, "server", 70, tid=tid, kind="futex", futex=LOCK, **given)
    for turn in range(8):
        rank = {"tid": 75, "policy": policy, "priority": priority}
        wait(node, 10 + turn, 0.95, "sweeper", 70, **rank, **by("server", 70, ran_ns=9 * 10**8))
    return node


def test_a_holder_that_runs_below_those_who_wait_is_an_inversion_of_priorities() -> None:
    verdicts = [i.verdict for i in diagnose(inverted("idle", 0)).incidents]
    (verdict,) = [one for one in verdicts if one.cause == "user-lock-convoy"]
    assert verdict.confidence > 0.9
    assert verdict.summary.endswith(
        "that sweeper held, which had no core: it runs as idle, below the tasks that wait for it"
    )
    nice = [i.verdict.summary for i in diagnose(inverted("other", 19)).incidents]
    assert any("it runs as nice 19" in summary for summary in nice)


def test_a_holder_of_the_same_rank_without_a_core_is_a_machine_with_too_much_to_do() -> None:
    node = inverted("other", 0)
    for turn in range(8):
        wait(node, 10 + turn, 0.4, "server", 70, tid=73, **by("server", 70, ran_ns=4 * 10**8))
    causes = [i.verdict.cause for i in diagnose(node).incidents]
    assert "user-lock-convoy" not in causes


def test_a_set_of_semaphores_of_system_v_is_given_by_semop() -> None:
    wake = ("wake_up_q", "__do_semtimedop", "do_semtimedop", "do_syscall_64")
    assert is_release("semaphore", wake)
    assert channel_of("semaphore", ("__do_semtimedop", "do_semtimedop")).kind == "semaphore"
