"""Why a job died: the machine only with a chain that leads to it, the program where it says so, and
`not known` rather than a wrong name.
"""

from dataclasses import replace
from typing import Any

import pytest
from tests.drawn_job import (
    CLOSED,
    EXIT_1,
    JOB,
    SIGKILL,
    SIGTERM,
    TIMED_OUT,
    held,
    incident,
    oom,
    rank,
    reset,
    seen,
)

from necroscope.analysis.jobs.blame import find_story
from necroscope.analysis.jobs.member import JobNode, Member
from necroscope.analysis.jobs.story import JobStory

NODES = (seen("a"), seen("b"), seen("c"))


def story(members: list[Member], *nodes: JobNode) -> JobStory:
    known = {node.node: node for node in (*NODES, *nodes)}
    return find_story(JOB, members, known.values())


def starved_job(by: str | None = None) -> list[Member]:
    """Rank 1 gets no core from second 50; the others wait for it and give up at 56."""
    return [
        rank(0, "a", held("waiting", 51, 56, 0), 56, words=TIMED_OUT),
        rank(1, "b", held("starved", 50, 70, 1, by), 71, words=CLOSED),
        rank(2, "c", held("waiting", 51, 56, 0), 56.2, words=TIMED_OUT),
    ]


def test_the_member_that_was_held_is_first_and_its_nodes_verdict_is_the_cause() -> None:
    found = story(starved_job(), seen("b", incident("rt-hog", 49, 71)))
    assert found.blame == "machine"
    assert found.first is not None
    assert (found.first.rank, found.first.node, found.core) == (1, "b", 1)
    assert found.culprit == "hog[666]"
    assert found.incident is not None
    assert found.incident.cause == "rt-hog"
    assert [one.rank for one in found.waited] == [0, 2]


def test_the_same_incident_on_another_node_or_core_is_nobodys_cause() -> None:
    elsewhere = story(starved_job(), seen("a", incident("rt-hog", 49, 71)))
    other_core = story(starved_job(), seen("b", incident("rt-hog", 49, 71, core=0)))
    earlier = story(starved_job(), seen("b", incident("rt-hog", 10, 20)))
    assert [one.blame for one in (elsewhere, other_core, earlier)] == ["unknown"] * 3
    assert elsewhere.culprit is None


def test_one_task_that_had_the_core_is_enough_without_a_verdict() -> None:
    found = story(starved_job(by="hog[666] (fifo)"))
    assert (found.blame, found.culprit, found.core) == ("machine", "hog[666] (fifo)", 1)


def test_a_member_of_the_job_that_took_anothers_core_is_no_machines_fault() -> None:
    members = starved_job()
    own = incident("userspace-hog", 49, 71, pid=101)
    assert story(members, seen("b", own)).blame == "unknown"


def test_an_exception_of_the_program_is_the_answer_whatever_happened_on_its_core() -> None:
    members = [
        rank(0, "a", held("waiting", 51, 52), 52, words=CLOSED),
        rank(1, "b", None, 51, words="ValueError: batch size must be positive"),
    ]
    found = story(members, seen("b", incident("rt-hog", 40, 60)))
    assert found.blame == "program"
    assert "ValueError" in found.answer
    assert found.culprit is None


def test_a_rank_that_the_kernel_killed_for_memory_died_of_its_limit() -> None:
    members = [rank(0, "a", None, 52, words=CLOSED), rank(1, "b", None, 51, status=SIGKILL)]
    assert story(members, seen("b", oom(101, 51))).blame == "memory_limit"


def test_the_kernels_line_is_enough_where_the_exit_status_is_not_known() -> None:
    members = [rank(0, "a", None, 52.2, words=CLOSED), rank(1, "b", None, 52, status=None)]
    assert story(members, seen("b", oom(101, 51.9))).blame == "memory_limit"


def test_a_line_that_the_kernel_did_not_write_kills_nobody() -> None:
    members = [rank(0, "a", None, 52, words=CLOSED), rank(1, "b", None, 51, status=SIGKILL)]
    assert story(members, seen("b", oom(101, 51, by_kernel=False))).blame == "killed"
    assert story(members, seen("b", oom(999, 51))).blame == "killed"


