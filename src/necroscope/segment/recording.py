"""The directory of a recording: what its entries are called, how they are made and how they go.

recording.json            who made it: schema, node, boot id, labels
recorder.lock             held by the recorder that writes here
pins.json                 windows that retention keeps
spans.json                a cache: first and last time of each sealed segment
2026-11-15T22-03-13.123Z            a sealed segment
2026-11-15T22-03-13.123Z.live       a segment being recorded: its journal
2026-11-15T22-03-13.123Z.sealing    being written, garbage after a crash
2026-11-15T22-03-13.123Z.removing   being removed, garbage after a crash
"""

import contextlib
import os
import re
import shutil
import stat
import time
from collections.abc import Mapping
from datetime import UTC, datetime
from pathlib import Path
from types import MappingProxyType
from typing import Final, NamedTuple

from necroscope.errors import CorruptData, RecordingError
from necroscope.model.tables import SCHEMA_VERSION
from necroscope.model.units import NS_PER_MS, NS_PER_S, format_moment
from necroscope.segment.checksum import read_checked, sync_directory, write_checked
from necroscope.segment.stored_values import take, take_count, take_text
from necroscope.segment.versions import check_version

RECORDING_FILE: Final = "recording.json"
PINS_FILE: Final = "pins.json"
SPANS_FILE: Final = "spans.json"
LIVE: Final = ".live"
SEALING: Final = ".sealing"
REMOVING: Final = ".removing"
_SEGMENT: Final = re.compile(
    r"(\d{4}-\d\d-\d\dT\d\d-\d\d-\d\d\.\d{3}Z)(\.live|\.sealing|\.removing)?"
)


class Identity(NamedTuple):
    """What recording.json holds; the segments say themselves which node and boot they are from."""

    node: str
    boot_id: str
    made_by: str
    labels: Mapping[str, str] = MappingProxyType({})
    schema: int = SCHEMA_VERSION


class Pin(NamedTuple):
    """A window that retention keeps, and why."""

    from_ns: int
    to_ns: int
    reason: str


def make_recording(directory: Path, identity: Identity) -> None:
    """For a directory without a recorder: a recorder takes the lock between the two."""
    make_directory(directory)
    write_identity(directory, identity)


def make_directory(directory: Path) -> None:
    """Make the directory, or take up an old recording in it; a directory that holds something else
    is refused.
    """
    try:
        directory.mkdir(mode=0o700, parents=True, exist_ok=True)
        entries = [entry.name for entry in directory.iterdir()]
        refuse_shared(directory)
    except (FileExistsError, NotADirectoryError):
        raise RecordingError(
            f"{directory} is a file, or below a file", "choose an empty or new directory"
        ) from None
    except OSError as error:
        raise RecordingError(
            f"cannot make {directory}: {error.strerror}", "choose a directory you may write to"
        ) from None
    if RECORDING_FILE in entries:
        with contextlib.suppress(CorruptData):
            read_identity(directory)
    elif any(
        _SEGMENT.fullmatch(name) is None
        and not name.startswith((".", "recorder.lock", "lost+found"))
        for name in entries
    ):
        raise RecordingError(
            f"{directory} holds something other than a recording",
            "choose an empty or new directory",
        )


def set_newer_aside(directory: Path) -> Path | None:
    """What a newer version recorded here goes into a directory of its own, so that a package that
    was rolled back records on. Where it went; None if there is no such thing.
    """
    try:
        schema = take(read_checked(directory / RECORDING_FILE), "schema", int)
    except (OSError, CorruptData):
        return None
    if schema <= SCHEMA_VERSION:
        return None
    aside = directory / f".schema-{schema}-until-{segment_name(time.time_ns())}"
    aside.mkdir(mode=0o700)
    for entry in list(directory.iterdir()):
        if not entry.name.startswith((".schema-", "recorder.lock")):
            entry.rename(aside / entry.name)
    sync_directory(directory)
    return aside


def write_identity(directory: Path, identity: Identity) -> None:
    try:
        content = identity._asdict() | {"labels": dict(identity.labels)}
        write_checked(directory / RECORDING_FILE, content)
    except OSError as error:
        raise RecordingError(
            f"cannot write to {directory}: {error.strerror}", "choose a directory you may write to"
        ) from None


def refuse_shared(directory: Path) -> None:
    """RecordingError where others may prepare what we write to: the directory, or a link to it, is
    theirs or everybody's.
    """
    found = directory.stat()
    strangers = {found.st_uid, directory.lstat().st_uid} - {0, os.geteuid()}
    if strangers:
        facts = f"{directory} belongs to another user (uid {strangers.pop()})"
        raise RecordingError(
            facts, "choose a new directory, run as its owner, or make it yours with chown"
        )
    if found.st_mode & stat.S_IWOTH:
        raise RecordingError(
            f"every user may write to {directory}",
            f"choose a new directory, or: chmod o-w {directory}",
        )


