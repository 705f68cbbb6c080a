"""One cgroup's tasks wait for a core that another's fill."""

from tests.drawn_node import DrawnNode, drawn_node
from tests.drawn_waits import wait

from necroscope.analysis.engine import diagnose

VICTIM, NOISY = "/kubepods/pod-a", "/kubepods/pod-b"


def crowded(victim: str = VICTIM, lasts_s: float = 0.3, **rest: object) -> DrawnNode:
    node = drawn_node(
        f"""
        core 0:  ..............................
        core 1:  ..........nnnnnnnnnn..........
        n: user  ffmpeg[50]  {NOISY}  main, encode
        """
    )
    for second in range(10, 20):
        wait(node, second, lasts_s, comm="server", cgroup=victim, **rest)
        wait(node, second + 0.5, lasts_s, comm="server", pid=72, cgroup=victim, **rest)
    return node


def test_the_neighbour_and_its_victim_are_named() -> None:
    (incident,) = diagnose(crowded()).incidents
    verdict = incident.verdict
    assert (incident.core, verdict.cause) == (1, "noisy-neighbour")
    assert verdict.culprit is not None
    assert (verdict.culprit.comm, verdict.culprit.cgroup) == ("ffmpeg", NOISY)
    assert f"server of {VICTIM} waited" in verdict.summary
    assert verdict.origin is not None
    assert verdict.origin.name == NOISY


def test_the_neighbours_own_turns_do_not_hide_the_victim() -> None:
    node = crowded()
    for tenth in range(100, 200):
        wait(node, tenth / 10, 0.09, comm="ffmpeg", pid=50 + tenth % 5, cgroup=NOISY)
    (incident,) = diagnose(node).incidents
    assert f"server of {VICTIM} waited" in incident.verdict.summary


def test_a_crowd_of_its_own_is_no_neighbour() -> None:
    assert not diagnose(crowded(victim=NOISY)).incidents


def test_turns_of_a_fair_scheduler_are_no_incident() -> None:
    assert not diagnose(crowded(lasts_s=0.06)).incidents


def test_behind_a_real_time_task_it_is_that_task() -> None:
    node = crowded(by_comm="ffmpeg", by_pid=50, by_tid=50, by_policy="rr", by_ran_ns=10**9)
    (incident,) = diagnose(node).incidents
    assert incident.verdict.cause == "rt-hog"


def test_a_victim_below_a_cgroup_without_quota_left_waits_for_that() -> None:
    node = crowded(victim="/tenant/pod-a")
    for second in (15, 20):
        node.add(
            "cgroups",
            second,
            controller="cpu",
            path="/tenant",
            nr_throttled=9,
            throttled_ns=4 * 10**9,
        )
    causes = [incident.verdict.cause for incident in diagnose(node).incidents]
    assert "noisy-neighbour" not in causes


def test_a_wait_counts_once_and_only_inside_the_incident() -> None:
    node = crowded()
    for lasted in (1.0, 2.0, 4.0, 8.0):
        wait(node, 10, lasted, comm="server", pid=73, cgroup=VICTIM, is_open=True)
    (incident,) = diagnose(node).incidents
    assert any("waited 14.0 s in all" in item.text for item in incident.verdict.evidence)


def test_a_victim_that_may_use_one_core_has_a_neighbour_nevertheless() -> None:
    node = crowded(cores_allowed=1)
    for tenth in range(100, 200):
        wait(node, tenth / 10, 0.09, "ffmpeg", 51, cgroup=NOISY, cores_allowed=1)
    (incident,) = diagnose(node).incidents
    assert incident.verdict.cause == "noisy-neighbour"
