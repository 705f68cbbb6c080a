"""`fleet jobs`: how jobs ended, whose fault it was, and success by the nodes they ran on."""

from pathlib import Path
from typing import Any

import pytest
from tests.fleet_jobs import NODES, draw_death
from tests.fleet_lakes import DrawnLake, moment

from necroscope.errors import UsageError
from necroscope.fleet.ask import LakeQuestions
from necroscope.fleet.questions.answer import answer
from necroscope.views.fleet.jobs import jobs_to_text


def ask(drawn: DrawnLake, **words: str) -> dict[str, Any]:
    return answer("jobs", LakeQuestions(drawn.write(), moment(9)), {"since": "-9d", **words})


def story(place: Path) -> DrawnLake:
    """Zone a: gpu-0 and gpu-1; zone b: gpu-2. One death by the machine, one by the program."""
    drawn = DrawnLake(place)
    for node in NODES:
        drawn.alive(node, range(9))
        drawn.fact(node, "label", "zone", "b" if node == "gpu-2" else "a")
    draw_death(drawn, "slurm/1", 3)
    drawn.member("gpu-2", "slurm/2", 0, 4, status=256, words="ValueError: no such file")
    for number in range(3, 9):
        drawn.member("gpu-2", f"slurm/{number}", 0, 5 + number / 100)
    drawn.member("gpu-0", "mpi/9", 0, 6, kind="mpi", ended_ns=None, status=None)
    return drawn


def test_what_the_machine_did_is_kept_apart(tmp_path: Path) -> None:
    found = ask(story(tmp_path))
    assert found["outcomes"] == {"succeeded": 6, "failed": 2, "running": 1}
    assert found["blames"] == {"machine": 1, "program": 1}
    first = next(one for one in found["jobs"] if one["job"] == "slurm/1")
    assert (first["blame"], first["node"], first["cause"]) == ("machine", "gpu-1", "rt-hog")
    text = jobs_to_text(found)
    assert "of those that failed: the machine 1; program 1" in text
    assert "machine, gpu-1, rt-hog" in text


def test_success_counts_under_each_value_of_the_nodes_a_job_ran_on(tmp_path: Path) -> None:
    rates = {each["value"]: each for each in ask(story(tmp_path), by="zone")["rates"]}
    assert (rates["a"]["success"], rates["a"]["runs"], rates["a"]["by_machine"]) == (0, 1, 1)
    assert (rates["b"]["success"], rates["b"]["runs"], rates["b"]["by_machine"]) == (6, 8, 1)
    assert rates["b"]["low"] < 0.75 < rates["b"]["high"]


def test_success_by_kind_leaves_out_what_has_no_outcome(tmp_path: Path) -> None:
    [rate] = ask(story(tmp_path))["rates"]
    assert (rate["value"], rate["success"], rate["runs"]) == ("torch", 6, 8)


def test_jobs_are_chosen_by_the_nodes_they_ran_on(tmp_path: Path) -> None:
    found = ask(story(tmp_path), where="zone=a")
    assert {one["job"] for one in found["jobs"]} == {"slurm/1", "mpi/9"}


def test_a_name_that_no_node_has_is_an_error(tmp_path: Path) -> None:
    with pytest.raises(UsageError, match="colour"):
        ask(story(tmp_path), by="colour")


def test_a_lake_without_jobs_has_none(tmp_path: Path) -> None:
    drawn = DrawnLake(tmp_path)
    drawn.alive("gpu-0", [8])
    found = ask(drawn)
    assert (found["count"], found["jobs"], found["rates"]) == (0, [], [])
    assert jobs_to_text(found).startswith("0 jobs")


def test_why_uses_the_nodes_that_chains_lead_to_and_not_where_the_line_was(tmp_path: Path) -> None:
    """Rank 0 writes the line, always on a head node; rank 1 is held, on nodes with the unit."""
    drawn = DrawnLake(tmp_path)
    for number in range(24):
        node = f"gpu-{number}"
        drawn.alive(node, range(9))
        has_unit = number % 2 == 1
        drawn.fact(node, "unit_outcome", "agent.service", "crash-loop" if has_unit else "inactive")
        drawn.fact(node, "label", "head", "yes" if number % 4 == 0 else "no")
    for number in range(9):
        nodes = f"gpu-{number % 6 * 4}", f"gpu-{number * 2 + 1}", f"gpu-{number * 2 + 2}"
        draw_death(drawn, f"slurm/{number}", 3 + number / 10, nodes=nodes)
    questions = LakeQuestions(drawn.write(), moment(9))
    found = answer("why", questions, {"job_failed": "true", "since": "-9d"})
    assert found["affected"] == 9
    assert found["leaders"][0]["name"] == "unit_outcome agent.service is crash-loop"
    with pytest.raises(UsageError, match="leads to a node"):
        answer("why", questions, {"job_failed": "true", "since": "-9d", "until": "-8d"})


def test_only_one_thing_is_explained_at_a_time(tmp_path: Path) -> None:
    questions = LakeQuestions(story(tmp_path).write(), moment(9))
    with pytest.raises(UsageError, match="one event or one cause"):
        answer("why", questions, {"job_failed": "true", "event": "nic_reset"})
