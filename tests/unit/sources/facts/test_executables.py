"""Hashes of running services' executables: slowly, and each file once."""

import hashlib
from pathlib import Path

import pytest
from tests.synthetic_root import write_files

from necroscope.sources.facts import executables
from necroscope.sources.facts.executables import is_service

ID = "ab" * 32


def process(
    root: Path, pid: int, program: Path, cgroup: str = "/system.slice/ecs.service", parent: int = 9
) -> Path:
    write_files(
        root,
        {
            f"proc/{pid}/cgroup": f"0::{cgroup}\n",
            f"proc/{pid}/stat": f"{pid} (a) b) S {parent} 0\n",
        },
    )
    (root / f"proc/{pid}/exe").symlink_to(program)
    return root / f"proc/{pid}"


def program(root: Path, name: str, content: bytes = b"program") -> Path:
    path = root / name
    path.write_bytes(content)
    return path


def test_services_and_children_of_init_count_and_containers_do_not(tmp_path: Path) -> None:
    agent = program(tmp_path, "agent")
    assert is_service(process(tmp_path, 1, agent))
    assert is_service(process(tmp_path, 2, agent, "/", parent=1))
    assert not is_service(process(tmp_path, 3, agent, "/"))
    assert not is_service(
        process(tmp_path, 4, agent, f"/system.slice/containerd.service/x:cri-containerd:{ID}")
    )
    assert not is_service(tmp_path / "proc/5")


def test_each_program_has_its_hash(tmp_path: Path) -> None:
    agent, other = program(tmp_path, "agent"), program(tmp_path, "other", b"x" * 3_000_000)
    for pid, path in ((10, agent), (11, agent), (12, other)):
        process(tmp_path, pid, path)
    found = [fact for fact, _ in executables.collect(tmp_path, {}, sleep=lambda _: None)]
    assert [(fact.kind, fact.name, fact.value) for fact in found] == [
        ("executable", str(agent), hashlib.sha256(b"program").hexdigest()),
        ("executable", str(other), hashlib.sha256(b"x" * 3_000_000).hexdigest()),
    ]


def test_a_known_file_is_not_read_again_and_a_changed_one_is(tmp_path: Path) -> None:
    agent = program(tmp_path, "agent")
    process(tmp_path, 10, agent)
    ((_, identity),) = executables.collect(tmp_path, {}, sleep=lambda _: None)
    ((known, _),) = executables.collect(tmp_path, {identity: "remembered"}, sleep=lambda _: None)
    assert known.value == "remembered"
    agent.write_bytes(b"another program")
    ((changed, _),) = executables.collect(tmp_path, {identity: "remembered"}, sleep=lambda _: None)
    assert changed.value == hashlib.sha256(b"another program").hexdigest()


def test_hashing_takes_a_hundredth_of_a_core(tmp_path: Path) -> None:
    process(tmp_path, 10, program(tmp_path, "big", b"x" * 4_000_000))
    clock = [0.0]
    slept: list[float] = []

    def cpu_clock() -> float:
        clock[0] += 0.001
        return clock[0]

    list(executables.collect(tmp_path, {}, cpu_clock, slept.append))
    assert sum(slept) >= 99 * 0.001 * 4


@pytest.mark.parametrize("content", ["directory", "too big"])
def test_what_is_no_program_of_a_sane_size_is_left_out(
    tmp_path: Path, content: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(executables, "SIZE_LIMIT_BYTES", 5)
    path = tmp_path if content == "directory" else program(tmp_path, "agent")
    process(tmp_path, 10, path)
    assert list(executables.collect(tmp_path, {}, sleep=lambda _: None)) == []
