"""`fleet job`: from the line on one node to the core on another, by clocks that are off, with what it
cost.
"""

from pathlib import Path
from typing import Any

import pytest
from tests.fleet_jobs import NODES, PEER, draw_death
from tests.fleet_lakes import NS, DrawnLake, moment

from necroscope.errors import UsageError
from necroscope.fleet.ask import LakeQuestions
from necroscope.fleet.questions.answer import answer
from necroscope.views.fleet.jobs import job_to_text

JOB = "torch/10.0.0.1:29500"


def ask(drawn: DrawnLake, day: float = 9, **words: str) -> dict[str, Any]:
    return answer("job", LakeQuestions(drawn.write(), moment(day)), words)


def test_the_line_on_one_node_leads_to_the_core_on_another(tmp_path: Path) -> None:
    drawn = DrawnLake(tmp_path)
    draw_death(drawn, JOB, 8)
    found = ask(drawn, job=JOB)
    assert (found["outcome"], found["blame"], found["cluster"]) == ("failed", "machine", "eu-1")
    assert (found["node"], found["core"], found["cause"]) == ("gpu-1", 3, "rt-hog")
    assert found["culprit"] == "hog[666]"
    assert found["waited"] == ["rank 0 on gpu-0", "rank 2 on gpu-2"]
    assert [step["node"] for step in found["chain"]][:2] == ["gpu-1", "gpu-1"]
    assert all(step["error_ms"] < 1100 for step in found["chain"])
    assert found["cost"]["node_hours"] == 3.0
    assert found["cost"]["gpu_hours"] == 24.0
    text = job_to_text(found)
    assert "rank 1 on gpu-1 stopped first" in text
    assert "0 other jobs hit by the same cause" in text


def test_clocks_that_are_two_seconds_off_change_nothing(tmp_path: Path) -> None:
    """Uncorrected, the others would have begun to wait before rank 1 was held."""
    right, off = DrawnLake(tmp_path / "a"), DrawnLake(tmp_path / "b")
    draw_death(right, JOB, 8)
    draw_death(off, JOB, 8, offsets_s=(2.0, -2.0, 0.5))
    expected, found = ask(right, job=JOB), ask(off, job=JOB)
    for name in ("blame", "node", "core", "culprit", "waited", "is_order_known", "from", "to"):
        assert found[name] == expected[name], name
    times = [[(step["time"], step["text"]) for step in one["chain"]] for one in (found, expected)]
    assert times[0] == times[1]


def test_a_clock_that_is_a_day_off_is_put_right_too(tmp_path: Path) -> None:
    drawn = DrawnLake(tmp_path)
    draw_death(drawn, JOB, 7, offsets_s=(0, 86_400, 0))
    found = ask(drawn, job=JOB)
    assert (found["blame"], found["node"], len(found["members"])) == ("machine", "gpu-1", 3)
    assert found["to"].startswith("2026-04-08T00:00:00")


def test_an_order_within_the_clocks_error_is_said_to_be_unknown(tmp_path: Path) -> None:
    def draw(place: Path, error_s: float) -> dict[str, Any]:
        drawn = DrawnLake(place)
        for rank, (start_s, hog) in enumerate(((-20, "one[1]"), (-16, "two[2]"))):
            drawn.member(
                NODES[rank], JOB, rank, 8, status=256, words=PEER, stop_how="starved", stop_from=start_s,
                stop_to=0, stop_core=3, stop_by=hog, stop_by_pid=rank + 1,
                clock_error_ns=round(error_s * NS),
            )  # fmt: skip
        return ask(drawn, job=JOB)

    assert draw(tmp_path / "a", 0.01)["is_order_known"]
    found = draw(tmp_path / "b", 2.0)
    assert not found["is_order_known"]
    assert "which was first is uncertain" in job_to_text(found)


