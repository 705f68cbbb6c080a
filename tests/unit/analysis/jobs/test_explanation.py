"""What explains that a member stood: only what speaks of its core, its limit, its wait or its
network.
"""

from dataclasses import replace

import pytest
from tests.drawn_job import CLOSED, JOB, TIMED_OUT, at, held, incident, oom, rank, seen

from necroscope.analysis.jobs.blame import find_story
from necroscope.analysis.jobs.explanation import Explanation, explain
from necroscope.analysis.jobs.member import QUOTA_OF, Member, NodeEvent, NodeIncident

POD = "/kubepods/pod7"
STARVED = held("starved", 50, 60)
THROTTLED = replace(STARVED, by=f"{QUOTA_OF}{POD}", by_cgroup=POD)


def of_node(cause: str, **more: object) -> NodeIncident:
    """Of no core in particular."""
    return replace(incident(cause, 50, 60, core=None), **more)


def test_a_lock_that_others_waited_for_does_not_explain_a_member_without_a_core() -> None:
    member = rank(1, "b", STARVED, 61)
    assert explain(member, seen("b", of_node("file-lock-convoy")), {101}) is None
    assert explain(member, seen("b", of_node("vm-steal")), {101}) is not None


def test_a_verdict_on_the_core_that_names_another_program_is_about_something_else() -> None:
    member = rank(1, "b", held("starved", 50, 60, 1, "other[9]"), 61)
    found = explain(member, seen("b", incident("rt-hog", 50, 60)), {101})
    assert found is not None
    assert (found.culprit, found.incident) == ("other[9]", None)


def test_what_lasted_for_a_moment_of_it_does_not_explain_it() -> None:
    member = rank(1, "b", held("starved", 50, 90), 91)
    assert explain(member, seen("b", incident("rt-hog", 50, 52)), {101}) is None


@pytest.mark.parametrize(
    ("own", "is_explained"), [(POD, True), (f"{POD}/app", True), ("/kubepods/pod70", False)]
)
def test_its_own_quota_explains_it_although_the_verdict_names_the_member(
    own: str, is_explained: bool
) -> None:
    quota = of_node("cpu-quota-throttle", culprit_pid=101, origin=f"cgroup {POD}")
    member = rank(1, "b", THROTTLED, 61, cgroup=own)
    found = explain(member, seen("b", replace(quota, culprit_cgroup=POD)), {101})
    assert found is not None
    assert (found.incident is not None) is is_explained
    assert found.culprit == (f"cgroup {POD}" if is_explained else f"{QUOTA_OF}{POD}")


def test_a_throttle_elsewhere_in_a_long_incident_does_not_explain_it() -> None:
    """The incident goes on because something else followed; what is known of the stop wins."""
    quota = of_node("cpu-quota-throttle", culprit_cgroup=POD, origin=f"cgroup {POD}")
    member = rank(1, "b", STARVED, 61, cgroup=POD)
    assert explain(member, seen("b", quota), {101}) is None
    found = explain(member, seen("b", quota, incident("rt-hog", 50, 60)), {101})
    assert found is not None
    assert found.incident is not None
    assert found.incident.cause == "rt-hog"
    throttled = replace(member, stop=THROTTLED)
    assert explain(throttled, seen("b", incident("rt-hog", 50, 60)), {101}) == Explanation(
        f"{QUOTA_OF}{POD}"
    )


def test_a_job_that_its_quota_held_says_so_without_a_verdict() -> None:
    members = [
        rank(0, "a", held("waiting", 51, 56), 56, words=TIMED_OUT),
        rank(1, "b", THROTTLED, 61, cgroup=POD, words=CLOSED),
    ]
    story = find_story(JOB, members, [seen("a"), seen("b")])
    assert (story.blame, story.first and story.first.node) == ("machine", "b")
    assert f"because of the CPU quota of {POD}" in story.answer
    assert any(f"the CPU quota of {POD} was used up" in step.text for step in story.steps)


def test_a_file_server_that_does_not_answer_explains_a_member_in_its_read() -> None:
    member = rank(1, "b", held("blocked", 50, 60), 61)
    silent = of_node("blocked-io", culprit_pid=101, origin="process fuse-server")
    found = explain(member, seen("b", silent), {101})
    assert found is not None
    assert found.culprit == "process fuse-server"
    assert explain(member, seen("b", of_node("user-lock-convoy")), {101}) is None


def test_who_has_the_lock_is_named_with_or_without_a_verdict() -> None:
    member = rank(1, "b", held("blocked", 50, 60, 1, "agent[666]"), 61)
    alone = explain(member, seen("b"), {101})
    judged = explain(member, seen("b", of_node("file-lock-convoy")), {101})
    assert alone is not None
    assert judged is not None
    assert (alone.culprit, alone.incident) == ("agent[666]", None)
    assert judged.incident is not None


