"""`--gate` and `--allow`: an answer about differences as a gate for scripts, with an exit code."""

from collections.abc import Callable, Iterable
from pathlib import Path
from typing import Any, Final, TypeVar

import click

from necroscope.errors import UsageError
from necroscope.fleet.cohorts.allow_list import AllowList
from necroscope.fleet.cohorts.differences import RARE

Command = TypeVar("Command", bound=Callable[..., Any])
Json = dict[str, Any]
DIFFERS: Final = 1
_LARGEST_BYTES: Final = 1 << 20


def with_gate(command: Command) -> Command:
    """The options; the command gets `is_gate` and `allow_files`."""
    allowed = click.option(
        "--allow",
        "allow_files",
        multiple=True,
        type=click.Path(path_type=Path),
        metavar="FILE",
        help="expected differences: lines of kind:name[=value], with * and ?",
    )(command)
    return click.option(
        "--gate",
        "is_gate",
        is_flag=True,
        help=f"exit with {DIFFERS} if they differ in what is not allowed, else with 0",
    )(allowed)


def read_allow_list(files: Iterable[Path]) -> AllowList:
    lists = [AllowList.parse(read_text(file), str(file)) for file in files]
    return AllowList(tuple(line for each in lists for line in each.lines))


def judge(answer: Json, allow: AllowList) -> Json:
    """The answer, with what the gate says of it. Of groups only what chance would hardly make
    counts, of two nodes everything.
    """
    is_pair = answer["a"]["nodes"] == answer["b"]["nodes"] == 1
    counted = [each for each in answer["differences"] if is_pair or each["rarity"] <= RARE]
    refused = [
        f"{each['kind']}:{each['name']}"
        for each in counted
        if not allow.allows(
            each["kind"], each["name"], [side["value"] for side in (*each["a"], *each["b"])]
        )
    ]
    # More than an answer lists: what is not listed was not held against the allow-list.
    is_cut = answer["count"] > len(answer["differences"]) and len(counted) == len(
        answer["differences"]
    )
    gate = {
        "is_open": not refused and not is_cut,
        "refused": refused,
        "allowed": len(counted) - len(refused),
        "is_cut": is_cut,
    }
    return {**answer, "gate": gate}


def pass_gate(answer: Json) -> None:
    """Says what was decided, and ends the program where the gate is closed."""
    click.echo(_words(answer["gate"]), err=True)
    if not answer["gate"]["is_open"]:
        raise SystemExit(DIFFERS)


def _words(gate: Json) -> str:
    allowed = f"; {gate['allowed']} differences are allowed" if gate["allowed"] else ""
    if gate["is_open"]:
        return f"gate: open{allowed}"
    if gate["is_cut"]:
        return f"gate: closed: more differences than an answer lists{allowed}"
    return f"gate: closed by {len(gate['refused'])} differences that are not allowed{allowed}"


def read_text(file: Path) -> str:
    """A list that a person wrote; UsageError if it is none."""
    try:
        with file.open("rb") as opened:
            return opened.read(_LARGEST_BYTES).decode("utf-8")
    except (OSError, UnicodeDecodeError) as error:
        raise UsageError(
            f"cannot read the list {file}: {error}", "a text file of kind:name[=value] lines"
        ) from None
