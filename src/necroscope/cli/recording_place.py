"""Where a recording is when the command line does not say: the directory of the recorder that runs
now, or the default one.
"""

import os
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any, Final

import click
from click.shell_completion import CompletionItem

from necroscope.errors import UsageError

SYSTEM_DIRECTORY: Final = Path("/var/lib/necroscope")
_LOCK_FILE: Final = "recorder.lock"
# Any user can hold many locks and open many files.
_MOST_LOCKS: Final = 20_000
_MOST_DESCRIPTORS: Final = 4_096
_MOST_COMPLETIONS: Final = 200


def _is_recorded(directory: Path) -> bool:
    """False where no recorder can run: locks are Unix's."""
    try:
        from necroscope.segment.lock import is_recorded  # noqa: PLC0415 - a laptop has no fcntl
    except ModuleNotFoundError:
        return False
    return is_recorded(directory)


def recording_argument(name: str, metavar: str = "[DIR|FILE]") -> Callable[[Any], Any]:
    """The recording that a command is about; without one, that of the recorder which runs here."""
    return click.argument(
        name,
        required=False,
        type=click.Path(path_type=Path, readable=False),
        metavar=metavar,
        callback=_given_or_found,
        shell_complete=_complete,
    )


def _given_or_found(
    context: click.Context, _parameter: click.Parameter, given: Path | None
) -> Path | None:
    # A shell that completes a line parses it too, and has no recording to find.
    return given if given is not None or context.resilient_parsing else find_recording()


def default_directory() -> Path:
    """Where `record` writes without --dir: root's is the one that the unit uses."""
    if os.geteuid() == 0:
        return SYSTEM_DIRECTORY
    state = os.environ.get("XDG_STATE_HOME") or str(Path.home() / ".local" / "state")
    return Path(state) / "necroscope"


def node_recording() -> Path | None:
    """The directory of the recorder that looks after this node, if it runs: not one that was
    started for an experiment.
    """
    usual = (SYSTEM_DIRECTORY, default_directory())
    return next((path for path in usual if _is_recorded(path)), None)


def find_recording(*, says_which: bool = True) -> Path:
    """One recorder that runs now, else a recording in a default directory."""
    running = running_recordings()
    if len(running) > 1:
        listed = ", ".join(str(path) for path in running)
        raise UsageError(f"{len(running)} recorders run here: {listed}", "name one of them")
    found = running or [
        path for path in (SYSTEM_DIRECTORY, default_directory()) if _is_recording(path)
    ]
    if not found:
        raise UsageError(
            "no recording is named, and no recorder runs here",
            f"give its directory, or start one: necroscope record (writes {default_directory()})",
        )
    if says_which:
        click.echo(f"note: reading {found[0]}", err=True)
    return found[0]


def running_recordings() -> list[Path]:
    """Directories whose lock a recorder of root or of this user holds now.

    The lock itself is the evidence: the name and arguments of a process are whatever it says.
    """
    found = {path for pid in _lock_holders() for path in _recordings_of(pid)}
    if _is_recorded(SYSTEM_DIRECTORY):
        # The unit's recorder runs as a user of its own.
        found.add(SYSTEM_DIRECTORY)
    return sorted(path for path in found if _is_recorded(path))


def _lock_holders() -> Iterator[int]:
    """/proc/locks: `1: FLOCK  ADVISORY  WRITE 4711 fe:00:131 0 EOF`."""
    try:
        with Path("/proc/locks").open("rb") as locks:
            for _, line in zip(range(_MOST_LOCKS), locks, strict=False):
                words = line.split()
                if len(words) > 4 and words[1] == b"FLOCK" and words[3] == b"WRITE":
                    pid = int(words[4])
                    if pid > 0 and _is_trusted(pid):
                        yield pid
    except (OSError, ValueError):
        return


def _is_trusted(pid: int) -> bool:
    try:
        return Path(f"/proc/{pid}").stat().st_uid in {0, os.geteuid()}
    except OSError:
        return False


def _recordings_of(pid: int) -> Iterator[Path]:
    try:
        descriptors = os.listdir(f"/proc/{pid}/fd")[:_MOST_DESCRIPTORS]
    except OSError:
        return
    for descriptor in descriptors:
        try:
            target = Path(os.readlink(f"/proc/{pid}/fd/{descriptor}"))
        except OSError:
            continue
        if target.name == _LOCK_FILE and _is_recording(target.parent):
            yield target.parent


def _is_recording(path: Path) -> bool:
    # Not above: who names a file needs neither.
    from necroscope.segment.recording import RECORDING_FILE  # noqa: PLC0415

    try:
        return (path / RECORDING_FILE).is_file()
    except OSError:
        return False


def _complete(
    _context: click.Context, _parameter: click.Parameter, incomplete: str
) -> list[CompletionItem]:
    """Recordings first: those of running recorders, then directories and files as they are."""
    usual = filter(_is_recording, (SYSTEM_DIRECTORY, default_directory()))
    places = [*running_recordings(), *usual]
    named = [str(path) for path in dict.fromkeys(places) if str(path).startswith(incomplete)]
    return [
        *(CompletionItem(name, help="recording") for name in named[:_MOST_COMPLETIONS]),
        CompletionItem(incomplete, type="file"),
    ]
