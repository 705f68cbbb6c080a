"""The `necroscope` command: finds the sub-command, runs it, and prints what goes wrong as facts and
a way out.
"""

import atexit
import gc
import os
import sys
from importlib import import_module
from typing import Final

import click

from necroscope import __version__
from necroscope.cli.extras import missing_extra
from necroscope.cli.reader_memory import out_of_memory
from necroscope.errors import NecroscopeError, PermissionMissing, UsageError
from necroscope.model.names import clean
from necroscope.model.unwanted_modules import leave_out

# Imported only when asked for: the recorder must not pay for the parts that draw.
_COMMANDS: Final = {
    "demo": "the story in a minute: a recorded real incident, its verdict, and the page",
    "record": "the flight recorder: every core, every second, to a directory",
    "info": "what a recording holds",
    "diagnose": "what starved a core, who did it, and what to do",
    "diff": "how two nodes differ, from their recordings; also as a gate with an exit code",
    "changes": "what changed in a stretch of time against the one before it",
    "job": "why did this job die? From its last line to the core, over the nodes it ran on",
    "excerpt": "cut a window out of a recording, as one of its own",
    "import": "make a recording of perf.data, perf script, folded stacks, mpstat or dmesg",
    "view": "the time machine: a recording in the browser",
    "check": "is this node healthy? A check-up in under two seconds",
    "treat": "apply the fix of a verdict, in small bites, and take it back if need be",
    "doctor": "what can be recorded on this machine, and what changes the rest",
    "top": "live view of every core, its mode, and who is on it",
    "flame": "a window as a flame graph, heat map, table, or another viewer's format",
    "fleet": "many nodes: collect, and find which difference between them predicts the failures",
    "metrics": "a recording as Prometheus metrics, for a scraper on this node",
    "mcp": "answer assistants: incidents, verdicts and rows by the Model Context Protocol",
    "notify": "announce new incidents to a webhook and to Kubernetes",
    "otlp": "send stacks, events and incidents to an OpenTelemetry collector",
    "lab": "provoke real incidents on this machine, and score the verdicts on them",
    "stakeout": "run a job again and again under the recorder until an event is caught or it fails",
    "completion": "print the shell completion script",
}
_READERS: Final = ("info", "diagnose", "diff", "changes", "job", "excerpt", "flame", "view")


class Commands(click.Group):
    """Loads `necroscope.cli.NAME` and takes its `command`."""

    def list_commands(self, ctx: click.Context) -> list[str]:  # noqa: ARG002
        return list(_COMMANDS)

    def get_command(self, ctx: click.Context, cmd_name: str) -> click.Command | None:  # noqa: ARG002
        if cmd_name not in _COMMANDS:
            return None
        command: click.Command = import_module(f"necroscope.cli.{cmd_name}").command
        return command

    def resolve_command(
        self, ctx: click.Context, args: list[str]
    ) -> tuple[str | None, click.Command | None, list[str]]:
        if args[0] not in _COMMANDS:
            from difflib import get_close_matches  # noqa: PLC0415 - only where one is unknown

            for near in get_close_matches(args[0], _COMMANDS, n=1):
                raise UsageError(
                    f"there is no command {clean(args[0])!r}", f"did you mean: necroscope {near}"
                )
        return super().resolve_command(ctx, args)

    def format_commands(self, ctx: click.Context, formatter: click.HelpFormatter) -> None:  # noqa: ARG002
        with formatter.section("Commands"):
            formatter.write_dl(list(_COMMANDS.items()))


@click.group(cls=Commands, context_settings={"help_option_names": ["-h", "--help"]})
@click.version_option(__version__, prog_name="necroscope")
def necroscope() -> None:
    """A flight recorder for Linux nodes: what starved this core, and who did it?

    \b
    Examples:
      necroscope demo                             the story in a minute, without root
      necroscope top                              look at this machine now
      necroscope record                           record to /var/lib/necroscope until Ctrl-C
      necroscope diagnose                         what happened, and who did it
    """


