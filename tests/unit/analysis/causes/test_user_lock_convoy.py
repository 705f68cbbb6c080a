"""Threads behind a lock of their own program."""

from tests.drawn_node import DrawnNode, drawn_node
from tests.drawn_waits import by, wait

from necroscope.analysis.engine import diagnose


def threads(count: int = 3, lasts_s: float = 0.8, holder: str = "compactor") -> DrawnNode:
    node = drawn_node(
        """
        core 0:  ..............................
        core 1:  ..............................
        """
    )
    for number in range(count):
        ended = {"by_comm": holder, "by_pid": 70, "by_tid": 75}
        futex = {
            "kind": "futex",
            "stack": "futex_wait_queue;futex_wait;do_futex",
            "tid": 80 + number,
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
    assert any("slept for a timer, socket or pipe, which is not recorded" in text for text in texts)


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
