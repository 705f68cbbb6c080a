"""Which nodes hear of a job's death, and for how long."""

import time
from dataclasses import replace
from pathlib import Path
from typing import Any

import httpx
from tests.fleet_batches import made_batch
from tests.fleet_lakes import NS, DrawnLake, moment
from tests.served_collector import served

from necroscope.fleet.collector.app import create_app
from necroscope.fleet.collector.job_deaths import JobDeaths
from necroscope.fleet.compaction import Compactor
from necroscope.fleet.lake import Lake
from necroscope.fleet.protocol import encode
from necroscope.fleet.tokens import Grant, Tokens, digest_of

DAY = 8.0


class DeathStory:
    def __init__(self, place: Path) -> None:
        self.drawn = DrawnLake(place)
        self.now_ns = moment(DAY)
        self.deaths = JobDeaths(self.drawn.lake, lambda: self.now_ns)

    def member(self, node: str, job: str, seconds: float, **others: object) -> None:
        self.drawn.member(node, job, 0, DAY + seconds / 86400, **others)

    def of(self, node: str, cluster: str = "eu-1") -> list[str]:
        self.drawn.write(f"w{self.now_ns}", self.now_ns)
        self.deaths.refresh()
        return [death["job"] for death in self.deaths.of(cluster, node)]


ALIVE = {"ended_ns": None, "status": None}


def test_nodes_of_the_job_hear_of_a_death_and_others_do_not(tmp_path: Path) -> None:
    story = DeathStory(tmp_path)
    story.member("gpu-0", "slurm/1", -600, **ALIVE)
    story.member("gpu-2", "slurm/2", -600, **ALIVE)
    story.member("gpu-1", "slurm/1", -5, status=9)
    assert story.of("gpu-0") == ["slurm/1"]
    assert story.of("gpu-1") == ["slurm/1"]
    assert not story.of("gpu-2")
    assert not story.of("gpu-0", "eu-2")
    story.now_ns += 400 * NS
    assert not story.of("gpu-0")


def test_what_another_collector_wrote_later_is_heard_of_too(tmp_path: Path) -> None:
    story = DeathStory(tmp_path)
    story.member("gpu-0", "slurm/1", -600, **ALIVE)
    assert not story.of("gpu-0")
    story.now_ns += 10 * NS
    story.member("gpu-1", "slurm/1", 5, status=256)
    assert story.of("gpu-0") == ["slurm/1"]


def test_a_death_is_reported_by_the_collectors_clock(tmp_path: Path) -> None:
    story = DeathStory(tmp_path)
    story.member("gpu-0", "slurm/1", -10, status=9, clock_offset_ns=2 * NS)
    story.of("gpu-0")
    assert story.deaths.of("eu-1", "gpu-0")[0]["time_ns"] == moment(DAY) - 8 * NS


def test_a_worker_that_a_raylet_sent_home_is_no_death_but_one_that_was_killed_is(
    tmp_path: Path,
) -> None:
    story = DeathStory(tmp_path)
    story.member("gpu-9", "ray/s1", -600, kind="ray", role="raylet", **ALIVE)
    story.member("gpu-0", "ray/s1/01000000", -5, kind="ray", role="worker", status=256)
    assert not story.of("gpu-9")
    story.now_ns += NS
    story.member("gpu-0", "ray/s1/02000000", -5, kind="ray", role="worker", status=9)
    assert story.of("gpu-9") == ["ray/s1/02000000"]


def test_jobs_that_were_not_heard_of_for_hours_are_forgotten(tmp_path: Path) -> None:
    story = DeathStory(tmp_path)
    story.member("gpu-0", "slurm/1", -600, **ALIVE)
    story.of("gpu-0")
    story.now_ns += 3 * 3600 * NS
    story.member("gpu-1", "slurm/1", 3 * 3600 - 5, status=9)
    assert not story.of("gpu-0")
    assert story.of("gpu-1") == ["slurm/1"]


TOKEN = "pusher"


def push(client: httpx.Client, body: bytes) -> list[dict[str, Any]]:
    """The deaths that the answer tells of."""
    answer = client.post("/v1/batches", content=body, headers={"Authorization": f"Bearer {TOKEN}"})
    assert answer.status_code == 200, answer.text
    deaths: list[dict[str, Any]] = answer.json()["job_deaths"]
    return deaths


def test_nodes_of_a_job_hear_of_its_death_with_the_answer_to_their_batch(tmp_path: Path) -> None:
    lake = Lake.open(str(tmp_path / "lake"))
    now_ns = time.time_ns()

    def batch(node: str, ended_ns: int | None) -> bytes:
        row = {
            "time": now_ns, "job": "slurm/1", "kind": "torch", "role": "rank", "pid": 7, "comm": "python",
            "started_ns": now_ns - 10**9, "ended_ns": ended_ns, "status": None if ended_ns is None else 9,
            "analysed_ns": now_ns,
        }  # fmt: skip
        sent = replace(made_batch(node), sent_ns=now_ns)
        sent.tables["job_members"] = {name: [value] for name, value in row.items()}
        return encode(sent)

    app = create_app(
        lake,
        Tokens({digest_of(TOKEN): Grant("eu-1", "push")}),
        commit_every_s=0.001,
        compact_every_s=3600,
    )
    with served(app) as client:
        push(client, batch("n1", None))
        push(client, batch("n2", now_ns))
        collector = app.state.collector
        Compactor(lake, collector.name, time.time_ns).compact()
        collector.job_deaths.refresh()
        heard = push(client, batch("n1", None))
        assert [death["job"] for death in heard] == ["slurm/1"]
        assert push(client, encode(made_batch("n3"))) == []
