"""Which unit makes a container that is re-created."""

from pathlib import Path

import pytest
from tests.fake_processes import connected, process

from necroscope.sources.containers.connections import ConnectionLog
from necroscope.sources.containers.maker_unit import ContainerMaker, unit_of
from necroscope.sources.containers.makers import MakerSearch, MakerWatch

ID, OLD = "a" * 64, "b" * 64
SECOND = 1_000_000_000


@pytest.fixture
def root(tmp_path: Path) -> Path:
    (tmp_path / "proc").mkdir()
    return tmp_path


def watch_of(root: Path) -> MakerWatch:
    return MakerWatch(root, ConnectionLog(root, []), lambda: 0)


def units(root: Path, name: str = "agent") -> dict[str, str]:
    found = watch_of(root).look({name: [OLD, ID]})
    return {container: maker.unit for container, maker in found.items()}


def test_the_monitor_of_a_container_stays_in_its_makers_unit_on_cgroup_v1(root: Path) -> None:
    cgroup = (
        f"4:memory:/libpod_parent/libpod-{ID}/conmon\n1:name=systemd:/system.slice/ecs.service\n"
    )
    process(root, 7, "conmon", ["conmon", "-c", ID], cgroup)
    assert units(root) == {"agent": "ecs.service"}


@pytest.mark.parametrize("word", ["agent", "--name=agent", ID, ID[:12]])
def test_a_client_that_names_the_container_is_of_its_maker(root: Path, word: str) -> None:
    process(root, 7, "podman", ["podman", "wait", word], "0::/system.slice/ecs.service\n")
    assert units(root) == {"agent": "ecs.service"}


@pytest.mark.parametrize(
    ("comm", "word", "cgroup"),
    [
        ("podman", "agent-2", "0::/system.slice/other.service"),
        ("bash", "agent", "0::/system.slice/other.service"),
        ("podman", "agent", "0::/user.slice/user-0.slice/session-3.scope"),
        ("docker", "agent", "0::/system.slice/docker.service"),
        ("podman", "a", "0::/system.slice/other.service"),
        ("podman", "agent", "garbage"),
    ],
)
def test_others_are_not_taken_for_the_maker(root: Path, comm: str, word: str, cgroup: str) -> None:
    process(root, 7, comm, [comm, "logs", word], cgroup)
    assert units(root) == {}


def test_a_process_that_only_calls_itself_a_monitor_does_not_accuse_a_unit(root: Path) -> None:
    """From a crontab it runs in cron.service."""
    process(root, 7, "conmon", ["conmon", "-c", ID], "0::/system.slice/cron.service\n")
    (root / "proc/7/status").write_text("Name:\tconmon\nUid:\t65534\t65534\t65534\t65534\n")
    process(root, 8, "conmon", ["conmon", "-c", ID], "0::/system.slice/ecs.service\n")
    (root / "proc/8/status").write_text("Name:\tconmon\nUid:\t0\t0\t0\t0\n")
    assert units(root) == {"agent": "ecs.service"}


def test_a_process_that_was_met_before_its_exec_is_looked_at_again_and_then_left_alone(
    root: Path,
) -> None:
    process(root, 7, "sh", ["sh", "init"], "0::/system.slice/ecs.service\n")
    watch = watch_of(root)
    assert watch.look({"agent": [ID]}) == {}
    (root / "proc/7/comm").write_text("podman\n")
    (root / "proc/7/cmdline").write_text("podman\0rm\0agent\0")
    assert watch.look({"agent": [ID]})["agent"].unit == "ecs.service"
    assert watch.look({"agent": [ID]}) == {}


def test_a_hostile_unit_name_is_made_printable() -> None:
    assert unit_of(b"0::/system.slice/a\x1b[2J.service\n") == "a\\x1b[2J.service"


def search(root: Path, *containers: str, since_ns: int = SECOND) -> dict[str, ContainerMaker]:
    found = MakerSearch(root, ["/run/docker.sock"], lambda: SECOND)
    for container in containers:
        found.saw_start("agent", container, SECOND)
    found.search(0, since_ns)
    found.settle()
    return found.found


def test_only_what_came_back_under_a_new_id_is_looked_for(root: Path) -> None:
    process(root, 7, "podman", ["podman", "wait", "agent"], "0::/system.slice/ecs.service\n")
    assert search(root, ID) == {}
    assert search(root, ID, ID) == {}
    assert search(root, OLD, ID)["agent"].unit == "ecs.service"
    assert search(root, OLD, ID, since_ns=2 * SECOND) == {}


def test_who_is_connected_at_a_start_makes_the_container(
    root: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    process(root, 8, "ecs-init", ["init"], "0::/system.slice/ecs.service\n")
    process(root, 9, "dockerd", ["dockerd"], "0::/system.slice/docker.service\n")
    connected(monkeypatch, {81: "8", 91: "9"})
    assert search(root, OLD, ID)["agent"].unit == "ecs.service"
    assert search(root, ID) == {}


def test_who_is_never_seen_is_not_looked_for_without_end(root: Path) -> None:
    found = MakerSearch(root, [], lambda: SECOND)
    for container in (OLD, ID):
        found.saw_start("agent", container, SECOND)
    for _ in range(50):
        found.search(0, SECOND)
    process(root, 7, "podman", ["podman", "wait", "agent"], "0::/system.slice/ecs.service\n")
    found.search(0, SECOND)
    assert found.found == {}