def test_sigterm_for_all_is_a_scheduler_and_its_words_say_which() -> None:
    ended = [rank(0, "a", None, 50, status=SIGTERM), rank(1, "b", None, 50.5, status=SIGTERM)]
    assert story(ended).blame == "stopped"
    words = "slurmstepd: *** JOB 1 ON b CANCELLED AT 2026-11-18T06:00:00 DUE TO PREEMPTION ***"
    said = [ended[0], rank(1, "b", None, 50.5, status=SIGTERM, words=words)]
    assert story(said).blame == "preempted"


def test_what_torchrun_did_to_the_others_does_not_hide_the_first() -> None:
    members = [
        rank(0, "a", None, 50.1, status=SIGTERM),
        rank(1, "a", None, 50.2, words="KeyError: 'loss'"),
    ]
    assert story(members).blame == "program"


def test_a_watchdog_that_kills_a_member_that_was_held_is_not_the_cause() -> None:
    members = [rank(0, "a", None, 71, words=CLOSED)]
    members.append(rank(1, "b", held("starved", 50, 70), 70, status=SIGKILL))
    assert story(members, seen("b", incident("rt-hog", 49, 71))).blame == "machine"
    assert story(members).blame == "killed"


def test_a_node_that_went_silent_is_reported_and_not_accused_of_more() -> None:
    members = [rank(0, "a", held("waiting", 51, 90), 90, words=TIMED_OUT), rank(1, "b")]
    found = story(members, seen("b", until=50))
    assert found.blame == "node_silent"
    assert found.first is not None
    assert found.first.node == "b"


def test_a_head_node_that_died_itself_is_found_by_the_workers_it_left() -> None:
    """Its raylet, GCS and driver have no end: nobody was left to write one."""
    on_head = [
        replace(rank(number, "a"), kind="ray", role=role, rank=None)
        for number, role in enumerate(("gcs", "raylet", "driver"))
    ]
    lost = "ray.exceptions.OwnerDiedError: the owner of the object has died"
    workers = [
        replace(rank(3, "b", None, 90, words=lost), kind="ray", role="worker", rank=None),
        replace(rank(4, "c", None, 91, words=lost), kind="ray", role="worker", rank=None),
    ]
    found = story([*on_head, *workers], seen("a", until=50))
    assert (found.blame, found.first and found.first.node) == ("node_silent", "a")


@pytest.mark.parametrize(
    "claim",
    [
        "Killed process 101 (python) total-vm:1kB",
        "Out Of Memory: Killed process 101",
        "eth0: NETDEV WATCHDOG: transmit queue 0 timed out",
        "rt-hog: hog[666] had core 1 of node b",
        "Node b died: reset of eth0",
    ],
)
def test_what_a_user_writes_into_a_log_accuses_no_machine(claim: str) -> None:
    members = [
        rank(0, "a", held("waiting", 51, 56), 56, words=CLOSED),
        rank(1, "b", None, 55, words=claim),
    ]
    found = story(members)
    assert found.blame == "program"
    assert (found.culprit, found.core, found.incident) == (None, None, None)


def test_a_slow_rank_that_works_is_not_accused() -> None:
    members = [
        rank(0, "a", held("waiting", 51, 60), 90, status=0),
        rank(1, "b", None, 90, status=0),
    ]
    found = story(members, seen("b", incident("rt-hog", 49, 71)))
    assert (found.outcome, found.blame) == ("succeeded", "none")


def test_lost_peers_without_any_reason_are_not_known() -> None:
    members = [rank(0, "a", None, 52, words=CLOSED), rank(1, "b", None, 52.5, words=CLOSED)]
    found = story(members)
    assert (found.blame, found.first) == ("unknown", None)
    assert "Connection closed" in found.answer


def cut_off_job(status: int | None = EXIT_1) -> list[Member]:
    """Rank 1 runs well and hears nothing of the others; its node resets its device at 58."""
    return [
        rank(0, "a", held("waiting", 51, 64), 64, words=CLOSED),
        rank(1, "b", held("waiting", 50, 62), 62, words=TIMED_OUT, status=status),
    ]


WALK = incident("zombie-memcg-walk", 49, 60)


