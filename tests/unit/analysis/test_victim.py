"""Why a program was late: its waits, by name and by pid, and who was in the way."""

from tests.drawn_node import DrawnNode, at, drawn_node
from tests.drawn_waits import by, wait

from necroscope.analysis.victim import victim_report
from necroscope.model.span import Span
from necroscope.views.victim_text import victim_to_text

WHOLE = Span(at(0), at(30))


def late() -> DrawnNode:
    node = drawn_node(
        """
        core 0:  ..............................
        core 1:  ..............................
        """
    )
    wait(node, 10, 0.95, "raylet", 70, **by("spin", 9, policy="fifo", ran_ns=950_000_000))
    stacks = {"stack": "cgroup_kn_lock_live;cgroup_mkdir", **by("runc", 8, stack="mutex_unlock")}
    wait(node, 12, 0.4, "raylet.io", 70, tid=71, **stacks)
    wait(node, 13, 2.0, "other", 90)
    return node


def test_all_threads_of_a_program_and_who_was_in_their_way_are_reported() -> None:
    text = victim_to_text(victim_report(late(), "raylet", WHOLE))
    assert "wanted a core and had none once, 0.95 s in all" in text
    assert "spin[9] (fifo) had the core for 0.95 s" in text
    assert "raylet.io[71] waited 0.40 s for cgroup_mutex" in text
    assert "runc[8] ended it" in text
    assert "other" not in text


def test_a_pid_is_a_name_too_and_a_stretch_leaves_out_the_rest() -> None:
    report = victim_report(late(), "70", Span(at(11.5), at(20)))
    assert [alike.longest.kind for alike in report.waits] == ["blocked"]
    assert report.as_json()["waits"][0]["by"]["comm"] == "runc"


def test_waits_alike_are_one_entry_and_the_costliest_comes_first() -> None:
    node = late()
    for second in (15, 16, 17):
        wait(node, second, 0.9, "raylet", 70, **by("spin", 9, policy="fifo", ran_ns=900_000_000))
    report = victim_report(node, "raylet", WHOLE)
    assert [(alike.count, round(alike.total_s, 2)) for alike in report.waits] == [
        (4, 3.65),
        (1, 0.4),
    ]
    text = victim_to_text(report)
    assert text.count("spin[9]") == 1
    assert "4 waits like this, 3.65 s in all" in text


def test_the_thread_that_gave_the_lock_back_is_named_by_its_own_number() -> None:
    node = wait(late(), 20, 2.0, "pay", 50, kind="futex", **by("flush", 50) | {"by_tid": 53})
    assert "flush[53] ended it" in victim_to_text(victim_report(node, "pay", WHOLE))


def test_a_wait_for_a_core_that_no_task_kept_points_to_the_quota() -> None:
    text = victim_to_text(victim_report(late(), "other", WHOLE))
    assert "no task kept the core for long" in text
    assert "the CPU quota of its cgroup (cpu.max) was used up" in text


def test_a_name_that_never_waited_is_reported_with_the_names_that_did() -> None:
    text = victim_to_text(victim_report(late(), "sshd", WHOLE))
    assert "no wait of sshd is recorded" in text
    assert "hint: the programs that waited longest: other, raylet, raylet.io" in text


def test_a_recording_without_any_wait_says_so() -> None:
    text = victim_to_text(victim_report(late(), "sshd", Span(at(0), at(5))))
    assert "hint: no wait of any program is recorded here" in text
