"""The last lines of a container, from a daemon that keeps them."""

import json
import struct
from pathlib import Path

import pytest
from tests.fake_daemon import http, unix_daemon

from necroscope.sources.containers.container_log import parse_lines, read_last_lines

SOCKETS = (("docker", "/run/docker.sock"), ("podman", "/run/podman/podman.sock"))


def frame(stream: int, text: bytes) -> bytes:
    return struct.pack(">BxxxI", stream, len(text)) + text


def read(root: Path, answers: dict[str, bytes | int], seconds: float = 0) -> tuple[str, ...]:
    with unix_daemon(root / "run/docker.sock", http(answers)):
        return read_last_lines(root, SOCKETS, "ecs-agent", 2, seconds)


def state(status: str) -> bytes:
    return json.dumps({"Id": "a" * 64, "State": {"Status": status}}).encode()


def test_both_streams_are_read_and_the_last_lines_are_kept(tmp_path: Path) -> None:
    log = frame(1, b"one\ntwo\n") + frame(2, b"no credentials\x1b[2J\n")
    answers: dict[str, bytes | int] = {
        "/containers/ecs-agent/json": state("exited"),
        "/containers/ecs-agent/logs": log,
    }
    assert read(tmp_path, answers, seconds=60) == ("two", "no credentials\\x1b[2J")


def test_what_a_container_says_that_still_runs_is_better_than_nothing(tmp_path: Path) -> None:
    answers: dict[str, bytes | int] = {
        "/containers/ecs-agent/json": state("running"),
        "/containers/ecs-agent/logs": frame(1, b"starting\n"),
    }
    assert read(tmp_path, answers) == ("starting",)


@pytest.mark.parametrize("answer", [404, 500, b""])
def test_a_container_that_is_gone_or_has_no_readable_log_has_no_lines(
    tmp_path: Path, answer: bytes | int
) -> None:
    answers: dict[str, bytes | int] = {
        "/containers/ecs-agent/json": state("exited"),
        "/containers/ecs-agent/logs": answer,
    }
    assert read(tmp_path, answers) == ()


def test_a_node_without_a_daemon_is_not_waited_for(tmp_path: Path) -> None:
    assert read_last_lines(tmp_path, SOCKETS, "ecs-agent", 2, 600) == ()


def test_a_log_of_a_terminal_has_no_frames() -> None:
    assert parse_lines(b"one\r\n\r\ntwo") == ("one", "two")


@pytest.mark.parametrize("body", [b"", b"\1\0\0\0", b"\1\0\0\0\xff\xff\xff\xff", frame(1, b"")])
def test_a_log_that_is_cut_short_says_what_it_has(body: bytes) -> None:
    assert parse_lines(body) == ()