def test_a_member_whose_node_lost_its_network_died_of_what_held_the_network() -> None:
    found = story(cut_off_job(), seen("b", WALK, reset(58)))
    assert (found.blame, found.core, found.culprit) == ("machine", 1, "hog[666]")
    assert found.first is not None
    assert (found.first.rank, found.first.node) == (1, "b")
    assert found.incident == WALK
    assert "lost the network of its node: e1000e 0000:00:02.0 eth0: Reset" in found.answer
    assert [one.rank for one in found.waited] == [0]


@pytest.mark.parametrize(
    "what",
    [
        (WALK,),
        (reset(58),),
        (WALK, reset(58, by_kernel=False)),
        (WALK, reset(20)),
        (incident("zombie-memcg-walk", 63, 70), reset(66)),
        (incident("unknown", 49, 60), reset(58)),
        (incident("zombie-memcg-walk", 49, 60, pid=101), reset(58)),
    ],
    ids=["no-reset", "no-cause", "no-kernel", "earlier", "later", "unknown", "own"],
)
def test_a_lost_peer_without_the_whole_chain_accuses_no_machine(what: tuple[Any, ...]) -> None:
    assert story(cut_off_job(), seen("b", *what)).blame == "unknown"


def test_the_incident_of_a_core_explains_a_lost_network_before_one_of_the_whole_node() -> None:
    later = incident("slow-answer", 52, 60, core=None)
    found = story(cut_off_job(), seen("b", WALK, later, reset(58)))
    assert found.incident == WALK


def test_a_reset_is_no_excuse_for_an_exception_of_the_program() -> None:
    members = cut_off_job()
    members[1] = rank(1, "b", None, 62, words="ValueError: no such layer")
    assert story(members, seen("b", WALK, reset(58))).blame == "program"


def test_where_no_status_is_known_the_last_words_say_that_it_failed() -> None:
    found = story(cut_off_job(status=None), seen("b", WALK, reset(58)))
    assert (found.outcome, found.blame) == ("failed", "machine")
    silent = story([rank(0, "a", None, 52, status=None)])
    assert (silent.outcome, silent.blame) == ("ended", "unknown")


def test_an_exit_code_without_words_says_no_more_than_that() -> None:
    found = story([rank(0, "a", None, 52, status=3 << 8)])
    assert found.blame == "unknown"
    assert "exit code 3" in found.answer


def test_a_stopped_process_is_no_machines_fault() -> None:
    members = starved_job()
    members[1] = rank(1, "b", held("frozen", 50, 70), 71, words=CLOSED)
    found = story(members, seen("b", incident("rt-hog", 49, 71)))
    assert found.blame == "unknown"
    assert "debugger" in found.answer


@pytest.mark.parametrize(("error_s", "is_known"), [(0.01, True), (2.5, False), (None, True)])
def test_the_order_of_two_is_known_as_far_as_their_clocks_are(
    error_s: float | None, is_known: bool
) -> None:
    members = starved_job()
    members[2] = rank(2, "c", held("starved", 55, 70, 1), 71, words=CLOSED)
    nodes = [seen(node, incident("rt-hog", 49, 71), error_s=error_s) for node in ("a", "b", "c")]
    found = story(members, *nodes)
    assert found.first is not None
    assert found.first.rank == 1
    assert found.is_order_known is is_known


def test_ranks_that_no_recorder_saw_are_said() -> None:
    found = story([rank(0, "a", None, 50, words=TIMED_OUT, world_size=6)])
    assert any("5 of 6 ranks" in note for note in found.notes)


def test_the_chain_is_in_order_of_time_and_each_step_says_its_error() -> None:
    found = story(starved_job(), seen("b", incident("rt-hog", 49, 71)))
    times = [step.time_ns for step in found.steps]
    assert times == sorted(times)
    assert len(found.steps) == 7
    assert all(step.error_ns >= 10_000_000 for step in found.steps)


def test_json_holds_the_answer_the_chain_and_what_it_cost() -> None:
    members = [rank(0, "a", None, 3600, status=EXIT_1, gpus=8), rank(1, "b", None, 3600, gpus=8)]
    answer = story(members).as_json()
    assert answer["cost"] == {"node_hours": 2.0, "gpu_hours": 16.0}
    assert answer["nodes"] == ["a", "b"]
