"""What `necroscope flame` can write: each format with its suffixes, the options it has a place for,
and who writes it.
"""

from collections.abc import Callable
from dataclasses import dataclass
from importlib import import_module
from pathlib import Path
from typing import BinaryIO, Final

from necroscope.cli.flame_question import Question
from necroscope.errors import UsageError
from necroscope.interchange.writers.formats import FORMATS
from necroscope.store.groups import GroupBy

Notes = list[str]
_ANY_GROUP: Final = frozenset(GroupBy)
_TRACKS: Final = frozenset({GroupBy.CORE, GroupBy.THREAD})


@dataclass(frozen=True, slots=True)
class OutputFormat:
    """`writer` is the module of this package that has it among its WRITERS. Only what `is_text` may
    come out in a terminal.
    """

    suffixes: tuple[str, ...]
    writer: str
    is_text: bool = False
    groups: frozenset[GroupBy] = frozenset()
    turns: bool = False
    compares: bool = False


@dataclass(frozen=True, slots=True)
class TextStyle:
    """How many functions; `is_wide` lines are cut to no width."""

    top: int | None = None
    as_json: bool = False
    is_wide: bool = True


OUTPUTS: Final[dict[str, OutputFormat]] = {
    "text": OutputFormat((".txt",), "flame_text", is_text=True, groups=_ANY_GROUP, compares=True),
    "svg": OutputFormat((".svg",), "flame_pictures", groups=_ANY_GROUP, turns=True, compares=True),
    "html": OutputFormat(
        (".html",), "flame_pictures", groups=_ANY_GROUP, turns=True, compares=True
    ),
    "folded": OutputFormat(
        (FORMATS["folded"].suffix,), "flame_exports", is_text=True, groups=_ANY_GROUP, turns=True
    ),
    "speedscope": OutputFormat((FORMATS["speedscope"].suffix,), "flame_exports", groups=_TRACKS),
    "pprof": OutputFormat((FORMATS["pprof"].suffix, ".pprof"), "flame_exports"),
    "otlp": OutputFormat((FORMATS["otlp"].suffix,), "flame_exports"),
    "firefox": OutputFormat((FORMATS["firefox"].suffix,), "flame_exports", groups=_TRACKS),
    "heatmap-svg": OutputFormat((".heatmap.svg",), "flame_heat_maps"),
    "heatmap-png": OutputFormat((".png",), "flame_heat_maps"),
}


def write(name: str, question: Question, out: BinaryIO, style: TextStyle) -> Notes:
    """Returns what the answer does not contain, in words. The writer is loaded now: each draws or
    packs in its own way.
    """
    writers = import_module(f"necroscope.cli.{OUTPUTS[name].writer}").WRITERS
    notes: Notes = writers[name](question, out, style)
    return notes


def chosen_format(name: str | None, output: Path | None) -> str:
    """As asked for, else by the longest suffix of the file; text if there is neither."""
    if name is not None:
        return name
    if output is None:
        return "text"
    suffixes = {
        suffix: format_name for format_name, each in OUTPUTS.items() for suffix in each.suffixes
    }
    for suffix in sorted(suffixes, key=len, reverse=True):
        if output.name.lower().endswith(suffix):
            return suffixes[suffix]
    raise UsageError(
        f"the suffix of {str(output)!r} tells no format",
        f"give --format, or one of {', '.join(suffixes)}",
    )


def check_options(name: str, question: Question) -> None:
    """UsageError for an option that the format has no place for."""
    form = OUTPUTS[name]
    if question.windows.baseline is not None and not form.compares:
        raise UsageError(
            f"{name} cannot show a comparison",
            f"--baseline goes with {_those(lambda each: each.compares)}",
        )
    if question.is_turned and not form.turns:
        raise UsageError(
            f"{name} cannot be turned to callers",
            f"--callers goes with {_those(lambda each: each.turns)}",
        )
    if set(question.group_by) - form.groups or (
        form.groups == _TRACKS and len(question.group_by) > 1
    ):
        words = " and ".join(question.group_by)
        hint = (
            f"--by goes with {_those(lambda each: each.groups == _ANY_GROUP)}; of"
            f" {_those(lambda each: each.groups == _TRACKS)}"
        )
        raise UsageError(
            f"{name} cannot be grouped by {words}", f"{hint} it chooses the tracks: core or thread"
        )


def _those(can: Callable[[OutputFormat], bool]) -> str:
    return ", ".join(name for name, each in OUTPUTS.items() if can(each))
