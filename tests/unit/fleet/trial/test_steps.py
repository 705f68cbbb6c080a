"""Steps of a trial and its ledger: cut off anywhere, failing anywhere, nothing is left behind."""

import json
from collections.abc import Callable
from pathlib import Path

import pytest

from necroscope.errors import UsageError
from necroscope.fleet.trial.ledger import (
    NodeState,
    Trial,
    TrialNode,
    draw_nodes,
    locked,
    read_trial,
    refuse_overlap,
    write_trial,
)
from necroscope.fleet.trial.steps import TrialSteps, command_words
from necroscope.model.bounded_command import CommandEnd

KEYS = [("eu-1", f"n{number}") for number in range(20)]
WELL = CommandEnd(0, b"")


class Nodes:
    """What the commands did: `on` are the nodes that have the treatment."""

    def __init__(self, **ends: CommandEnd) -> None:
        self.on: set[str] = set()
        self.ends = ends
        self.commands = 0
        self.dies_after: int | None = None

    def run(self, words: list[str]) -> CommandEnd:
        if self.commands == self.dies_after:
            raise KeyboardInterrupt
        self.commands += 1
        verb, node = words
        end = self.ends.get(f"{verb}_{node}", WELL)
        if end.status == 0:
            (self.on.add if verb == "give" else self.on.discard)(node)
        return end


@pytest.fixture
def path(tmp_path: Path) -> Path:
    path = tmp_path / "x.trial.json"
    nodes = draw_nodes(KEYS, 8, seed=1)
    trial = Trial("event", "nic_reset", "zone=a", 1, "give {node}", "take {node}", 5, nodes)
    write_trial(path, trial)
    return path


def steps(path: Path, nodes: Nodes, trial: Trial | None = None) -> TrialSteps:
    clock = iter(range(1_000, 10_000))
    said: Callable[[str], None] = lambda _text: None  # noqa: E731
    return TrialSteps(path, trial or read_trial(path), lambda: next(clock), nodes.run, said)


def states(path: Path) -> list[NodeState]:
    return [node.state for node in read_trial(path).treated]


def test_half_of_the_nodes_are_treated_and_the_same_seed_draws_the_same() -> None:
    nodes = draw_nodes(KEYS, 8, seed=3)
    assert [node.is_treated for node in nodes].count(True) == 4
    assert nodes == draw_nodes(list(reversed(KEYS)), 8, seed=3)
    assert len({draw_nodes(KEYS, 8, seed)[0].node for seed in range(20)}) > 5
    with pytest.raises(UsageError, match="too few"):
        draw_nodes(KEYS[:5], 8, seed=1)


def test_all_treated_nodes_get_it_and_lose_it_again(path: Path) -> None:
    nodes = Nodes()
    steps(path, nodes).apply()
    trial = read_trial(path)
    assert nodes.on == {node.node for node in trial.treated}
    assert all(node.applied_ns and trial.started_ns for node in trial.treated)
    assert steps(path, nodes).revert()
    assert nodes.on == set()
    assert set(states(path)) == {NodeState.REVERTED}


@pytest.mark.parametrize("cut", range(4))
def test_whoever_ends_it_half_way_finds_in_the_ledger_what_was_begun(path: Path, cut: int) -> None:
    nodes = Nodes()
    nodes.dies_after = cut
    with pytest.raises(KeyboardInterrupt):
        steps(path, nodes).apply()
    assert states(path)[cut] is NodeState.APPLYING
    assert states(path)[:cut] == [NodeState.APPLIED] * cut
    nodes.dies_after = None
    steps(path, nodes).apply()
    assert set(states(path)) == {NodeState.APPLIED}
    assert len(nodes.on) == 4


def test_an_undo_after_a_cut_also_reaches_the_node_on_which_it_was_cut(path: Path) -> None:
    nodes = Nodes()
    nodes.dies_after = 2
    with pytest.raises(KeyboardInterrupt):
        steps(path, nodes).apply()
    nodes.on.add(read_trial(path).treated[2].node)
    nodes.dies_after = None
    assert steps(path, nodes).revert()
    assert nodes.on == set()
    assert states(path)[3] is NodeState.CHOSEN


def test_a_node_that_does_not_take_the_treatment_is_reverted_and_takes_no_part(path: Path) -> None:
    odd = read_trial(path).treated[1].node
    nodes = Nodes(**{f"give_{odd}": CommandEnd(1, b"\x1b[31mno such unit")})
    steps(path, nodes).apply()
    failed = read_trial(path).treated[1]
    assert failed.state is NodeState.FAILED
    assert failed.applied_ns is None
    assert "no such unit" in failed.detail
    assert "\x1b" not in failed.detail
    assert len(nodes.on) == 3


def test_an_undo_that_fails_is_tried_again_until_nothing_is_left(path: Path) -> None:
    odd = read_trial(path).treated[1].node
    nodes = Nodes(**{f"take_{odd}": CommandEnd(None, b"", is_late=True)})
    steps(path, nodes).apply()
    assert not steps(path, nodes).revert()
    stuck = read_trial(path).treated[1]
    assert stuck.state is NodeState.STUCK
    assert "took too long" in stuck.detail
    nodes.ends.clear()
    assert steps(path, nodes).revert()
    assert nodes.on == set()


def test_nothing_is_done_that_cannot_be_written_down_first(
    path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    nodes, trial = Nodes(), read_trial(path)

    def full(*_paths: object) -> None:
        raise OSError(28, "No space left on device")

    monkeypatch.setattr("os.replace", full)
    with pytest.raises(UsageError, match="No space left"):
        steps(path, nodes, trial).apply()
    assert nodes.commands == 0
    assert [file.name for file in path.parent.iterdir()] == [path.name]


def test_a_name_never_becomes_another_word_of_the_command() -> None:
    node = TrialNode("eu-1", "n0; rm -rf $HOME", is_treated=True)
    assert command_words("ssh {node} 'a b'", node) == ["ssh", "n0; rm -rf $HOME", "a b"]
    for wrong in ("", "reboot", "ssh '{node}"):
        with pytest.raises(UsageError):
            command_words(wrong, node)


def test_two_trials_do_not_share_a_node_and_two_processes_not_a_trial(path: Path) -> None:
    trial = read_trial(path)
    other = path.with_name("other.trial.json")
    with pytest.raises(UsageError, match="in the trial"):
        refuse_overlap(other, trial)
    with locked(path), pytest.raises(UsageError, match="another process"), locked(path):
        pass
    trial.ended_ns = 7
    write_trial(path, trial)
    refuse_overlap(other, read_trial(path))


@pytest.mark.parametrize("content", [b"", b"[]", b'{"schema": 2}', b'{"schema": 1}', b"\xff"])
def test_what_is_not_a_trial_is_said_to_be_none(tmp_path: Path, content: bytes) -> None:
    file = tmp_path / "a.trial.json"
    file.write_bytes(content)
    with pytest.raises(UsageError, match="is not a trial"):
        read_trial(file)


def test_a_node_in_an_unknown_state_is_not_guessed_at(path: Path) -> None:
    answer = json.loads(path.read_text())
    answer["nodes"][0]["state"] = "half"
    path.write_text(json.dumps(answer))
    with pytest.raises(UsageError, match="is not a trial"):
        read_trial(path)
