"""A stakeout on several nodes, reached through a template; a script stands in for necroscope there."""

import json
from pathlib import Path
from typing import Any

import pytest

from necroscope.errors import RecordingError, UsageError
from necroscope.stakeout.over_nodes import StakeoutOverNodes
from necroscope.stakeout.remote_run import Remote

# Prints what `stakeout --json` prints, keeps what it keeps: a job `false` fails.
PROGRAM = """#!/bin/sh
shift
dir=$2
[ "$NODE" = gone ] && { echo "error: no route" >&2; exit 4; }
[ "$NODE" = strange ] && { echo "hello"; exit 0; }
mkdir -p "$dir/catches/0001" "$dir/runs"
for word; do last=$word; done
if [ "$last" = false ]; then outcome=failed; else outcome=succeeded; fi
echo "$NODE" > "$dir/catches/0001/note"
echo "{\\"runs\\": [{\\"outcome\\": \\"$outcome\\"}], \\"caught\\": []}" | tee "$dir/stakeout.json"
[ $outcome = succeeded ]
"""


def experiment(tmp_path: Path, nodes: list[str], *jobs: str, **options: Any) -> StakeoutOverNodes:
    program = tmp_path / "necroscope"
    program.write_text(PROGRAM)
    program.chmod(0o755)
    place = tmp_path / "there"
    place.mkdir()
    remote = Remote("env NODE={node} sh -c {command}", str(program), str(place))
    commands = [[job] for job in jobs]
    return StakeoutOverNodes(tmp_path / "night", nodes, commands, ["failure"], remote, **options)


def test_a_failure_on_any_node_ends_it_and_its_catch_comes_home(tmp_path: Path) -> None:
    stakeout = experiment(tmp_path, ["gpu-1", "gpu-2"], "false")
    outcome = stakeout.run()
    assert outcome.ended.startswith("caught failure on gpu-")
    first = outcome.caught[0]
    assert (tmp_path / "night" / str(first.kept) / "catches/0001/note").read_text() == (
        f"{first.node}\n"
    )
    assert not list((tmp_path / "there").iterdir())
    kept = json.loads((tmp_path / "night/stakeout.json").read_text())
    assert kept["runs"][0]["outcome"] == "failed"


def test_all_nodes_run_until_the_rounds_are_over(tmp_path: Path) -> None:
    outcome = experiment(tmp_path, ["gpu-1", "gpu-2", "gpu-3"], "true", repeat=7).run()
    assert len(outcome.runs) == 7
    assert outcome.as_json()["success_rate"]["successes"] == 7
    assert not outcome.caught
    assert not (tmp_path / "night/gpu-1").exists()


def test_variants_are_run_in_pairs_until_one_is_known_to_be_better(tmp_path: Path) -> None:
    outcome = experiment(tmp_path, ["gpu-1", "gpu-2"], "true", "false", repeat=100).run()
    found = outcome.comparison
    assert found is not None
    assert found.better == "a"
    assert outcome.ended == "A goes well more often than B"
    assert 8 <= found.pairs <= 10
    pairs = {(run.node, run.number) for run in outcome.runs}
    assert len(outcome.runs) == 2 * len(pairs)


@pytest.mark.parametrize("lost", ["gone", "strange"])
def test_a_node_that_cannot_be_used_is_left_out_and_said(tmp_path: Path, lost: str) -> None:
    stakeout = experiment(tmp_path, ["gpu-1", lost], "true", repeat=8)
    stakeout._over.wait = lambda _=None: False  # type: ignore[method-assign]
    outcome = stakeout.run()
    assert list(outcome.lost) == [lost]
    assert {run.node for run in outcome.runs} == {"gpu-1"}


def test_nothing_is_overwritten_and_a_template_needs_its_command(tmp_path: Path) -> None:
    stakeout = experiment(tmp_path, ["gpu-1"], "true", repeat=1)
    stakeout.directory.mkdir()
    (stakeout.directory / "x").touch()
    with pytest.raises(RecordingError):
        stakeout.run()
    with pytest.raises(UsageError, match="where the command goes"):
        Remote("ssh {node}").check()