def test_clocks_that_nobody_measured_are_said_to_be(tmp_path: Path) -> None:
    drawn = DrawnLake(tmp_path)
    draw_death(drawn, JOB, 8, clock_error_ns=None)
    assert any("clocks of the nodes were not compared" in note for note in ask(drawn)["notes"])


def test_other_jobs_of_the_week_that_the_same_cause_killed_are_counted(tmp_path: Path) -> None:
    drawn = DrawnLake(tmp_path)
    draw_death(drawn, "slurm/1", 0.5)
    draw_death(drawn, "slurm/2", 5, nodes=("gpu-4", "gpu-5", "gpu-6"))
    draw_death(drawn, "slurm/3", 6, cause="kswapd-reclaim")
    draw_death(drawn, "slurm/4", 8)
    for rank, node in enumerate(NODES):
        drawn.member(node, "slurm/5", rank, 7, status=0)
    found = ask(drawn, job="4")
    assert found["cost"]["jobs_this_week"] == 1
    assert [(one["job"], one["node"]) for one in found["cost"]["alike"]] == [("slurm/2", "gpu-5")]
    assert "slurm/2 at 2026-04-06" in job_to_text(found)


def test_a_program_that_raised_is_told_from_a_machine_that_failed(tmp_path: Path) -> None:
    """Although the node of another rank had an incident at the time."""
    drawn = DrawnLake(tmp_path)
    drawn.member("gpu-0", JOB, 0, 8, status=256, words="ValueError: loss is not finite")
    drawn.member("gpu-1", JOB, 1, 8, status=256, words=PEER, ended_ns=1)
    drawn.incident("gpu-1", "x", "rt-hog", 8 - 30 / 86400, end=moment(8))
    found = ask(drawn, job=JOB)
    assert (found["blame"], found["node"]) == ("program", "gpu-0")
    assert found["blame_words"].startswith("not the machine")
    assert found["cost"]["jobs_this_week"] is None


def test_a_memory_limit_needs_the_kernels_own_line(tmp_path: Path) -> None:
    def draw(place: Path, *, by_kernel: bool) -> str:
        drawn = DrawnLake(place)
        drawn.member("gpu-0", JOB, 0, 8, status=9)
        drawn.add(
            "events", "gpu-0", moment(8) - NS, boot_id="b", source_sequence=1, kind="oom_kill", pid=100,
            by_kernel=by_kernel, message="Killed process 100 (python)",
        )  # fmt: skip
        return str(ask(drawn, job=JOB)["blame"])

    assert draw(tmp_path / "a", by_kernel=True) == "memory_limit"
    assert draw(tmp_path / "b", by_kernel=False) == "killed"


def test_ids_that_are_used_again_are_runs_of_their_own(tmp_path: Path) -> None:
    drawn = DrawnLake(tmp_path)
    draw_death(drawn, JOB, 3)
    for rank, node in enumerate(NODES):
        drawn.member(node, JOB, rank, 8, pid=200 + rank)
    assert ask(drawn, job=JOB)["outcome"] == "succeeded"
    assert ask(drawn, job=JOB, at="2026-04-03T23:30")["outcome"] == "failed"
    assert ask(drawn)["outcome"] == "failed"


def test_rows_that_came_twice_and_again_with_more_are_one_member(tmp_path: Path) -> None:
    drawn = DrawnLake(tmp_path)
    draw_death(drawn, JOB, 8)
    drawn.write("w1")
    draw_death(drawn, JOB, 8)
    drawn.member("gpu-1", JOB, 1, 8, status=256, words=PEER, analysed_ns=0)
    drawn.member("gpu-1", JOB, 1, 8, ended_ns=None, status=None, started_ns=-3599)
    drawn.write("w2")
    found = ask(drawn, job=JOB)
    assert (len(found["members"]), found["node"], found["core"]) == (3, "gpu-1", 3)


