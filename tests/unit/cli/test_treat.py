"""`necroscope treat`: shown first, done with --yes, undone by its id; on a root of files."""

import json
from pathlib import Path
from typing import Any

import pytest
from click.testing import CliRunner

from necroscope.cli.treat import command


@pytest.fixture
def root(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    monkeypatch.setenv("NECROSCOPE_TREATMENTS", str(tmp_path / "state"))
    for path, text in {
        "sys/devices/system/cpu/online": "0-3\n",
        "proc/irq/38/smp_affinity_list": "1\n",
        "proc/sys/kernel/random/boot_id": "this-boot\n",
    }.items():
        (tmp_path / path).parent.mkdir(parents=True, exist_ok=True)
        (tmp_path / path).write_text(text)
    return tmp_path


def run(root: Path, *words: str) -> str:
    done = CliRunner().invoke(command, [*words, "--host-root", str(root)])
    assert done.exit_code == 0, done.output
    return done.output


def affinity(root: Path) -> str:
    return (root / "proc/irq/38/smp_affinity_list").read_text().strip()


def test_without_yes_nothing_is_done_and_nothing_is_in_the_ledger(root: Path) -> None:
    said = run(root, "interrupt", "38", "--cores", "2")
    assert "write '2' into /proc/irq/38/smp_affinity_list (now '1')" in said
    assert said.endswith("nothing was done; to do it, add --yes\n")
    assert affinity(root) == "1"
    assert CliRunner().invoke(command, ["list"]).output == ""


def test_with_yes_it_is_done_listed_and_taken_back(root: Path) -> None:
    answer: dict[str, Any] = json.loads(
        run(root, "interrupt", "38", "--cores", "2", "--yes", "--json")
    )
    assert (answer["applied"], affinity(root)) == (True, "2")
    (listed,) = json.loads(CliRunner().invoke(command, ["list", "--json"]).output)
    assert (listed["id"], listed["outcome"]) == (answer["id"], "applied")
    assert f"{answer['id']} is taken back" in run(root, "undo", answer["id"])
    assert affinity(root) == "1"


def test_after_a_reboot_the_undo_says_that_it_is_gone_already(root: Path) -> None:
    run(root, "interrupt", "38", "--cores", "2", "--yes")
    (root / "proc/sys/kernel/random/boot_id").write_text("next-boot\n")
    assert "the reboot has taken it back" in run(root, "undo")
    assert affinity(root) == "2"
