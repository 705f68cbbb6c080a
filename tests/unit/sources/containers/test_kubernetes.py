"""Names of logs as the kubelet makes them."""

import os
from pathlib import Path

import pytest

from necroscope.sources.containers import kubernetes
from necroscope.sources.containers.kubernetes import (
    PodLogs,
    parse_link,
    parse_pod_directory,
    parse_restarts,
)

UID = "0a1b2c3d-4e5f-6071-8293-a4b5c6d7e8f9"
ID = "ab" * 32


def log(
    root: Path,
    number: int,
    container: str = "agent",
    pod: str = f"kube-system_ecs-abc_{UID}",
    identity: str | None = None,
) -> None:
    path = root / "var/log/pods" / pod / container / f"{number}.log"
    path.parent.mkdir(parents=True, exist_ok=True)
    path.write_text("secret\n")
    if identity is not None:
        links = root / "var/log/containers"
        links.mkdir(parents=True, exist_ok=True)
        namespace, name, _ = pod.split("_")
        (links / f"{name}_{namespace}_{container}-{identity}.log").symlink_to(
            f"/var/log/pods/{pod}/{container}/{number}.log"
        )


def test_names_are_taken_apart() -> None:
    assert parse_pod_directory(f"kube-system_ecs-abc_{UID}") == ("kube-system", "ecs-abc", UID)
    assert parse_pod_directory(f"kube-system_static-node1_{UID.replace('-', '')}") is not None
    assert parse_pod_directory("lost+found") is None
    assert parse_restarts(["0.log", "12.log", "12.log.20260101-000000.gz", "notes"]) == 12
    assert parse_restarts([]) is None


def test_a_link_gives_the_id_of_one_log() -> None:
    target = f"/var/log/pods/kube-system_ecs-abc_{UID}/agent/4.log"
    assert parse_link(f"ecs-abc_kube-system_agent-{ID}.log", target) == ((UID, "agent", 4), ID)
    assert parse_link("else", target) is None
    assert parse_link(f"ecs-abc_kube-system_agent-{ID}.log", "/var/lib/docker/x") is None


def test_restarts_and_id_are_read_and_a_new_log_is_seen(tmp_path: Path) -> None:
    log(tmp_path, 3, identity=ID)
    logs = PodLogs(tmp_path)
    (first,), left_out = logs.read()
    assert (first.namespace, first.pod, first.name, first.restarts, first.container) == (
        "kube-system",
        "ecs-abc",
        "agent",
        3,
        ID,
    )
    assert left_out == 0
    log(tmp_path, 4, identity="cd" * 32)
    (second,), _ = logs.read()
    assert (second.restarts, second.container) == (4, "cd" * 32)
    assert second.restarted_ns >= first.restarted_ns


def test_directories_that_did_not_change_are_not_listed_again(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    log(tmp_path, 0)
    logs = PodLogs(tmp_path)
    logs.read()
    listed: list[str] = []
    list_directory = os.listdir
    monkeypatch.setattr(
        os, "listdir", lambda path: listed.append(str(path)) or list_directory(path)
    )
    logs.read()
    assert [path for path in listed if "pods" in path] == []


def test_without_kubernetes_there_is_nothing(tmp_path: Path) -> None:
    assert PodLogs(tmp_path).read() == ([], 0)


def test_numbers_are_bounded_and_what_is_left_out_is_counted(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(kubernetes, "POD_LIMIT", 2)
    for number in range(3):
        log(tmp_path, 0, pod=f"a_b{number}_{UID}")
    found, left_out = PodLogs(tmp_path).read()
    assert (len(found), left_out) == (2, 1)
    monkeypatch.setattr(kubernetes, "CONTAINER_LIMIT", 1)
    found, left_out = PodLogs(tmp_path).read()
    assert (len(found), left_out) == (1, 2)


def test_hostile_names_are_made_printable(tmp_path: Path) -> None:
    log(tmp_path, 0, container="\x1b[31mred")
    (found,), _ = PodLogs(tmp_path).read()
    assert found.name == "\\x1b[31mred"
