"""One run of a job: its outcome, its cost, its output within bounds, nothing left behind."""

import os
import time
from pathlib import Path

import pytest

from necroscope.errors import UsageError
from necroscope.stakeout.job import Job, memory_by_session
from necroscope.stakeout.outcome import Run


def ended(job: Job) -> Run:
    deadline = time.monotonic() + 30
    while (run := job.poll(2)) is None:
        assert time.monotonic() < deadline
        time.sleep(0.01)
    return run


def test_output_and_exit_code_are_kept(tmp_path: Path) -> None:
    run = ended(Job(1, ["sh", "-c", "echo out; echo err >&2; exit 7"], tmp_path / "1.log", 1))
    assert (run.exit_code, run.is_failure, run.started_ns, run.ended_ns) == (7, True, 1, 2)
    assert sorted((tmp_path / "1.log").read_text().split()) == ["err", "out"]


def test_a_signal_that_ended_it_is_reported(tmp_path: Path) -> None:
    assert ended(Job(1, ["sh", "-c", "kill -9 $$"], tmp_path / "1.log", 1)).exit_code == -9


def test_of_much_output_the_begin_and_the_end_are_kept(tmp_path: Path) -> None:
    ended(
        Job(
            1,
            ["sh", "-c", "echo first; head -c 30000000 /dev/zero; echo last"],
            tmp_path / "1.log",
            1,
        )
    )
    kept = (tmp_path / "1.log").read_bytes()
    assert kept.startswith(b"first")
    assert kept.endswith(b"last\n")
    assert b"bytes were not kept" in kept
    assert len(kept) < 10_000_000


def test_what_a_job_leaves_running_ends_with_it(tmp_path: Path) -> None:
    ended(Job(1, ["sh", "-c", f"sleep 60 & echo $! > {tmp_path}/pid"], tmp_path / "1.log", 1))
    pid = int((tmp_path / "pid").read_text())
    deadline = time.monotonic() + 10
    while (
        Path(f"/proc/{pid}/stat").exists() and b") Z" not in Path(f"/proc/{pid}/stat").read_bytes()
    ):
        assert time.monotonic() < deadline
        time.sleep(0.01)


def test_a_job_that_does_not_listen_is_stopped_all_the_same(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("necroscope.stakeout.job._MERCY_S", 0.2)
    job = Job(
        1,
        ["sh", "-c", f"trap '' TERM; touch {tmp_path}/ready; while :; do sleep 0.1; done"],
        tmp_path / "1.log",
        1,
    )
    while not (tmp_path / "ready").exists():
        time.sleep(0.01)
    assert job.stop(2).stopped


def test_memory_is_that_of_the_job_and_not_of_who_started_it(tmp_path: Path) -> None:
    job = Job(1, ["sleep", "30"], tmp_path / "1.log", 1)
    own_bytes = memory_by_session()[os.getsid(0)]
    # Between fork and exec it still has our memory.
    deadline = time.monotonic() + 10
    while not (job_bytes := memory_by_session().get(job._process.pid)) or job_bytes > 10_000_000:
        assert time.monotonic() < deadline
    job.note_memory({job._process.pid: job_bytes})
    run = job.stop(2)
    assert run.peak_rss_bytes == job_bytes < own_bytes


def test_a_program_that_does_not_exist_is_an_error_with_a_way_out(tmp_path: Path) -> None:
    with pytest.raises(UsageError, match="cannot run"):
        Job(1, ["/no/such/program"], tmp_path / "1.log", 1)
