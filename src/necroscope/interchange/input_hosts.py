"""Whose files they are: those of several machines become several recordings."""

import re
from collections.abc import Sequence
from pathlib import Path
from typing import Final

from necroscope.interchange.detect import FileKind
from necroscope.interchange.inputs import Input
from necroscope.interchange.sysstat_text import BANNER
from necroscope.interchange.text_pieces import open_text
from necroscope.model.names import clean

_HEAD_BYTES: Final = 1 << 14
_NODENAME: Final = re.compile(rb'"nodename"\s*:\s*"([^"\\]{1,64})"')
# `journalctl -k` and syslog: the host stands between the time and the sender.
_SENDER: Final = re.compile(
    rb"^(?:[A-Z][a-z]{2} [ \d]\d \d\d:\d\d:\d\d(?:\.\d+)?|\d{4}-\d\d-\d\dT\S+) (\S{1,64}) kernel: ",
    re.MULTILINE,
)


def host_of(given: Input) -> str | None:
    """As the file says it, else its name."""
    if given.host:
        return given.host
    if given.capture is not None and given.capture.facts.host:
        return clean(given.capture.facts.host)
    if given.kind in (FileKind.MPSTAT, FileKind.SAR, FileKind.DMESG):
        return _in_head(given)
    return clean(given.name.host) if given.folder is not None and given.name.host else None


def _in_head(given: Input) -> str | None:
    try:
        with open_text(given.path) as file:
            head = file.read(_HEAD_BYTES)
    except (OSError, EOFError):
        return None
    if given.kind is FileKind.DMESG:
        found = _SENDER.search(head)
        return clean(found[1]) if found else None
    named = BANNER.match(head.lstrip())
    nodename = _NODENAME.search(head)
    return clean(named["host"]) if named else clean(nodename[1]) if nodename else None


def by_host(inputs: Sequence[Input]) -> tuple[dict[str, list[Input]], list[Input]]:
    """The files of each host, and those that do not say whose they are where there are several. One
    that does not is of the only host, of the one that its path names, or of who shares its folder.
    """
    hosts = {id(given): host_of(given) for given in inputs}
    full = {_short(host): host for host in hosts.values() if host}
    if len(full) <= 1:
        return {next(iter(full.values()), "unknown"): list(inputs)}, []
    found: dict[str, list[Input]] = {host: [] for host in full.values()}
    strays: list[Input] = []
    folders = {
        folder: {
            _short(host)
            for given in inputs
            if given.path.parent == folder and (host := hosts[id(given)])
        }
        for folder in {given.path.parent for given in inputs}
    }
    for given in inputs:
        host = hosts[id(given)]
        short = _short(host) if host else _by_place(given.path, set(full), folders)
        found[full[short]].append(given) if short else strays.append(given)
    return found, strays


def _short(host: str) -> str:
    """`ip-10-0-0-1` and `ip-10-0-0-1.ec2.internal` are one."""
    return host.partition(".")[0].lower()


def _by_place(path: Path, known: set[str], folders: dict[Path, set[str]]) -> str | None:
    own = {part for part in known if part in path.name.lower() or part in path.parent.name.lower()}
    if len(own) == 1:
        return own.pop()
    near = folders[path.parent]
    return next(iter(near)) if len(near) == 1 and len(folders) > 1 else None
