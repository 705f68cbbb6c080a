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


def test_all_threads_of_a_program_and_who_was_in_their_way_are_told() -> None:
    text = victim_to_text(victim_report(late(), "raylet", WHOLE))
    assert "wanted a core and had none 1 times, 0.95 s in all" in text
    assert "spin[9] (fifo) had the core for 0.95 s" in text
    assert "raylet.io[71] waited 0.40 s for cgroup_mutex" in text
    assert "runc[8] ended it" in text
    assert "other" not in text


def test_a_pid_is_a_name_too_and_a_stretch_leaves_out_the_rest() -> None:
    report = victim_report(late(), "70", Span(at(11.5), at(20)))
    assert [wait.kind for wait in report.waits] == ["blocked"]
    assert report.as_json()["waits"][0]["by"]["comm"] == "runc"


def test_one_that_never_waited_is_told_as_such() -> None:
    assert "no wait of sshd is recorded" in victim_to_text(victim_report(late(), "sshd", WHOLE))