def link_down(second: float, *, by_kernel: bool = True) -> NodeEvent:
    words = "eth0: its link went down"
    return NodeEvent(at(second), "nic_link_down", words, by_kernel, device="eth0")


def waiting_job() -> list[Member]:
    return [
        rank(0, "a", held("waiting", 51, 56), 56, words=TIMED_OUT),
        rank(1, "b", held("waiting", 51, 56), 57, words=CLOSED),
        rank(2, "c", held("waiting", 51, 56), 56.2, words=TIMED_OUT),
    ]


def test_a_lost_link_without_a_verdict_names_the_device() -> None:
    nodes = [seen("a"), seen("b", link_down(50)), seen("c")]
    story = find_story(JOB, waiting_job(), nodes)
    assert (story.blame, story.culprit, story.core) == ("machine", "eth0", None)


def test_a_line_that_a_user_wrote_takes_no_node_off_the_network() -> None:
    nodes = [seen("a"), seen("b", link_down(50, by_kernel=False)), seen("c")]
    assert find_story(JOB, waiting_job(), nodes).blame == "unknown"


def test_a_link_that_went_after_the_death_or_long_before_is_not_its_cause() -> None:
    for second in (-60, 70):
        assert find_story(JOB, waiting_job(), [seen("b", link_down(second))]).blame == "unknown"


def test_a_link_that_went_before_the_job_was_started_is_not_its_cause() -> None:
    members = [replace(one, started_ns=at(40)) for one in waiting_job()]
    assert find_story(JOB, members, [seen("b", link_down(20))]).blame == "unknown"
    assert find_story(JOB, waiting_job(), [seen("b", link_down(20))]).blame == "machine"


def test_two_nodes_that_lost_the_network_within_the_clocks_error_have_no_order() -> None:
    nodes = [seen("a", link_down(50.2)), seen("b", link_down(50)), seen("c")]
    story = find_story(JOB, waiting_job(), nodes)
    assert story.blame == "machine"
    assert not story.is_order_known


def test_workers_that_ray_ends_with_their_driver_were_not_killed_from_outside() -> None:
    driver = replace(
        rank(0, "a", None, 56, words="ray.exceptions.GetTimeoutError: Get timed out"),
        kind="ray", role="driver", rank=None,
    )  # fmt: skip
    stop = held("starved", 48, 56, 1, "hog[666]")
    worker = replace(rank(1, "b", stop, 56.5, status=9), kind="ray", role="worker", rank=None)
    story = find_story(JOB, [driver, worker], [seen("a"), seen("b")])
    assert (story.blame, story.culprit) == ("machine", "hog[666]")
    first = replace(worker, ended_ns=at(40), stop=None)
    assert find_story(JOB, [driver, first], [seen("a"), seen("b")]).blame == "killed"


def test_one_that_was_held_for_a_moment_is_not_accused_in_place_of_one_held_long() -> None:
    members = [
        rank(0, "a", held("starved", 42, 56), 57, words=CLOSED),
        rank(1, "b", held("starved", 44, 47, 1, "qemu[9]"), 56, words=TIMED_OUT),
    ]
    story = find_story(JOB, members, [seen("a"), seen("b")])
    assert (story.blame, story.first and story.first.node) == ("unknown", "a")


def test_a_worker_that_the_kernel_killed_for_memory_did_not_end_with_its_driver() -> None:
    """The driver hears of it within the same second."""
    words = "ray.exceptions.ActorDiedError: the actor died"
    driver = replace(rank(0, "a", None, 56, words=words), kind="ray", role="driver", rank=None)
    worker = replace(rank(1, "b", None, 56.2, status=9), kind="ray", role="worker", rank=None)
    assert (
        find_story(JOB, [driver, worker], [seen("a"), seen("b", oom(101, 56))]).blame
        == "memory_limit"
    )


def test_what_held_a_raylet_before_the_job_began_is_not_its_story() -> None:
    words = "ray.exceptions.GetTimeoutError: Get timed out"
    driver = replace(
        rank(0, "a", None, 56, words=words, started=30), kind="ray", role="driver", rank=None
    )
    stop = held("starved", 10, 20, 1, "hog[666]")
    raylet = replace(rank(1, "b", stop), kind="ray", role="raylet", rank=None)
    assert find_story(JOB, [driver, raylet], [seen("a"), seen("b")]).blame == "unknown"
    later = replace(raylet, stop=held("starved", 40, 55, 1, "hog[666]"))
    assert find_story(JOB, [driver, later], [seen("a"), seen("b")]).blame == "machine"