def test_a_node_that_went_silent_is_found_once_its_pulses_stay_out(tmp_path: Path) -> None:
    drawn = DrawnLake(tmp_path)
    drawn.member("gpu-0", JOB, 0, 8, status=256, words=PEER)
    drawn.member("gpu-1", JOB, 1, 8, ended_ns=None, status=None)
    for node, last_s in (("gpu-0", 100), ("gpu-1", -60)):
        span = {"span_from": moment(8) - 200 * NS, "span_to": moment(8) + last_s * NS}
        drawn.add("pulses", node, span["span_to"], **span)
    found = ask(drawn, job=JOB)
    assert (found["blame"], found["node"]) == ("node_silent", "gpu-1")
    early = ask(DrawnLake(tmp_path), day=8 + 100 / 86400, job=JOB)
    assert early["blame"] == "unknown"


def test_half_of_the_ranks_without_a_recorder_is_said(tmp_path: Path) -> None:
    drawn = DrawnLake(tmp_path)
    for rank, node in enumerate(NODES[:2]):
        drawn.member(node, JOB, rank, 8, status=256, words=PEER, world_size=4)
    found = ask(drawn, job=JOB)
    assert found["blame"] == "unknown"
    assert "2 of 4 ranks were seen by no recorder" in found["notes"][0]


def test_a_raylet_is_part_of_each_job_of_its_cluster(tmp_path: Path) -> None:
    drawn = DrawnLake(tmp_path)
    ray = {"kind": "ray"}
    drawn.member(
        "gpu-0",
        "ray/s1/01000000",
        None,
        8,
        role="worker",
        status=256,
        words="ActorDiedError",
        **ray,
    )
    drawn.member(
        "gpu-1", "ray/s1", None, 8, role="raylet", comm="raylet", ended_ns=None, status=None, stop_how="starved",
        stop_from=-50, stop_to=-5, stop_core=3, stop_by="hog[666]", stop_by_pid=666, **ray,
    )  # fmt: skip
    found = ask(drawn, job="01000000")
    assert (found["blame"], found["node"], found["first"]["role"]) == ("machine", "gpu-1", "raylet")


def test_a_wrong_id_says_what_there_is(tmp_path: Path) -> None:
    drawn = DrawnLake(tmp_path)
    drawn.alive("gpu-0", [8])
    drawn.member("gpu-0", "slurm/4711", 0, 8)
    with pytest.raises(UsageError) as found:
        ask(drawn, job="4712")
    assert "slurm/4711" in found.value.hint
    with pytest.raises(UsageError) as found:
        ask(drawn)
    assert "no job failed" in found.value.facts


def test_a_submission_to_ray_leads_to_the_workers_of_its_job(tmp_path: Path) -> None:
    drawn = DrawnLake(tmp_path)
    ray: dict[str, Any] = {"kind": "ray", "status": 256, "pid": 7}
    for name in ("02000000", "raysubmit_x"):
        words = "ray.exceptions.ActorDiedError: the actor died"
        drawn.member("head", f"ray/s1/{name}", None, 8, role="driver", words=words, **ray)
    held = {"stop_how": "starved", "stop_from": -20, "stop_to": 0, "stop_core": 3}
    who = {"stop_by": "hog[666]", "stop_by_pid": 666}
    drawn.member("gpu-1", "ray/s1/02000000", None, 8, role="worker", **ray | held | who)
    drawn.member("gpu-2", "ray/s1/03000000", None, 8, role="worker", **ray)
    for name in ("raysubmit_x", "ray/s1/raysubmit_x", "ray/s1/02000000"):
        found = ask(drawn, job=name)
        assert (found["job"], found["nodes"]) == ("ray/s1/02000000", ["gpu-1", "head"])
        assert (found["blame"], found["node"], found["culprit"]) == ("machine", "gpu-1", "hog[666]")
        assert found["submission"] == "ray/s1/raysubmit_x"
    assert "raysubmit_x" in job_to_text(found)
