"""The `containers` table: daemons, log names and cgroups laid together; a daemon that hangs costs a
gap.
"""

import json
import os
from pathlib import Path
from typing import Any

import pytest
from tests.fake_daemon import http, never, unix_daemon
from tests.synthetic_root import at_second, make_root, write_files
from tests.unit.sources.containers.test_kubernetes import UID, log
from tests.unit.sources.containers.test_oci_bundle import CONTAINERD, bundle

from necroscope.model.reading import Reading
from necroscope.model.tables import TABLES
from necroscope.model.units import NS_PER_S
from necroscope.sources.containers.container_events import EACH_LIMIT, daemon_events
from necroscope.sources.containers.containers import Containers
from necroscope.sources.containers.docker_api import ContainerEvent

DATA = Path(__file__).parents[3] / "data/containers"
COLUMNS = [column.name for column in TABLES["containers"].columns]
CRASH = "5368d07623ff4eab6ebf4b86b728de28a8fdedd00f22da4c2fa719427a8e6642"
EATER = "e1a98bd0a6d9b1b9888f5cac484ad6980e6180ba887faf2670df2e8db7c7b3e9"
CALM = "b1838a852e08de8cb9ea00e222c29763a5bb4f78431c69b5ea2264b121e78060"
DOCKER = {
    "/containers/json": (DATA / "docker_list.json").read_bytes(),
    f"/containers/{CRASH}/json": (DATA / "docker_inspect_crash.json").read_bytes(),
    f"/containers/{EATER}/json": (DATA / "docker_inspect_eater.json").read_bytes(),
    "/events": b"",
}


def says_nothing(reading: Reading) -> bool:
    return not reading.rows and not reading.gaps and reading.trouble is None


@pytest.fixture
def root(tmp_path: Path) -> Path:
    return make_root(tmp_path, 2)


def look(source: Containers, second: float) -> Reading:
    """A round begun at this second, taken when it is done."""
    source.read(at_second(second))
    source._work.wait(20)
    return source.read(at_second(second + 1))


def rows(reading: Reading) -> dict[str, dict[str, Any]]:
    found = [dict(zip(COLUMNS, row, strict=True)) for row in reading.rows.get("containers", [])]
    return {row["container"] or f"{row['pod']}/{row['name']}": row for row in found}


def make(root: Path) -> Containers:
    return Containers(root, 10 * NS_PER_S, realtime=lambda: at_second(0).time_ns)


def cgroup(root: Path, path: str) -> None:
    (root / "sys/fs/cgroup/memory" / path).mkdir(parents=True)


def test_the_daemons_containers_have_their_cgroups(root: Path) -> None:
    cgroup(root, f"docker/{CRASH}")
    with unix_daemon(root / "run/docker.sock", http(DOCKER)):
        source = make(root)
        found = rows(look(source, 0))
        assert found.keys() == {CRASH, EATER}, "the third was gone when it was inspected"
        assert (found[CRASH]["runtime"], found[CRASH]["restarts"], found[CRASH]["exit_code"]) == (
            "docker",
            8,
            3,
        )
        assert found[CRASH]["cgroup"] == f"/docker/{CRASH}"
        assert (found[EATER]["oom_killed"], found[EATER]["cgroup"]) == (True, None)
        assert rows(look(source, 10)) == {}, "nothing changed"
        source.start_segment()
        assert rows(look(source, 12)).keys() == {CRASH, EATER}
        source.close()


def test_deaths_become_events_once_and_the_container_is_inspected_again(root: Path) -> None:
    answers: dict[str, bytes | int] = dict(DOCKER)
    with unix_daemon(root / "run/docker.sock", http(answers)) as docker:
        source = make(root)
        look(source, 0)
        answers["/events"] = (DATA / "docker_events.jsonl").read_bytes()
        again = json.loads((DATA / "docker_inspect_crash.json").read_bytes()) | {"RestartCount": 9}
        answers[f"/containers/{CRASH}/json"] = json.dumps(again).encode()
        reading = look(source, 10)
        events = reading.rows["events"]
        assert {row[1] for row in events} == {"container_die", "container_start", "container_oom"}
        assert {row[9] for row in events} == {False}
        death = next(
            json.loads(str(row[13]))
            for row in events
            if row[1] == "container_die" and "crash" in str(row[11])
        )
        assert (death["container"], death["exit_code"], death["runtime"]) == (CRASH, 3, "docker")
        assert rows(reading)[CRASH]["restarts"] == 9
        assert look(source, 20).rows["events"] == [], "the same events are not told again"
        assert b"since=1699999999.0" in b"".join(docker.heard)
        source.close()