def read_identity(directory: Path) -> Identity:
    """RecordingError if this is not a recording or a newer one than we know; CorruptData if only
    recording.json is damaged.
    """
    try:
        content = read_checked(directory / RECORDING_FILE)
    except OSError:
        raise RecordingError(
            f"{directory} is not a recording", "name a directory that `record --dir` made"
        ) from None
    try:
        schema = take(content, "schema", int)
        check_version(schema)
        names = take(content, "labels", dict)
        return Identity(
            take_text(content, "node"),
            take_text(content, "boot_id"),
            take_text(content, "made_by"),
            {name: take_text(names, name) for name in names},
            schema,
        )
    except CorruptData as error:
        raise CorruptData(f"{RECORDING_FILE} is not understood: {error.facts}") from None


def segment_name(start_ns: int) -> str:
    return format_moment(start_ns).replace(":", "-")


def segment_start_ns(name: str) -> int:
    """The start that a segment's name tells, to the millisecond; ValueError if it is not a
    segment's name.
    """
    match = _SEGMENT.fullmatch(name)
    if match is None:
        raise ValueError(f"{name!r} is not a valid name of a segment")
    moment = datetime.strptime(match[1][:19], "%Y-%m-%dT%H-%M-%S").replace(tzinfo=UTC)
    return int(moment.timestamp()) * NS_PER_S + int(match[1][20:23]) * NS_PER_MS


def new_segment_path(directory: Path, start_ns: int) -> Path:
    """Where to record a segment that starts now; moved on by milliseconds if the name is taken (the
    clock was stepped back).
    """
    taken = {match[1] for entry in directory.iterdir() if (match := _SEGMENT.fullmatch(entry.name))}
    while (name := segment_name(start_ns)) in taken:
        start_ns += NS_PER_MS
    return directory / (name + LIVE)


def segment_paths(directory: Path) -> list[Path]:
    """Sealed and live segments, oldest first; of a segment that is both, the sealed one."""
    try:
        suffix_by_name = _suffixes(directory)
    except OSError as error:
        raise RecordingError(
            f"cannot open {directory}: {error.strerror}", "run as the user who recorded it, or root"
        ) from None
    present = (
        (name, "" if "" in suffixes else LIVE)
        for name, suffixes in suffix_by_name.items()
        if suffixes & {"", LIVE}
    )
    return [directory / (name + suffix) for name, suffix in sorted(present)]


def remove_leftovers(directory: Path) -> list[Path]:
    """Remove what a crash left behind; returns the live segments that are not sealed. For a
    recorder that holds the lock.

    A `.sealing` next to its `.live` may belong to a sealing child that outlived its recorder:
    sealing again clears it, under lock.
    """
    unsealed = []
    for name, suffixes in sorted(_suffixes(directory).items()):
        if LIVE in suffixes and "" not in suffixes:
            unsealed.append(directory / (name + LIVE))
            suffixes -= {LIVE, SEALING}
        for suffix in suffixes - {""}:
            shutil.rmtree(directory / (name + suffix), ignore_errors=True)
    return unsealed


def remove_segment(path: Path) -> None:
    """After the rename no reader takes the remains for a segment, however far the removal comes."""
    name = path.name.removesuffix(LIVE)
    removing = path.with_name(name + REMOVING)
    for remains in (removing, path.with_name(name + SEALING)):
        shutil.rmtree(remains, ignore_errors=True)
    with contextlib.suppress(FileNotFoundError):
        path.rename(removing)
        sync_directory(path.parent)
    shutil.rmtree(removing, ignore_errors=True)


def segment_bytes(path: Path) -> int:
    """Bytes of all files of a segment; 0 if it went away meanwhile."""
    total = 0
    with contextlib.suppress(OSError):
        for entry in path.iterdir():
            with contextlib.suppress(OSError):
                total += entry.stat().st_size
    return total


def read_pins(directory: Path) -> list[Pin]:
    """No file, no pins; CorruptData if it is damaged."""
    try:
        pins = read_checked(directory / PINS_FILE)
    except FileNotFoundError:
        return []
    if not isinstance(pins, list):
        raise CorruptData(f"{PINS_FILE} holds no pins")
    return [
        Pin(take_count(pin, "from_ns"), take_count(pin, "to_ns"), take_text(pin, "reason"))
        for pin in pins
    ]


def write_pins(directory: Path, pins: list[Pin]) -> None:
    write_checked(directory / PINS_FILE, [pin._asdict() for pin in pins])


def _is_date(name: str) -> bool:
    """The recording's author may have called a segment 2026-99-99."""
    try:
        return segment_start_ns(name) >= 0
    except ValueError:
        return False


def _suffixes(directory: Path) -> dict[str, set[str]]:
    """The states in which each segment is present, by its name."""
    states: dict[str, set[str]] = {}
    with os.scandir(directory) as entries:
        for entry in entries:
            if (match := _SEGMENT.fullmatch(entry.name)) and _is_date(match[1]) and entry.is_dir():
                states.setdefault(match[1], set()).add(match[2] or "")
    return states
