"""The ledger: what is written is there for whoever comes after a kill -9."""

from pathlib import Path

import pytest

from necroscope.lab.ledger import Act, ActLedger
from necroscope.lab.scenario import LabError


def test_acts_come_back_in_order(tmp_path: Path) -> None:
    with ActLedger.make(tmp_path) as ledger:
        ledger.write("tree", {"path": "/a"})
        ledger.write("netns", {"name": "b"})
        assert ledger.acts() == [Act("tree", {"path": "/a"}), Act("netns", {"name": "b"})]


def test_a_line_that_was_cut_short_was_not_followed_by_its_act(tmp_path: Path) -> None:
    with ActLedger.make(tmp_path) as ledger:
        ledger.write("tree", {"path": "/a"})
        with (ledger.directory / "acts.jsonl").open("a") as file:
            file.write('{"kind": "mount", "da')
        assert [act.kind for act in ledger.acts()] == ["tree"]


def test_the_ledger_of_a_run_that_lives_is_left_alone(tmp_path: Path) -> None:
    with ActLedger.make(tmp_path) as living:
        dead = ActLedger.make(tmp_path)
        dead.__exit__()
        assert [ledger.name for ledger in ActLedger.abandoned(tmp_path)] == [dead.name]
        with pytest.raises(LabError, match="still under way"):
            ActLedger(living.directory)


def test_what_is_undone_is_forgotten(tmp_path: Path) -> None:
    with ActLedger.make(tmp_path) as ledger:
        ledger.discard()
    assert list(ActLedger.abandoned(tmp_path)) == []
