"""Facts of the operator's own, from a TOML file: the output of a command, a file, and environment
variables of processes by their names.

    [[fact]]
    name = "bootstrap-url"
    command = ["/usr/local/bin/bootstrap", "--print-url"]   # no shell; 5 s, 64 KiB

    [[fact]]
    name = "agent-config"
    file = "/etc/agent/config.json"
    sha256 = true              # its hash in place of its text

    [environment]
    variables = ["MALLOC_CONF", "LD_PRELOAD"]   # these and no others

Commands run with what the recorder's child that collects facts may do, so the file must be one that
nobody but its owner can write.
"""

import os
import re
import stat
import time
from collections import defaultdict
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any, Final, NamedTuple

from necroscope.errors import SourceUnavailable, UsageError
from necroscope.model.bounded_command import run_bounded
from necroscope.sources.facts.fact import VALUE_LIMIT, Fact, fact, list_names, read_bytes

KIND: Final = "own"
ENVIRONMENT: Final = "job_environment"
FACT_LIMIT: Final = 100
VARIABLE_LIMIT: Final = 32
_TIMEOUT_S: Final = 5.0
# Of all commands together: a stage that says nothing for a minute is given up.
_TOTAL_S: Final = 30.0
_OUTPUT_BYTES: Final = 1 << 16
_FILE_BYTES: Final = 1 << 20
_ENVIRON_BYTES: Final = 1 << 17
_PROCESS_LIMIT: Final = 5_000
_PROGRAM_LIMIT: Final = 200
_MOST_VALUES: Final = 8
# Users who start processes choose their values: beyond these, further ones are not kept.
_MOST_SEEN: Final = 64
_LARGEST_FILE: Final = 1 << 18
_NAME: Final = re.compile(r"[\w][\w./ -]{0,127}")
_VARIABLE: Final = re.compile(r"[A-Za-z_][A-Za-z0-9_]{0,127}")
_EXAMPLE: Final = (
    'write it as: [[fact]], then name = "x" and command = ["/bin/x"] or file = "/etc/x"'
)


class OwnFact(NamedTuple):
    """By a command, or by a file, whose hash may stand for it."""

    name: str
    command: tuple[str, ...] = ()
    file: str = ""
    sha256: bool = False


class OwnFacts(NamedTuple):
    facts: tuple[OwnFact, ...] = ()
    variables: tuple[str, ...] = ()


def read_own_facts(path: Path) -> OwnFacts:
    """UsageError names the entry and what is wrong with it."""
    try:
        with path.open("rb") as file:
            found = os.fstat(file.fileno())
            text = file.read(_LARGEST_FILE).decode("utf-8")
    except (OSError, UnicodeDecodeError) as error:
        why = error.strerror if isinstance(error, OSError) else "it is not UTF-8"
        raise UsageError(f"cannot read the file of facts {path}: {why}", _EXAMPLE) from None
    if found.st_uid not in (0, os.geteuid()):
        raise UsageError(
            f"{path} belongs to another user (uid {found.st_uid}), and holds commands that the"
            " recorder runs",
            f"chown root {path}",
        )
    if found.st_mode & (stat.S_IWGRP | stat.S_IWOTH):
        raise UsageError(
            f"{path} can be written by others, and holds commands that the recorder runs",
            f"chmod go-w {path}",
        )
    return parse_own_facts(text, str(path))


def parse_own_facts(text: str, source: str) -> OwnFacts:
    import tomllib  # noqa: PLC0415 - few nodes have such a file, and each start would load it

    try:
        document = tomllib.loads(text)
    except tomllib.TOMLDecodeError as error:
        raise UsageError(f"{source} is not valid TOML: {error}", _EXAMPLE) from None
    entries, environment = document.get("fact", []), document.get("environment", {})
    if set(document) - {"fact", "environment"} or not isinstance(entries, list):
        raise UsageError(f"{source} holds something that is not a [[fact]]", _EXAMPLE)
    if len(entries) > FACT_LIMIT:
        raise UsageError(f"{source} has {len(entries)} facts", f"at most {FACT_LIMIT}")
    facts = tuple(
        _fact(entry, f"{source}, fact {number}") for number, entry in enumerate(entries, 1)
    )
    if len({each.name for each in facts}) < len(facts):
        raise UsageError(f"{source} names a fact twice", "each fact has a name of its own")
    return OwnFacts(facts, _variables(environment, source))


