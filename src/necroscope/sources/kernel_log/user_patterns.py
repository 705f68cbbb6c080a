"""The user's own log patterns, from a TOML file.

    [[pattern]]
    id = "acme.link"                 # names it in the column `pattern`
    kind = "fabric_error"            # the kind of event it makes
    regex = 'acme (?P<device>\\\\S+): fabric error on port (?P<port>\\\\d+)'
    contains = "fabric error"        # optional: only lines with this text are tried: much cheaper
    alarm = true                     # optional: a trigger, as a reset is

Groups named cpu, device, queue, pid and comm fill those columns, all others go into `fields`.
Python's regexes cannot be interrupted: lines are cut at 4,096 characters, which keeps an honest
regex quick, but one with nested repeats such as `(a+)+b` can still hold the recorder for long.
Write none.
"""

import re
from pathlib import Path
from typing import Final

from necroscope.errors import UsageError
from necroscope.sources.kernel_log.pattern import Pattern
from necroscope.sources.kernel_log.patterns import PATTERNS

_ID: Final = re.compile(r"[a-z0-9][a-z0-9_.-]{0,63}")
_KIND: Final = re.compile(r"[a-z][a-z0-9_]{0,63}")
_TYPES: Final = {"id": str, "kind": str, "regex": str, "contains": str, "alarm": bool}
_REQUIRED: Final = ("id", "kind", "regex")
_EXAMPLE: Final = (
    "write it as: [[pattern]], then id = 'acme.link', kind = 'fabric_error', regex = 'acme"
    " (?P<device>\\S+): fabric error'"
)


def read_user_patterns(path: Path) -> tuple[Pattern, ...]:
    """The patterns of a file; UsageError names the entry and what is wrong with it."""
    try:
        text = path.read_text("utf-8")
    except OSError as error:
        raise UsageError(f"cannot read pattern file {path}: {error.strerror}") from None
    except UnicodeDecodeError as error:
        raise UsageError(
            f"pattern file {path} is not UTF-8: {error.reason} at byte {error.start}"
        ) from None
    return parse_user_patterns(text, str(path))


def parse_user_patterns(text: str, source: str) -> tuple[Pattern, ...]:
    import tomllib  # noqa: PLC0415 - few nodes have such a file, and each start would load it

    try:
        document = tomllib.loads(text)
    except tomllib.TOMLDecodeError as error:
        raise UsageError(f"pattern file {source} is not valid TOML: {error}", _EXAMPLE) from None
    entries = document.get("pattern", [])
    if (
        set(document) - {"pattern"}
        or not isinstance(entries, list)
        or not all(isinstance(entry, dict) for entry in entries)
    ):
        raise UsageError(
            f"pattern file {source} holds something that is not a [[pattern]]", _EXAMPLE
        )
    known = {pattern.id for pattern in PATTERNS}
    patterns = []
    for number, entry in enumerate(entries, 1):
        patterns.append(_pattern(entry, f"pattern {number} of {source}", known))
        known.add(patterns[-1].id)
    return tuple(patterns)


def _pattern(entry: dict[str, object], where: str, known: set[str]) -> Pattern:
    for name, value in entry.items():
        if name not in _TYPES:
            raise UsageError(f"{where}: there is no key {name!r}", f"keys are: {', '.join(_TYPES)}")
        if not isinstance(value, _TYPES[name]):
            raise UsageError(
                f"{where}: {name} is not {'text' if _TYPES[name] is str else 'true or false'}",
                _EXAMPLE,
            )
    missing = [name for name in _REQUIRED if not entry.get(name)]
    if missing:
        raise UsageError(f"{where} has no {' and no '.join(missing)}", _EXAMPLE)
    pattern_id, kind = str(entry["id"]), str(entry["kind"])
    if not _ID.fullmatch(pattern_id) or pattern_id in known:
        wrong = "is taken" if pattern_id in known else "is not a valid id"
        raise UsageError(
            f"{where}: id {pattern_id!r} {wrong}",
            "an id is unique, of small letters, digits, dots, dashes and underscores",
        )
    if not _KIND.fullmatch(kind):
        raise UsageError(
            f"{where}: kind {kind!r} is not a valid kind", "a kind is a word such as fabric_error"
        )
    keywords = (str(entry["contains"]),) if entry.get("contains") else ()
    return Pattern(
        pattern_id,
        kind,
        _check_regex(str(entry["regex"]), where),
        keywords,
        alarm=bool(entry.get("alarm", False)),
    )


def _check_regex(regex: str, where: str) -> str:
    try:
        compiled = re.compile(regex)
    except (re.error, RecursionError, OverflowError) as error:
        raise UsageError(
            f"{where}: {regex!r} is not a valid regex: {error}",
            "regexes are written as Python's re module reads them",
        ) from None
    if compiled.search("") is not None:
        raise UsageError(
            f"{where}: {regex!r} matches an empty line, and so every line",
            "say what the line must hold",
        )
    return regex
