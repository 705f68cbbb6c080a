"""What support engineers ask for, by its layout: a sosreport, or what AWS's log collectors for EKS
pack; a directory, or a tar of one.

Of the hundreds of files those are taken that an import knows: the kernel's log, copies of /proc,
sar's days. A name in a tar is only compared with the layout, never used as a path.
"""

import os
import re
import tarfile
from collections.abc import Iterator
from dataclasses import dataclass, field
from pathlib import Path
from typing import IO, Final

from necroscope.errors import UsageError
from necroscope.interchange.unreadable import unreadable
from necroscope.model.names import clean

# A sosreport of a large node has tens of thousands of files.
MOST_MEMBERS: Final = 500_000
MOST_FILE_BYTES: Final = 1 << 30
MOST_BYTES: Final = 4 << 30
_PIECE_BYTES: Final = 1 << 20
# By rank: of two that tell the same the first is taken.
_WANTED: Final = (
    ("log", re.compile(r"(?:sos_commands/kernel/dmesg_-T|kernel/dmesg\.human\.current)")),
    ("log", re.compile(r"(?:sos_commands/kernel/dmesg|kernel/dmesg\.current)")),
    ("stat", re.compile(r"(?:proc/stat|system/procstat\.txt)")),
    ("interrupts", re.compile(r"proc/interrupts")),
    ("cgroups", re.compile(r"proc/cgroups")),
    ("sa", re.compile(r"var/log/(?:sa|sysstat)/sar(\d\d(?:\d{6})?)")),
    ("sa", re.compile(r"var/log/(?:sa|sysstat)/sa(\d\d(?:\d{6})?)")),
)
_HOST: Final = re.compile(r"(?:hostname|sos_commands/host/hostname|system/instance-id\.txt)")
_CGROUP: Final = re.compile(r"sys(/fs/cgroup/[^/]+(?:/.*)?)")
_LAYOUTS: Final = (re.compile(r"sos_commands/"), re.compile(r"kernel/dmesg\.(?:human\.)?current"))
_IN_NAME: Final = re.compile(r"(?:sosreport-([\w.]+(?:-[\w.]+)*?)-(?:\d|20)|eks_(i-[0-9a-f]+)_)")


@dataclass(slots=True)
class SupportBundle:
    """`files` by what they tell, with the name they have in the bundle; `directories` are those of
    cgroups.
    """

    name: str
    host: str | None = None
    files: dict[str, tuple[str, Path]] = field(default_factory=dict)
    directories: list[bytes] = field(default_factory=list)
    notes: list[str] = field(default_factory=list)


def open_bundle(path: Path, scratch: Path) -> SupportBundle | None:
    """None for what has neither layout; what is packed is unpacked into `scratch`."""
    try:
        found = _of_directory(path) if path.is_dir() else _of_tar(path, scratch)
    except OSError as error:
        raise unreadable(path, error) from None
    if found is not None and found.host is None:
        named = _IN_NAME.search(path.name)
        found.host = next(filter(None, named.groups()), None) if named else None
    return found


def is_tar(path: Path) -> bool:
    try:
        return path.is_file() and tarfile.is_tarfile(path)
    except (OSError, EOFError, ValueError):
        return False


def _of_directory(path: Path) -> SupportBundle | None:
    top = path
    inner = [entry for entry in os.scandir(path) if entry.is_dir(follow_symlinks=False)]
    if len(inner) == 1 and not (path / "sos_commands").is_dir() and not (path / "kernel").is_dir():
        top = Path(inner[0].path)
    if not (top / "sos_commands").is_dir() and not any(
        (top / "kernel" / name).is_file() for name in ("dmesg.current", "dmesg.human.current")
    ):
        return None
    bundle = SupportBundle(path.name)
    chosen = _Choice()
    for count, (folder, names) in enumerate(_walk(top)):
        if count > MOST_MEMBERS:
            bundle.notes.append(f"more than {MOST_MEMBERS} directories: the rest was not looked at")
            break
        relative = folder.relative_to(top).as_posix()
        _note_cgroup(bundle, relative)
        for name in names:
            inside = name if relative == "." else f"{relative}/{name}"
            if _HOST.fullmatch(inside) and bundle.host is None:
                bundle.host = _first_line((folder / name).read_bytes()[:256])
            elif chosen.takes(inside):
                bundle.files[chosen.key(inside)] = inside, folder / name
    return bundle


def _walk(top: Path) -> Iterator[tuple[Path, list[str]]]:
    for folder, _, names in os.walk(top, followlinks=False):
        yield Path(folder), names


class _Choice:
    """Which file of a bundle tells a thing best, of those that were seen so far."""

    def __init__(self) -> None:
        self._ranks: dict[str, int] = {}

    def takes(self, name: str) -> bool:
        rank = self._rank(name)
        if rank is None or self._ranks.get(self.key(name), len(_WANTED)) <= rank:
            return False
        self._ranks[self.key(name)] = rank
        return True

    @staticmethod
    def key(name: str) -> str:
        """`log`, or `sa15` for the figures of a day."""
        for what, form in _WANTED:
            if found := form.fullmatch(name):
                return what + (found[1] if form.groups else "")
        return name

    @staticmethod
    def _rank(name: str) -> int | None:
        places = (place for place, (_, form) in enumerate(_WANTED) if form.fullmatch(name))
        return next(places, None)


def _of_tar(path: Path, scratch: Path) -> SupportBundle | None:
    bundle, chosen = SupportBundle(path.name), _Choice()
    is_known, left = False, MOST_BYTES
    try:
        with tarfile.open(path) as packed:
            for count, member in enumerate(packed):
                if count >= MOST_MEMBERS:
                    bundle.notes.append(f"the files after the first {MOST_MEMBERS} were not read")
                    break
                name = _inside(member.name)
                is_known = is_known or any(form.match(name) for form in _LAYOUTS)
                if member.isdir():
                    _note_cgroup(bundle, name)
                file = packed.extractfile(member) if member.isreg() else None
                if file is None:
                    continue
                if _HOST.fullmatch(name):
                    bundle.host = bundle.host or _first_line(file.read(256))
                elif chosen.takes(name):
                    place = scratch / f"{len(os.listdir(scratch))}"
                    left -= _copy(file, place, min(left, MOST_FILE_BYTES), bundle, name)
                    os.utime(place, (member.mtime, member.mtime))
                    bundle.files[chosen.key(name)] = name, place
    except (tarfile.TarError, EOFError, ValueError) as error:
        raise UsageError(
            f"{path} is a broken archive: {clean(str(error))}", "copy it again, or unpack it first"
        ) from None
    return bundle if is_known else None


def _inside(name: str) -> str:
    """The name below the top directory: sos packs one, the collectors pack `.`."""
    name = name.removeprefix("./")
    top, _, rest = name.partition("/")
    return rest if top.startswith("sosreport-") or top in (".", "collect") else name


def _copy(file: IO[bytes], place: Path, most: int, bundle: SupportBundle, name: str) -> int:
    done = 0
    with place.open("wb") as out:
        while piece := file.read(min(_PIECE_BYTES, most - done + 1)):
            if done + len(piece) > most:
                bundle.notes.append(f"{clean(name)} was cut at {most} bytes")
                break
            done += out.write(piece)
    return done


def _note_cgroup(bundle: SupportBundle, name: str) -> None:
    found = _CGROUP.fullmatch(name)
    if found is not None:
        bundle.directories.append(found[1].removeprefix("/fs/cgroup").encode("utf-8", "replace"))


def _first_line(content: bytes) -> str | None:
    return clean(content.strip().split(b"\n")[0].strip(), 64) or None
