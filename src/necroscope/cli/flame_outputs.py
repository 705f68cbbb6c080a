"""What `necroscope flame` can write: each format with its suffixes, the options it has a place for,
and the module that writes it.
"""

import shutil
from collections.abc import Callable
from dataclasses import dataclass
from functools import partial
from importlib import import_module
from pathlib import Path
from typing import TYPE_CHECKING, BinaryIO, Final

from necroscope.errors import UsageError
from necroscope.store.choices import GroupBy

if TYPE_CHECKING:
    from necroscope.cli.flame_question import FlameQuestion

Notes = list[str]
Writer = Callable[["FlameQuestion", BinaryIO, "TextStyle"], Notes]
"""Returns what the answer does not contain, in words."""
_ANY_GROUP: Final = frozenset(GroupBy)
_TRACKS: Final = frozenset({GroupBy.CORE, GroupBy.THREAD})


@dataclass(frozen=True, slots=True)
class TextStyle:
    """How many functions; `is_wide` lines are cut to no width."""

    top: int | None = None
    as_json: bool = False
    is_wide: bool = True

    @property
    def width(self) -> int | None:
        return None if self.is_wide else shutil.get_terminal_size().columns


@dataclass(frozen=True, slots=True)
class OutputFormat:
    """`module` of the commands has the writer, which loads numpy and Arrow. Only what `is_text` may
    come out in a terminal.
    """

    suffixes: tuple[str, ...]
    module: str
    is_text: bool = False
    groups: frozenset[GroupBy] = frozenset()
    turns: bool = False
    compares: bool = False


def writer_of(name: str) -> Writer:
    module = import_module(f"necroscope.cli.{OUTPUTS[name].module}")
    writer: Writer = module.WRITERS[name]
    return writer


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
        f"the suffix of {str(output)!r} does not name a format",
        f"give --format, or one of {', '.join(suffixes)}",
    )


def check_options(name: str, question: "FlameQuestion") -> None:
    """UsageError for an option that the format has no place for."""
    form = OUTPUTS[name]
    if question.is_of_waits and name not in _OF_WAITS:
        raise UsageError(
            f"{name} cannot show waits", f"--waits goes with {', '.join(sorted(_OF_WAITS))}"
        )
    if question.is_of_waits and (
        question.group_by or question.is_turned or question.selection.frames is not None
    ):
        raise UsageError(
            "waits are grouped by program and kind already", "omit --by, --callers and --frames"
        )
    if question.windows.baseline is not None and not form.compares:
        raise UsageError(
            f"{name} cannot show a comparison",
            f"--baseline goes with {_formats(lambda each: each.compares)}",
        )
    if question.is_turned and not form.turns:
        raise UsageError(
            f"{name} cannot be turned to callers",
            f"--callers goes with {_formats(lambda each: each.turns)}",
        )
    if set(question.group_by) - form.groups or (
        form.groups == _TRACKS and len(question.group_by) > 1
    ):
        words = " and ".join(question.group_by)
        hint = (
            f"--by goes with {_formats(lambda each: each.groups == _ANY_GROUP)}; of"
            f" {_formats(lambda each: each.groups == _TRACKS)}"
        )
        raise UsageError(
            f"{name} cannot be grouped by {words}", f"{hint} it chooses the tracks: core or thread"
        )


def _formats(can: Callable[[OutputFormat], bool]) -> str:
    return ", ".join(name for name, each in OUTPUTS.items() if can(each))


# Those that show a tree and not single samples.
_OF_WAITS: Final = frozenset({"text", "svg", "folded"})
_Graph = partial(OutputFormat, groups=_ANY_GROUP, turns=True)
OUTPUTS: Final[dict[str, OutputFormat]] = {
    "text": OutputFormat((".txt",), "flame_text", is_text=True, groups=_ANY_GROUP, compares=True),
    "svg": _Graph((".svg",), "flame_pictures", compares=True),
    "html": _Graph((".html",), "flame_page", compares=True),
    "folded": _Graph((".folded",), "flame_exports", is_text=True),
    "speedscope": OutputFormat((".speedscope.json",), "flame_exports", groups=_TRACKS),
    "pprof": OutputFormat((".pb.gz", ".pprof"), "flame_exports"),
    "otlp": OutputFormat((".otlp",), "flame_exports"),
    "firefox": OutputFormat((".firefox.json",), "flame_exports", groups=_TRACKS),
    "trace": OutputFormat((".trace.json",), "flame_exports"),
    "heatmap-svg": OutputFormat((".heatmap.svg",), "flame_pictures"),
}
