"""The push process as its recorder sees it: started again with ever longer pauses, told once, ended
in time.
"""

import os
import signal
import sys
import time
from itertools import pairwise
from pathlib import Path

import pytest

from necroscope import settings
from necroscope.cli.watched_process import WatchedProcess, push_command


def shell(script: str) -> list[str]:
    return ["/bin/sh", "-c", script]


def tended(process: WatchedProcess, count: int = 1) -> list[str]:
    """What it tells, once it has that many things to tell."""
    messages: list[str] = []
    deadline = time.monotonic() + 10
    while len(messages) < count and time.monotonic() < deadline:
        messages += process.tend()
        time.sleep(0.01)
    return messages


def test_the_command_names_files_and_no_secret() -> None:
    values = {
        "push": "https://c:1",
        "push-token-file": "/t",
        "push-ca-file": "/ca",
        "push-labels": "/l",
    }
    command = push_command(Path("/rec"), settings.parse(values))
    assert command[:6] == [sys.executable, "-P", "-m", "necroscope", "fleet", "push"]
    assert command[6:] == [
        *(
            "/rec",
            "--to",
            "https://c:1",
            "--token-file",
            "/t",
            "--ca-file",
            "/ca",
            "--labels-file",
            "/l",
        ),
        *("--follow", "--while-stdin", "--json"),
    ]


def test_what_it_says_is_passed_on_line_by_line() -> None:
    process = WatchedProcess(
        "push", shell("echo 'warning: no collector' >&2; printf 'half' >&2; read x")
    )
    assert tended(process) == ["push: no collector"]
    process.end()


def test_one_that_dies_is_started_again_ever_more_seldom() -> None:
    now = [0.0]
    process = WatchedProcess("push", shell("exit 3"), lambda: now[0])
    starts = []
    for _ in range(6):
        starts.append(now[0])
        assert tended(process) == ["push ended with 3; recording goes on, and it is started again"]
        assert process.tend() == []
        assert process._child is None
        now[0] = process._pauses._not_before_s
    pauses = [later - sooner for sooner, later in pairwise(starts)]
    assert pauses == [5, 10, 20, 40, 80]


def test_one_that_lived_long_is_started_again_soon() -> None:
    now = [0.0]
    process = WatchedProcess("push", shell("read x"), lambda: now[0])
    process.tend()
    now[0] = 1000.0
    assert process._child is not None
    os.kill(process._child.pid, signal.SIGKILL)
    tended(process)
    assert process._pauses._not_before_s == 1005.0


def test_it_hears_of_our_end() -> None:
    process = WatchedProcess(
        "push",
        shell(
            "trap '' TERM; echo ready >&2; while read x; do :; done; echo 'warning: finished' >&2"
        ),
    )
    assert tended(process) == ["push: ready"]
    assert process.end() == ["push: finished"]


def test_one_that_does_not_end_is_killed(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("necroscope.cli.watched_process._END_S", 0.2)
    process = WatchedProcess(
        "push", shell("trap '' TERM; echo ready >&2; while :; do sleep 0.05; done")
    )
    assert tended(process) == ["push: ready"]
    child = process._child
    assert child is not None
    process.end()
    assert child.status == -9


def test_a_program_that_is_not_there_is_reported_and_tried_seldom() -> None:
    now = [0.0]
    process = WatchedProcess("push", ["/no/such/program"], lambda: now[0])
    assert process.tend() == ["push cannot be started: No such file or directory"]
    assert process.tend() == []
    assert process.end() == []


def test_it_never_waits() -> None:
    process = WatchedProcess("push", shell("exec cat"))
    began_s = time.monotonic()
    for _ in range(50):
        process.tend()
    assert time.monotonic() - began_s < 1
    process.end()


def test_what_it_says_to_the_recorder_is_not_told_to_people() -> None:
    process = WatchedProcess("verdicts", shell("echo '1 2 rt-hog'; echo ready >&2; read x"))
    assert tended(process) == ["verdicts: ready"]
    assert process.output() == ["1 2 rt-hog"]
    process.end()


def test_one_that_hangs_is_ended_and_started_again() -> None:
    now = [0.0]
    process = WatchedProcess("verdicts", shell("exec sleep 60"), lambda: now[0], silent_s=300.0)
    process.tend()
    now[0] = 301.0
    assert tended(process) == [
        "verdicts hung and was killed; recording goes on, and it is started again"
    ]
    process.end()


def test_what_it_said_before_it_ended_is_not_lost() -> None:
    process = WatchedProcess("verdicts", shell("echo 1 2 rt-hog; exit 3"))
    assert "ended with 3" in tended(process)[0]
    assert process.output() == ["1 2 rt-hog"]
    assert process.output() == []
