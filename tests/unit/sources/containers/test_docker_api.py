"""Answers of real Docker and Podman daemons."""

import json
from pathlib import Path

import pytest

from necroscope.errors import SourceUnavailable
from necroscope.sources.containers import docker_api
from necroscope.sources.containers.docker_api import (
    events_target,
    parse_events,
    parse_inspect,
    parse_list,
)

DATA = Path(__file__).parents[3] / "data/containers"


def read(name: str) -> bytes:
    return (DATA / name).read_bytes()


def test_the_list_has_every_container_with_its_state() -> None:
    assert {(item.name, item.state) for item in parse_list(read("docker_list.json"))} == {
        ("crash", "restarting"),
        ("calm", "running"),
        ("eater", "exited"),
    }
    assert {item.name for item in parse_list(read("podman_list.json"))} == {"crash", "calm"}


def test_a_crash_loop_has_its_restarts_and_exit_code() -> None:
    state = parse_inspect(read("docker_inspect_crash.json"), "docker")
    assert (state.name, state.image, state.state, state.restarts, state.exit_code) == (
        "crash",
        "tiny",
        "restarting",
        8,
        3,
    )
    assert (state.oom_killed, state.pid) == (False, None)
    assert state.started_ns == 1_794_793_814_847_798_256
    assert state.finished_ns == 1_794_793_814_885_449_067


def test_an_oom_kill_is_reported() -> None:
    state = parse_inspect(read("docker_inspect_eater.json"), "docker")
    assert (state.state, state.exit_code, state.oom_killed) == ("exited", 137, True)


def test_while_it_runs_the_exit_code_of_its_last_end_is_not_known() -> None:
    state = parse_inspect(read("podman_inspect_crash.json"), "podman")
    assert (state.state, state.restarts, state.exit_code, state.oom_killed) == (
        "running",
        46,
        None,
        None,
    )
    assert state.pid == 25365
    assert state.image == "localhost/tiny:latest"


@pytest.mark.parametrize("runtime", ["docker", "podman"])
def test_events_are_deaths_and_starts_with_their_times(runtime: str) -> None:
    events = parse_events(read(f"{runtime}_events.jsonl"))
    deaths = [event for event in events if event.kind == "container_die" and event.name == "crash"]
    assert len(deaths) > 3
    assert {event.exit_code for event in deaths} == {3}
    assert {event.exit_code for event in events if event.kind == "container_start"} == {None}
    assert all(1_794_793_000 < event.time_ns / 1e9 < 1_794_795_000 for event in events)


def test_docker_tells_of_memory() -> None:
    kinds = {
        event.kind for event in parse_events(read("docker_events.jsonl")) if event.name == "eater"
    }
    assert kinds == {"container_start", "container_oom", "container_die"}


def test_damaged_and_foreign_lines_are_passed_over() -> None:
    damaged = (
        b'{"Action":"die"\n[]\nnull\n{"Action":"die","Actor":null}\n{"Action":"pull","Actor":{"ID":"x"}}\n'
        + b"[" * 100_000
    )
    assert parse_events(damaged) == []


def test_podman_gets_no_end_and_docker_does() -> None:
    assert "until=2.000000005" in events_target(10**9, 2 * 10**9 + 5, is_podman=False)
    assert "stream=false" in events_target(10**9, 2 * 10**9, is_podman=True)


def test_an_id_that_is_none_does_not_reach_a_request() -> None:
    assert parse_list(b'[{"Id": "../../secrets?x=", "Names": ["/a"]}]') == []


def test_what_is_no_json_is_unavailable() -> None:
    with pytest.raises(SourceUnavailable, match="not valid JSON"):
        parse_list(b"<html>")


@pytest.mark.parametrize("stamp", ["0001-01-01T00:00:00Z", "", None, "yesterday"])
def test_never_is_no_time(stamp: str | None) -> None:
    assert docker_api._stamp_ns(stamp) is None


def test_the_kubelets_labels_name_pod_and_container_and_its_maker() -> None:
    labels = {
        "io.kubernetes.container.name": "agent",
        "io.kubernetes.pod.name": "agent-x2kqz",
        "io.kubernetes.pod.namespace": "kube-system",
        "io.kubernetes.pod.uid": "0a1b2c3d-4e5f-6071-8293-a4b5c6d7e8f9",
        "controller-revision-hash": "6f8d9c5b7",
        "token": "secret",
    }
    answer = {"Id": "a" * 64, "Name": "/k8s_agent", "State": {}, "Config": {"Labels": labels}}
    found = docker_api.parse_inspect(json.dumps(answer).encode(), "docker")
    assert (found.name, found.pod, found.namespace) == ("agent", "agent-x2kqz", "kube-system")
    assert found.owner_labels == (("controller-revision-hash", "6f8d9c5b7"),)