def started(container: str, second: float) -> bytes:
    actor = {"ID": container, "Attributes": {"name": "agent", "image": "agent:1"}}
    time_ns = at_second(second).time_ns
    return json.dumps({"Action": "start", "Actor": actor, "timeNano": time_ns}).encode() + b"\n"


def test_a_look_back_finds_what_is_recreated_and_who_makes_it_once_per_segment(root: Path) -> None:
    events = started("a" * 64, -20) + started("b" * 64, -10)
    write_files(
        root,
        {
            "proc/70/comm": "conmon\n",
            "proc/70/cmdline": f"conmon\0-c\0{'b' * 64}\0",
            "proc/70/cgroup": "1:name=systemd:/system.slice/ecs.service\n",
        },
    )
    clock = lambda: at_second(0).time_ns  # noqa: E731
    with unix_daemon(root / "run/docker.sock", http(DOCKER | {"/events": events})):
        source = Containers(root, 10 * NS_PER_S, realtime=clock, history_ns=300 * NS_PER_S)
        first = look(source, 0).rows["events"]
        assert [row[1] for row in first] == ["container_start"] * 2, "they wait for no watch"
        source._watch.wait(20)
        made = [json.loads(str(row[13])) for row in source.read(at_second(2)).rows["events"]]
        assert [(one["name"], one["unit"]) for one in made] == [("agent", "ecs.service")]
        assert look(source, 10).rows["events"] == []
        source.start_segment()
        assert [row[1] for row in source.read(at_second(20)).rows["events"]] == ["container_made"]
        source.close()


def test_a_container_that_was_removed_is_gone(root: Path) -> None:
    answers: dict[str, bytes | int] = dict(DOCKER)
    with unix_daemon(root / "run/docker.sock", http(answers)):
        source = make(root)
        look(source, 0)
        answers["/containers/json"] = b"[]"
        assert {row["state"] for row in rows(look(source, 10)).values()} == {"gone"}
        assert rows(look(source, 20)) == {}
        source.close()


def test_a_daemon_that_hangs_is_trouble_and_the_rest_is_read(root: Path) -> None:
    cgroup(root, f"kubepods/burstable/pod{UID}/{CALM}")
    with (
        unix_daemon(root / "run/docker.sock", never),
        unix_daemon(root / "run/podman/podman.sock", http({"/containers/json": b"[]"})),
    ):
        source = Containers(root, 10 * NS_PER_S)
        source._daemons[0]._timeout_s = 0.2
        assert says_nothing(source.read(at_second(0))), "it is not waited for"
        source._work.wait(20)
        reading = source.read(at_second(1))
        assert reading.trouble is not None
        assert reading.trouble.facts == "/run/docker.sock did not answer in time"
        assert rows(reading)[CALM]["runtime"] == "kubernetes"
        assert source.read(at_second(2)).trouble is reading.trouble
        source.close()


def test_that_a_daemon_has_not_answered_yet_is_known(root: Path) -> None:
    with unix_daemon(root / "run/docker.sock", never):
        source = make(root)
        source.read(at_second(0))
        assert not source.has_answered
        source.close()
    answered = make(root)
    look(answered, 10)
    assert answered.has_answered
    answered.close()


def test_trouble_is_a_gap_of_events_while_a_daemon_does_not_answer(root: Path) -> None:
    answers: dict[str, bytes | int] = DOCKER | {f"/containers/{EATER}/json": 500}
    with unix_daemon(root / "run/docker.sock", http(answers)):
        source = make(root)
        reading = look(source, 0)
        assert rows(reading).keys() == {CRASH}
        assert (str(reading.trouble).partition(":")[0], source.tables) == (
            "container eater",
            ("containers",),
        )
        answers["/containers/json"] = 500
        assert (look(source, 10).trouble is not None, source.tables) == (
            True,
            ("containers", "events"),
        )
        answers |= DOCKER
        assert (look(source, 20).trouble, source.tables) == (None, ("containers",))
        source.close()


