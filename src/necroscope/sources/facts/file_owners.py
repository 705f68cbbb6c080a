"""Which package a file came with, and since when a unit is enabled: dpkg's lists of files, rpm's
database, and the links that enable units.
"""

import os
from collections.abc import Collection
from datetime import UTC, datetime
from pathlib import Path
from typing import Final

from necroscope.sources.facts import rpm_database
from necroscope.sources.facts.fact import read_bytes

LIST_LIMIT: Final = 10_000
_LIST_BYTES: Final = 16 << 20
_INFO: Final = "var/lib/dpkg/info"
_ENABLING: Final = ("etc/systemd/system", "usr/lib/systemd/system", "lib/systemd/system")
_WANTS: Final = (".wants", ".requires")
_FOLDER_LIMIT: Final = 1_000


def packages_of(root: Path, files: Collection[str]) -> dict[str, str]:
    """The package of each file that one has brought. /lib is a link to /usr/lib, and a package may
    know a file by either name.
    """
    names = {alias.encode(): file for file in files for alias in _aliases(file)}
    found: dict[str, str] = {}
    for name in _names(root / _INFO)[:LIST_LIMIT]:
        if not name.endswith(".list") or len(found) == len(files):
            continue
        content = read_bytes(root / _INFO / name, _LIST_BYTES) or b""
        for line in names.keys() & content.split(b"\n"):
            found.setdefault(names[line], name.removesuffix(".list").partition(":")[0])
    if len(found) < len(files):
        by_rpm = rpm_database.packages_of(root, names.keys())
        found = {names[name]: package for name, package in by_rpm.items()} | found
    return found


def enabled_since(root: Path, units: Collection[str]) -> dict[str, str]:
    """The day on which each unit was enabled: that of the link that does so."""
    found: dict[str, str] = {}
    wanted = set(units)
    for place in _ENABLING:
        folders = [name for name in _names(root / place) if name.endswith(_WANTS)]
        for folder in folders[:_FOLDER_LIMIT]:
            for unit in wanted.intersection(_names(root / place / folder)) - found.keys():
                day = _day(root / place / folder / unit)
                if day is not None:
                    found[unit] = day
    return found


def _aliases(file: str) -> tuple[str, ...]:
    if file.startswith("/lib/"):
        return file, f"/usr{file}"
    return (file, file.removeprefix("/usr")) if file.startswith("/usr/lib/") else (file,)


def _names(folder: Path) -> list[str]:
    try:
        return sorted(os.listdir(folder))
    except OSError:
        return []


def _day(link: Path) -> str | None:
    try:
        changed_s = os.lstat(link).st_mtime
        return datetime.fromtimestamp(changed_s, UTC).date().isoformat()
    except (OSError, ValueError, OverflowError):
        return None
