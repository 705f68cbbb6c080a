"""`necroscope flame`: any window of a recording or capture as a flame graph, a heat map, a table,
or another viewer's format.
"""

import re
import sys
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import TYPE_CHECKING, Any, BinaryIO, Final

import click

from necroscope.cli.flame_outputs import (
    OUTPUTS,
    TextStyle,
    check_options,
    chosen_format,
    writer_of,
)
from necroscope.cli.flame_windows import WindowWords
from necroscope.cli.moment_completion import complete_moment
from necroscope.cli.opened_recording import opened_recording
from necroscope.cli.output_file import output_file
from necroscope.cli.recording_place import recording_argument
from necroscope.errors import UsageError
from necroscope.model.span import Extent
from necroscope.model.units import NS_PER_S, parse_duration_ns
from necroscope.sources.sysfs.cpus import parse as parse_cpu_list
from necroscope.store.choices import DEFAULT_ROWS, WORK, GroupBy, State
from necroscope.store.selection import Selection
from necroscope.store.time_limit import TimeLimit

if TYPE_CHECKING:
    from necroscope.cli.flame_question import FlameQuestion
    from necroscope.store.query import Store

_STANDARD_OUTPUT: Final = Path("-")
Command = Callable[..., None]
Options = dict[str, Any]
_CPU_LIST: Final = re.compile(r"\d{1,5}(-\d{1,5})?(,\d{1,5}(-\d{1,5})?)*")
_STATES: Final = [state.name.lower() for state in State]
_GROUPS: Final = [by.value for by in GroupBy]

_OPTIONS: Final = (
    click.option(
        "--from",
        "start",
        metavar="T",
        shell_complete=complete_moment,
        help="the window's start: ISO 8601, or -5m before the END of the recording",
    ),
    click.option(
        "--to",
        "end",
        metavar="T",
        shell_complete=complete_moment,
        help="the window's end, written in the same way",
    ),
    click.option(
        "--at",
        metavar="T",
        shell_complete=complete_moment,
        help="a moment in the middle of the window",
    ),
    click.option("--around", metavar="T", help="length of the window around --at [5s]"),
    click.option(
        "--baseline", metavar="T..T", help="compare with this stretch of time: svg, html and text"
    ),
    click.option("--cpu", metavar="LIST", help="only these cores: 3, or 0-3,7"),
    click.option(
        "--pid",
        "pids",
        type=int,
        multiple=True,
        metavar="P",
        help="only this process; may be repeated",
    ),
    click.option(
        "--tid",
        "tids",
        type=int,
        multiple=True,
        metavar="T",
        help="only this thread; may be repeated",
    ),
    click.option(
        "--comm",
        "comms",
        multiple=True,
        metavar="NAME",
        help="only tasks of this name; may be repeated",
    ),
    click.option("--cgroup", metavar="PATH", help="only this cgroup and those below it"),
    click.option(
        "--state",
        "states",
        type=click.Choice(_STATES),
        multiple=True,
        help="only these [all but idle]",
    ),
    click.option(
        "--frames", metavar="REGEX", help="only stacks that have such a function or module"
    ),
    click.option(
        "--by",
        type=click.Choice(_GROUPS),
        multiple=True,
        help="group by this; repeat it to nest groups",
    ),
    click.option(
        "--waits",
        is_flag=True,
        help="draw waits instead of samples: where tasks slept, and who had their core, in ms",
    ),
    click.option(
        "--callers", is_flag=True, help="inverted: from the innermost function out to its callers"
    ),
    click.option(
        "--rows",
        type=int,
        default=DEFAULT_ROWS,
        metavar="N",
        help=f"rows of a heat map [{DEFAULT_ROWS}]",
    ),
    click.option("--column", metavar="T", help="time of a heat map's column [1s, or what fits]"),
    click.option("--time-limit", default="30s", metavar="T", help="read no longer than this [30s]"),
)


def _question_options(command: Command) -> Command:
    for option in reversed(_OPTIONS):
        command = option(command)
    return command


def _words_of(options: Options) -> WindowWords:
    return WindowWords(*(options[name] for name in ("start", "end", "at", "around", "baseline")))


def _question_of(options: Options, store: "Store", span: Extent) -> "FlameQuestion":
    # Not above: it loads numpy and Arrow, which a wrong option need not wait for.
    from necroscope.cli.flame_question import FlameQuestion  # noqa: PLC0415

    return FlameQuestion(
        store,
        span,
        _words_of(options).within(span),
        _selection(options),
        TimeLimit(parse_duration_ns(options["time_limit"]) / NS_PER_S),
        f"core{'s' * (not options['cpu'].isdigit())} {options['cpu']}"
        if options["cpu"] is not None
        else "all cores",
        tuple(_filters(options)),
        tuple(dict.fromkeys(GroupBy(value) for value in options["by"])),
        options["callers"],
        options["rows"],
        _column_s(options["column"]) if options["column"] is not None else None,
        options["waits"],
    )