def _fact(entry: Any, place: str) -> OwnFact:
    if not isinstance(entry, dict) or set(entry) - {"name", "command", "file", "sha256"}:
        raise UsageError(f"{place} is not a fact", _EXAMPLE)
    name, command, file = entry.get("name"), entry.get("command"), entry.get("file")
    if not isinstance(name, str) or not _NAME.fullmatch(name):
        raise UsageError(f"{place} has no valid name", "letters, digits, and ./_- or blanks")
    if (command is None) == (file is None):
        raise UsageError(f"{place} has neither a command nor a file, or both", _EXAMPLE)
    is_hash = entry.get("sha256", False)
    if file is not None and isinstance(file, str) and file.startswith("/"):
        return OwnFact(name, file=file, sha256=bool(is_hash))
    words = command if isinstance(command, list) else []
    if not words or not all(isinstance(word, str) for word in words) or words[0][:1] != "/":
        raise UsageError(f"{place}: no absolute path to a program or a file", _EXAMPLE)
    return OwnFact(name, command=tuple(words), sha256=bool(is_hash))


def _variables(environment: Any, source: str) -> tuple[str, ...]:
    names = environment.get("variables", []) if isinstance(environment, dict) else None
    if (
        not isinstance(names, list)
        or len(names) > VARIABLE_LIMIT
        or not all(isinstance(name, str) and _VARIABLE.fullmatch(name) for name in names)
    ):
        raise UsageError(
            f"{source}: environment.variables is not a list of at most {VARIABLE_LIMIT} names",
            'write it as: [environment], then variables = ["MALLOC_CONF"]; patterns are not names',
        )
    return tuple(names)


def collect(
    root: Path, own: OwnFacts, clock: Callable[[], float] = time.monotonic
) -> Iterator[Fact]:
    """Those that can be had; SourceUnavailable at the end names the others."""
    troubles: list[str] = []
    end_s = clock() + _TOTAL_S
    for each in own.facts:
        try:
            content = _content(root, each, min(_TIMEOUT_S, end_s - clock()))
        except SourceUnavailable as error:
            troubles.append(f"{each.name}: {error.facts}")
            continue
        if each.sha256:
            # Only now: the recorder imports this module too, and OpenSSL takes it 4 MB.
            from hashlib import sha256  # noqa: PLC0415

            yield fact(KIND, each.name, sha256(content).hexdigest())
        else:
            yield fact(KIND, each.name, b" ".join(content[:_OUTPUT_BYTES].split()))
    yield from _environments(root, own.variables)
    if troubles:
        raise SourceUnavailable("; ".join(troubles)[:VALUE_LIMIT])


def _content(root: Path, own: OwnFact, timeout_s: float) -> bytes:
    if own.file:
        content = read_bytes(root / own.file.lstrip("/"), _FILE_BYTES)
        if content is None:
            raise SourceUnavailable(f"cannot read {own.file}")
        return content
    if timeout_s <= 0:
        raise SourceUnavailable(f"not asked: those before it took {_TOTAL_S:.0f} s")
    try:
        end = run_bounded(own.command, timeout_s, _OUTPUT_BYTES)
    except OSError as error:
        raise SourceUnavailable(f"cannot start {own.command[0]}: {error.strerror}") from None
    if end.status != 0:
        raise SourceUnavailable(f"{own.command[0]} {end.words}")
    return end.output


def _environments(root: Path, variables: tuple[str, ...]) -> Iterator[Fact]:
    """Of each named variable and program the values it has in running processes."""
    if not variables:
        return
    wanted = {name.encode(): name for name in variables}
    found: dict[tuple[str, str], set[str]] = defaultdict(set)
    for pid in list_names(root / "proc", 1 << 20)[:_PROCESS_LIMIT]:
        data = (
            read_bytes(root / "proc" / pid / "environ", _ENVIRON_BYTES) if pid.isdigit() else None
        )
        for word in (data or b"").split(b"\0"):
            name, _, value = word.partition(b"=")
            if name in wanted:
                program = (read_bytes(root / "proc" / pid / "comm", 64) or b"?").strip()
                key = wanted[name], program.decode("utf-8", "backslashreplace")
                is_room = (
                    len(found[key]) < _MOST_SEEN if key in found else len(found) < _PROGRAM_LIMIT
                )
                if is_room:
                    found[key].add(value[:VALUE_LIMIT].decode("utf-8", "backslashreplace"))
    for (variable, program_name), values in sorted(found.items()):
        shown = " | ".join(sorted(values)[:_MOST_VALUES])
        yield fact(ENVIRONMENT, f"{variable} {program_name}", shown)