def test_a_round_that_fails_is_a_gap_of_events_as_well(
    root: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    source = make(root)
    monkeypatch.setattr(source._pod_logs, "read", lambda: 1 / 0)
    assert (look(source, 0).trouble is not None, source.tables) == (True, ("containers", "events"))
    source.close()


@pytest.mark.parametrize("answer", [b"not json", b'{"a": 1}', b"[1]", b'[{"Names": []}]'])
def test_a_daemon_that_answers_nonsense_is_trouble(root: Path, answer: bytes) -> None:
    with unix_daemon(root / "run/docker.sock", http({"/containers/json": answer})):
        source = make(root)
        trouble = look(source, 0).trouble
        assert trouble is not None
        assert "internal error" not in trouble.facts
        source.close()


def test_without_daemons_nothing_is_missed(root: Path) -> None:
    source = make(root)
    reading = look(source, 0)
    assert (reading.trouble, reading.gaps, rows(reading)) == (None, [], {})
    source.close()


def test_a_pods_container_has_names_from_logs_and_bundle(root: Path) -> None:
    pod = f"kubepods.slice/kubepods-burstable.slice/kubepods-burstable-pod{UID.replace('-', '_')}.slice"
    cgroup(root, f"{pod}/cri-containerd-{CALM}.scope")
    cgroup(root, f"kubepods/besteffort/pod{UID}/{EATER}")
    log(root, 7, container="agent", identity=CALM)
    write_files(
        root,
        {
            f"run/containerd/io.containerd.runtime.v2.task/k8s.io/{EATER}/config.json": (
                bundle(CONTAINERD).decode()
            )
        },
    )
    source = make(root)
    found = rows(look(source, 0))
    calm, train = found[CALM], found[EATER]
    assert (calm["runtime"], calm["namespace"], calm["pod"], calm["name"]) == (
        "containerd",
        "kube-system",
        "ecs-abc",
        "agent",
    )
    assert (calm["restarts"], calm["qos"], calm["state"], calm["pod_uid"]) == (
        7,
        "burstable",
        "running",
        UID,
    )
    assert (train["namespace"], train["pod"], train["name"]) == ("ml", "worker-0", "train")
    assert train["image"] == "registry.example/train:1"
    source.close()


def test_a_restart_in_kubernetes_is_an_event(root: Path) -> None:
    log(root, 7)
    source = make(root)
    assert look(source, 0).rows["events"] == []
    log(root, 9)
    (event,) = look(source, 10).rows["events"]
    fields = json.loads(str(event[13]))
    assert (event[1], fields["restarts"], fields["restarts_now"], fields["pod"]) == (
        "container_start",
        9,
        2,
        "ecs-abc",
    )
    source.close()


def test_podman_is_left_alone_while_its_database_does_not_change(root: Path) -> None:
    database = root / "var/lib/containers/storage/libpod/bolt_state.db"
    write_files(root, {"var/lib/containers/storage/libpod/bolt_state.db": "1"})
    answers: dict[str, bytes | int] = {"/containers/json": b"[]", "/events": b""}
    with unix_daemon(root / "run/podman/podman.sock", http(answers)) as podman:
        source = make(root)
        look(source, 0)
        asked = len(podman.heard)
        look(source, 10)
        assert len(podman.heard) == asked
        os.utime(database, ns=(1, 1))
        look(source, 20)
        assert len(podman.heard) == asked + 2, "list and events"
        source.close()


def test_a_crash_loop_is_a_few_events_and_a_count() -> None:
    events = [
        ContainerEvent(number, "container_die", CRASH, "crash", "tiny", 3)
        for number in range(EACH_LIMIT + 30)
    ]
    events += [ContainerEvent(5, "container_die", CALM, "calm", "tiny", 0)]
    found = daemon_events(events, "docker", 0)
    assert len(found) == EACH_LIMIT + 1
    assert json.loads(str(found[-1][13]))["more"] == 30
    assert str(found[-1][11]).endswith("and 30 times more")
