"""`necroscope diff`: how two nodes differ, from their recordings, without a collector."""

import json
from pathlib import Path
from typing import Any, Final

import click
import numpy as np

from necroscope.cli.difference_gate import judge, pass_gate, read_allow_list, with_gate
from necroscope.errors import RecordingError
from necroscope.fleet.cohorts.columns import matrix_of
from necroscope.fleet.cohorts.differences import find_differences
from necroscope.store.last_facts import last_facts
from necroscope.store.query import Store
from necroscope.views.fleet.answers import recording_diff_to_text

SCHEMA: Final = 1
_DIRECTORY: Final = click.Path(path_type=Path, readable=False)


@click.command()
@click.argument("a", type=_DIRECTORY)
@click.argument("b", type=_DIRECTORY)
@click.option(
    "--all", "with_all", is_flag=True, help="also host names, ids, boot times and counts of resets"
)
@with_gate
@click.option("--json", "as_json", is_flag=True, help="as JSON")
def command(
    a: Path, b: Path, with_all: bool, is_gate: bool, allow_files: tuple[Path, ...], as_json: bool
) -> None:
    """The facts in which the nodes of two recordings differ, as they stood at the end of each:
    kernel, sysctls, packages, units and what came of them, images, and more.

    With --gate it exits with 1 if a difference is on no allow-list.

    \b
    Examples:
      necroscope diff ./zone-a ./zone-b
      necroscope diff ./before ./after --gate --allow expected.txt
      necroscope diff ./a ./b --json | jq '.differences[] | {kind, name, a, b}'
    """
    allow = read_allow_list(allow_files)
    answer = judge(_differences(a, b, with_all=with_all), allow)
    click.echo(json.dumps(answer) if as_json else recording_diff_to_text(answer))
    if is_gate:
        pass_gate(answer)


def _differences(a: Path, b: Path, *, with_all: bool) -> dict[str, Any]:
    sides = [_facts(path) for path in (a, b)]
    names = sorted(sides[0].keys() | sides[1].keys())
    matrix = matrix_of(
        [str(a), str(b)], {name: [side.get(name) for side in sides] for name in names}
    )
    is_a = np.array([True, False])
    found, same, left_out = find_differences(matrix, is_a, ~is_a, with_all=with_all)
    return {
        "schema": SCHEMA,
        "a": {"name": str(a), "nodes": 1},
        "b": {"name": str(b), "nodes": 1},
        "count": len(found),
        "differences": [each.as_json() for each in found],
        "same": same,
        "left_out": [{"facts": count, "reason": reason} for reason, count in left_out.items()],
    }


def _facts(path: Path) -> dict[tuple[str, str], str]:
    found = last_facts(Store.open(path))
    if not found:
        raise RecordingError(
            f"{path} holds no facts",
            "they are recorded unless --facts is 0s, within a minute of the recorder's start",
        )
    return found