def _check_question(options: Options) -> None:
    """What can be checked before a long import."""
    _selection(options)
    parse_duration_ns(options["time_limit"])
    if options["column"] is not None:
        _column_s(options["column"])
    _words_of(options).reach()


def _selection(options: Options) -> Selection:
    return Selection.of(
        _cpus(options["cpu"]) if options["cpu"] is not None else None,
        options["pids"] or None,
        options["tids"] or None,
        options["comms"] or None,
        options["cgroup"],
        [State[name.upper()] for name in options["states"]] or WORK,
        options["frames"],
    )


def _filters(options: Options) -> list[str]:
    """The selection in words, as headings and errors show it."""
    several = (("pid", "pids"), ("tid", "tids"), ("comm", "comms"), ("state", "states"))
    words = [
        f"{word} {' or '.join(map(str, options[name]))}" for word, name in several if options[name]
    ]
    return words + [
        f"{name} {options[name]}" for name in ("cgroup", "frames") if options[name] is not None
    ]


def _cpus(text: str) -> tuple[int, ...]:
    if not _CPU_LIST.fullmatch(text) or not (cpus := parse_cpu_list(text)):
        raise UsageError(f"{text!r} is not a list of cores", "write it as 3, or 0-3,7")
    return cpus


def _column_s(text: str) -> int:
    column_ns = parse_duration_ns(text)
    if column_ns % NS_PER_S or not column_ns:
        raise UsageError(
            f"a column of {text} is not a whole number of seconds", "write it as 1s, 5s or 1m"
        )
    return column_ns // NS_PER_S


@click.command()
@recording_argument("source")
@_question_options
@click.option(
    "--format",
    "format_name",
    type=click.Choice(list(OUTPUTS)),
    help="[by the suffix of -o, else text]",
)
@click.option(
    "--output",
    "-o",
    type=click.Path(path_type=Path),
    metavar="F",
    help="a file [-, standard output]",
)
@click.option("--top", type=click.IntRange(min=1), metavar="N", help="functions in the text [30]")
@click.option("--json", "as_json", is_flag=True, help="the text as JSON")
def command(
    source: Path,
    format_name: str | None,
    output: Path | None,
    top: int | None,
    as_json: bool,
    **options: Any,
) -> None:
    """A window of a recording, or of a capture (perf.data, perf script text, folded), in any
    viewer's format.

    Without --from, --to and --at it is all of the recording. Times without a zone are UTC; -5m is
    five minutes before the END of the recording, not before now. What is not in the answer is
    reported on standard error.

    \b
    Examples:
      necroscope flame D --at 2026-04-15T10:30:07 --cpu 3 -o core3.svg
      necroscope flame D --from -5m --baseline -60m..-5m --by name
      necroscope flame D --from -1m -o minute.heatmap.svg
      necroscope flame perf.data --from -10s -o end.html
      necroscope flame D --waits --comm raylet -o waits.svg
      necroscope flame D --comm kubelet --format folded | flamegraph.pl > kubelet.svg
    """
    file = None if output == _STANDARD_OUTPUT else output
    name = "text" if as_json and format_name is None else chosen_format(format_name, file)
    _check_output(name, file, as_json)
    _check_question(options)
    style = TextStyle(top, as_json, is_wide=file is not None or not sys.stdout.isatty())
    with opened_recording(source, *_words_of(options).reach(), lambda: writer_of(name)) as (
        store,
        import_notes,
    ):
        question = _question_of(options, store, store.span())
        check_options(name, question)
        with _output(file) as out:
            notes = writer_of(name)(question, out, style)
    # Not above: by now what answered has loaded it.
    from necroscope.views.format import literal_line  # noqa: PLC0415

    for note in [*import_notes, *notes]:
        click.echo(f"note: {literal_line(note)}", err=True)


@contextmanager
def _output(file: Path | None) -> Iterator[BinaryIO]:
    if file is not None:
        with output_file(file) as out:
            yield out
        return
    out = sys.stdout.buffer
    yield out
    # Here and not at the interpreter's end, where nothing would catch that the reader has gone.
    out.flush()


def _check_output(name: str, file: Path | None, as_json: bool) -> None:
    if as_json and name != "text":
        raise UsageError(
            f"--json and --format {name} cannot be combined",
            "omit one of them: --json is the text as JSON",
        )
    if file is None and not OUTPUTS[name].is_text and sys.stdout.isatty():
        raise UsageError(
            f"{name} cannot be shown in a terminal", f"give -o FILE{OUTPUTS[name].suffixes[0]}"
        )
