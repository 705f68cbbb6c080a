"""`necroscope job` over written recordings of two nodes."""

import json
from pathlib import Path

import pytest
from click.testing import CliRunner
from tests.written_recording import NS, WrittenSegment, at, new_recording, row

from necroscope.cli.diagnose import command as diagnose
from necroscope.cli.job import command
from necroscope.errors import RecordingError, UsageError
from necroscope.segment.recording import Identity, write_identity

JOB = "torch/10.0.0.1:29500"


def node(
    directory: Path,
    name: str,
    rank: int,
    *,
    is_starved: bool,
    throttled: tuple[int, ...] = (),
    crowd: tuple[str, ...] = (),
    crowd_cgroup: str = "/neighbour",
) -> Path:
    """A rank that works for 40 s; then it starves, or waits for the other, and ends at 60. Its pod
    is throttled at some seconds. With a crowd, its waits name nobody, and these take turns on the
    core.
    """
    new_recording(directory)
    write_identity(directory, Identity(name, "boot-1", "necroscope 1.2.3", {}))
    member = {
        "job": JOB, "kind": "torch", "role": "rank", "rank": rank, "world_size": 2, "pid": 100 + rank,
        "comm": "python", "started_ns": at(1), "cgroup": "/pod/app",
    }  # fmt: skip
    words = "RuntimeError: Timed out waiting 5000ms for recv operation to complete"
    end = {"ended_ns": at(60), "status": 256, "words": words}
    stands = {"state": "R", "delay_ns": NS * 9 // 10} if is_starved else {"state": "S"}
    progress = [
        row("job_progress", second, job=JOB, pid=100 + rank, cpu=1, elapsed_ns=NS,
            **({"state": "R", "cpu_ns": NS, "delay_ns": 0} if second <= 40 else stands))
        for second in range(2, 60)
    ]  # fmt: skip
    hog = {"by_pid": 666, "by_tid": 666, "by_comm": "hog", "by_policy": "fifo"}
    waits = [
        row("waits", second, waited_ns=NS * 9 // 10, kind="runnable", cpu=1, pid=100 + rank,
            tid=100 + rank, comm="python", policy="other", cores_allowed=1, **hog)
        for second in range(42, 60)
        if is_starved and not crowd
    ]  # fmt: skip
    segment = WrittenSegment(directory, 0)
    segment.ticks(0, 70)
    segment.add("job_members", row("job_members", 2, **member))
    segment.add("job_members", row("job_members", 61, **member, **end))
    segment.add("job_progress", *progress)
    segment.add("waits", *waits)
    segment.add("samples", *_turns(crowd, crowd_cgroup))
    segment.add("cgroups", *_throttled(throttled))
    segment.leave()
    return directory


def _throttled(seconds: tuple[int, ...]) -> list[tuple[object, ...]]:
    quota = {"path": "/pod", "throttled_ns": 4 * NS, "nr_throttled": 40, "visible": 9}
    return [row("cgroups", second, **quota) for second in seconds]


def _turns(crowd: tuple[str, ...], cgroup: str) -> list[tuple[object, ...]]:
    """Samples of core 1: each of the crowd has one per second."""
    return [
        row("samples", second, cpu=1, pid=700 + place, tid=700 + place, comm=comm, cgroup=cgroup,
            stack=0, weight=1)
        for second in range(41, 60)
        for place, comm in enumerate(crowd)
    ]  # fmt: skip


def ask(*words: str | Path) -> str:
    result = CliRunner().invoke(command, [str(word) for word in words], catch_exceptions=False)
    assert result.exit_code == 0, result.output
    return result.output


def test_two_recordings_tell_who_held_up_whom(tmp_path: Path) -> None:
    a = node(tmp_path / "a", "node-a", 0, is_starved=False)
    b = node(tmp_path / "b", "node-b", 1, is_starved=True)
    answer = json.loads(ask("--json", a, b))
    assert (answer["job"], answer["outcome"], answer["blame"]) == (JOB, "failed", "machine")
    assert (answer["node"], answer["core"], answer["culprit"]) == ("node-b", 1, "hog[666] (fifo)")
    assert answer["waited"] == ["rank 0 on node-a"]
    text = ask(JOB, a, b)
    assert "rank 1 on node-b stopped first" in text
    assert "clocks of the nodes were not compared" in text


@pytest.mark.parametrize(
    ("throttled", "culprit"),
    [((45, 50, 55, 60), "the CPU quota of /pod"), ((10, 15, 20, 25), "hog[666] (fifo)")],
)
def test_a_quota_explains_a_death_only_if_it_was_used_up_then(
    tmp_path: Path, throttled: tuple[int, ...], culprit: str
) -> None:
    a = node(tmp_path / "a", "node-a", 0, is_starved=False)
    b = node(tmp_path / "b", "node-b", 1, is_starved=True, throttled=throttled)
    answer = json.loads(ask("--json", a, b))
    assert (answer["blame"], answer["node"], answer["core"]) == ("machine", "node-b", 1)
    assert culprit in answer["answer"]


@pytest.mark.parametrize(
    ("crowd", "culprit"),
    [
        (("app",) * 9, "app (9 processes)"),
        (("app", "app", "other"), "app (2 processes)"),
        (("app", "other", "third"), None),
        (("app",), None),  # too few samples
    ],
)
def test_many_of_one_program_that_take_turns_on_the_core_are_named(
    tmp_path: Path, crowd: tuple[str, ...], culprit: str | None
) -> None:
    a = node(tmp_path / "a", "node-a", 0, is_starved=False)
    b = node(tmp_path / "b", "node-b", 1, is_starved=True, crowd=crowd)
    told = json.loads(ask("--json", a, b))
    assert told["culprit"] == culprit
    assert told["blame"] == ("machine" if culprit else "unknown")


def test_a_crowd_of_its_own_cgroup_is_not_the_machines_fault(tmp_path: Path) -> None:
    """As the workers that load a rank's data."""
    a = node(tmp_path / "a", "node-a", 0, is_starved=False)
    b = node(
        tmp_path / "b",
        "node-b",
        1,
        is_starved=True,
        crowd=("pt_data",) * 9,
        crowd_cgroup="/pod/app",
    )
    assert json.loads(ask("--json", a, b))["blame"] == "unknown"


def test_one_recording_says_what_it_cannot_know(tmp_path: Path) -> None:
    a = node(tmp_path / "a", "node-a", 0, is_starved=False)
    answer = json.loads(ask("--json", a))
    assert answer["blame"] == "unknown"
    assert "1 of 2 ranks were seen by no recorder" in answer["notes"][0]


def test_jobs_are_listed_and_a_wrong_id_says_what_there_is(tmp_path: Path) -> None:
    a = node(tmp_path / "a", "node-a", 0, is_starved=False)
    assert JOB in ask("--list", a)
    with pytest.raises(UsageError) as found:
        ask("slurm/1", a)
    assert JOB in found.value.hint


def test_without_a_recording_the_one_of_the_running_recorder_is_read(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    recording = node(tmp_path / "b", "node-b", 1, is_starved=True)
    monkeypatch.setattr("necroscope.cli.job.find_recording", lambda: recording)
    assert json.loads(ask("--json"))["job"] == JOB
    assert json.loads(ask("--json", JOB))["job"] == JOB
    with pytest.raises(RecordingError, match="there is no directory /nowhere"):
        ask("/nowhere")


def test_a_recording_without_jobs_says_what_to_ask_instead() -> None:
    recording = Path(__file__).parents[2] / "data" / "lab" / "irq-core-collision"
    with pytest.raises(UsageError, match="no job was recorded here") as caught:
        ask(recording)
    assert "necroscope diagnose --at T" in caught.value.hint


def test_a_diagnosis_of_a_node_whose_job_failed_names_the_command_that_says_why(
    tmp_path: Path,
) -> None:
    recording = node(tmp_path / "a", "node-a", 0, is_starved=False)
    done = CliRunner().invoke(diagnose, [str(recording)], catch_exceptions=False)
    assert f"The job {JOB} failed. To see why:" in done.stdout
    asked = done.stdout.splitlines()[-1].split()
    assert asked == ["necroscope", "job", str(recording)]
    assert "1 member on 1 node not known" in " ".join(ask(*asked[2:]).split())


REAL = Path(__file__).parents[2] / "data/jobs/starved-rank"


def test_a_real_job_over_three_nodes_leads_to_the_task_on_another_node() -> None:
    answer = json.loads(ask("--json", *sorted(REAL.iterdir())))
    assert (answer["blame"], answer["node"], answer["core"]) == ("machine", "node-b", 1)
    assert (answer["culprit"], answer["cause"]) == ("appbzmxv[9148] (rr)", "rt-hog")
    assert answer["waited"] == ["rank 0 on node-a", "rank 2 on node-c"]


@pytest.mark.parametrize("seen", [("node-a",), ("node-a", "node-c")])
def test_a_real_job_without_the_recorder_of_the_held_rank_accuses_nobody(
    seen: tuple[str, ...],
) -> None:
    answer = json.loads(ask("--json", *(REAL / name for name in seen)))
    assert (answer["outcome"], answer["blame"], answer["culprit"]) == ("failed", "unknown", None)
    assert any("seen by no recorder" in note for note in answer["notes"])
