"""What is left behind, and whose it is."""

from dataclasses import replace

import pytest

from necroscope.lab import machine_state
from necroscope.lab.machine_state import MachineState, left_behind

NONE: frozenset[str] = frozenset()
BEFORE = MachineState(
    {"memory": 20}, frozenset({"/cg/a"}), frozenset({"/ (ext4)"}), NONE, NONE, NONE, NONE
)


def test_the_same_is_nothing_left() -> None:
    assert BEFORE.left_since(BEFORE) == []


def test_what_went_away_is_not_left() -> None:
    assert replace(BEFORE, cgroups=NONE, tracked={"memory": 1}).left_since(BEFORE) == []


def test_each_kind_is_named() -> None:
    after = replace(
        BEFORE,
        mounts=BEFORE.mounts | {"/x (tmpfs)"},
        bpf_programs=frozenset({"7"}),
        rules=frozenset({"-A INPUT"}),
    )
    assert after.left_since(BEFORE) == [
        "mount /x (tmpfs)",
        "firewall rule -A INPUT",
        "BPF program 7",
    ]


def test_dead_cgroups_are_left_behind_when_they_are_many() -> None:
    assert replace(BEFORE, tracked={"memory": 60}).left_since(BEFORE) == []
    assert replace(BEFORE, tracked={"memory": 9000}).left_since(BEFORE) == [
        "8980 more memory cgroups tracked"
    ]


def test_a_name_of_the_run_tells_its_own_from_what_others_add(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    after = replace(
        BEFORE,
        cgroups=frozenset({"/cg/shard-job-x7/b", "/cg/docker/1"}),
        processes=frozenset({"99"}),
    )
    monkeypatch.setattr(MachineState, "take", classmethod(lambda cls, mark: after))
    monkeypatch.setattr(machine_state, "_SETTLE_S", 0.0)
    left = left_behind(BEFORE, "mark", ["shard-job-x7"])
    assert left.by_run == ["cgroup /cg/shard-job-x7/b", "process 99"]
    assert left.by_others == ["cgroup /cg/docker/1"]


@pytest.mark.kernel
def test_the_machine_itself_can_be_looked_at() -> None:
    state = MachineState.take("nobody")
    assert any(mount.startswith("/ (") for mount in state.mounts)
    assert state.processes == NONE