def run() -> None:
    """The program. What reads a recording has a process of its own, where there is sigwaitinfo."""
    leave_out("pandas")
    if _only_reads():
        # Not above: other systems lack what it needs.
        from necroscope.cli.reader_guard import guard  # noqa: PLC0415

        try:
            guard()
        except NecroscopeError as error:
            _fail(error.facts, error.hint, error.exit_code)
    main()


def _only_reads() -> bool:
    return len(sys.argv) > 1 and sys.argv[1] in _READERS and sys.platform == "linux"


def _prepare(command: str) -> None:
    # No part multiplies matrices: the threads that numpy would start for it only cost time and
    # memory.
    os.environ.setdefault("OPENBLAS_NUM_THREADS", "1")
    if command == "import":
        # It only writes: Arrow without numpy loads in half the time and 25 MB less, and malloc
        # instead of mimalloc saves 40.
        leave_out("numpy")
        os.environ.setdefault("ARROW_DEFAULT_MEMORY_POOL", "system")
    if command in ("import", "flame"):
        # Modules, rows and boxes come by the thousand and few are part of a cycle: looking for
        # cycles among them takes a tenth of the time.
        gc.set_threshold(1_000_000, 20, 100)
        # Nor does the interpreter look for them once more before it ends. DuckDB complains where a
        # command that uses it does the same.
        atexit.register(gc.freeze)


def main() -> None:
    """Exit codes: 0 success, 1 to 7 by the error (see `errors.py`), 130 interrupted."""
    _prepare(sys.argv[1] if sys.argv[1:] else "")
    try:
        necroscope.main(standalone_mode=False)
        _leave_if_guarded()
    except NecroscopeError as error:
        _fail(error.facts, error.hint, error.exit_code)
    except ModuleNotFoundError as error:
        missing = missing_extra(error, " ".join(sys.argv[1:2]))
        if missing is None:
            raise
        _fail(missing.facts, missing.hint, missing.exit_code)
    except MemoryError:
        limit = out_of_memory()
        _fail(limit.facts, limit.hint, limit.exit_code)
    except click.exceptions.Abort:
        sys.exit(130)
    except click.UsageError as error:
        _help_or_fail(error)
    except click.ClickException as error:
        _fail(error.format_message(), "", error.exit_code)
    except BrokenPipeError as error:
        # The reader of our output has gone (`| head`): nothing is left to say, not even at
        # interpreter exit.
        nowhere = os.open(os.devnull, os.O_WRONLY)
        os.dup2(nowhere, sys.stdout.fileno())
        os.dup2(nowhere, sys.stderr.fileno())
        # click says a line before it aborts: then it is the line that could not be said, and Ctrl-C
        # that ended us.
        if isinstance(error.__context__, KeyboardInterrupt):
            sys.exit(130)
    except PermissionError as error:
        hint = "run as the user whose files these are, or as root"
        _fail(
            clean(f"{error.strerror}: {error.filename or 'it does not say of what'}"),
            hint,
            PermissionMissing.exit_code,
        )


def _leave_if_guarded() -> None:
    """What a reader holds goes with its process. To take it down piece by piece, as the interpreter
    would, takes a twentieth of a short answer's time.
    """
    if _only_reads():
        # Not above: other systems lack what it needs.
        from necroscope.cli.reader_guard import is_guarded  # noqa: PLC0415

        if is_guarded():
            sys.stdout.flush()
            sys.stderr.flush()
            os._exit(0)


def _help_or_fail(error: click.UsageError) -> None:
    """A group without a command is a question, not a mistake."""
    if isinstance(error, click.exceptions.NoArgsIsHelpError):
        click.echo(error.format_message())
        return
    hint = f"see: {error.ctx.command_path} --help" if error.ctx else "see: necroscope --help"
    _fail(error.format_message(), hint, 2)


def _fail(facts: str, hint: str, exit_code: int) -> None:
    click.echo(f"error: {facts}", err=True)
    if hint:
        click.echo(f"hint: {hint}", err=True)
    sys.exit(exit_code)
