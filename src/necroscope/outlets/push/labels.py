"""Labels of a node: from the recording, Kubernetes' downward API, a file, and flags; each of these
wins over those before it.
"""

import json
import re
from collections.abc import Iterable, Mapping
from pathlib import Path
from typing import Final

from necroscope.errors import UsageError
from necroscope.fleet.limits import DEFAULT_LIMITS
from necroscope.model.names import clean

NODE_VARIABLE: Final = "NODE_NAME"
# Variables that a pod's manifest fills from the downward API (`fieldRef`), and the label each
# becomes.
_VARIABLES: Final = {NODE_VARIABLE: "node_name", "POD_NAMESPACE": "namespace"}
_OWN: Final = re.compile(r"NECROSCOPE_LABEL_([A-Z0-9_]+)")
# A volume of the downward API holds `labels` and `annotations`; the latter are not labels, and
# long.
_NO_LABELS: Final = "annotations"
_LARGEST_BYTES: Final = 1 << 18


def collect_labels(
    recorded: Mapping[str, str],
    environment: Mapping[str, str],
    file: Path | None,
    flags: Iterable[str],
) -> tuple[dict[str, str], list[str]]:
    """The labels, as a collector takes them, and what was left out of them, in words."""
    found = {
        **recorded,
        **from_environment(environment),
        **(from_file(file) if file is not None else {}),
        **from_flags(flags),
    }
    limits = DEFAULT_LIMITS
    cleaned = {clean(name): clean(value) for name, value in found.items() if name}
    short = {
        name: value
        for name, value in cleaned.items()
        if max(map(_size, (name, value))) <= limits.label_bytes
    }
    kept = dict(list(short.items())[: limits.labels])
    notes = [
        f"label {name} is longer than {limits.label_bytes} bytes and was left out"
        for name in cleaned.keys() - short.keys()
    ]
    if len(short) > len(kept):
        notes.append(
            f"{len(short)} labels are more than {limits.labels}: the last {len(short) - len(kept)}"
            " were left out"
        )
    return kept, sorted(notes)


def from_flags(flags: Iterable[str]) -> dict[str, str]:
    pairs = [flag.partition("=") for flag in flags]
    for name, equals, value in pairs:
        if not name or not equals:
            raise UsageError(
                f"label {name + equals + value!r} is not key=value",
                "write it as --label zone=us-east-1a",
            )
    return {name: value for name, _, value in pairs}


def from_environment(environment: Mapping[str, str]) -> dict[str, str]:
    """`NODE_NAME`, `POD_NAMESPACE`, and any `NECROSCOPE_LABEL_ZONE`."""
    known = {
        label: environment[name] for name, label in _VARIABLES.items() if environment.get(name)
    }
    own = {
        match[1].lower(): value
        for name, value in sorted(environment.items())
        if (match := _OWN.fullmatch(name)) and value
    }
    return known | own


def from_file(path: Path) -> dict[str, str]:
    """`key=value` lines, the value plain or in quotes; of a directory, which a downward API volume
    is, every file in it.

    In a directory a file without such lines is one label: its name, and what it holds.
    """
    try:
        if not path.is_dir():
            return _parse(path, _read(path))
        files = [
            file
            for file in sorted(path.iterdir())
            if not file.name.startswith(".") and file.is_file()
        ]
        found: dict[str, str] = {}
        for file in files:
            if file.name != _NO_LABELS:
                text = _read(file)
                found |= (
                    _parse(file, text)
                    if "=" in text or not text.strip()
                    else {file.name: text.strip()}
                )
        return found
    except OSError as error:
        raise UsageError(
            f"cannot read labels from {path}: {error.strerror}", "name a file of key=value lines"
        ) from None


def _read(path: Path) -> str:
    with path.open("rb") as file:
        return file.read(_LARGEST_BYTES).decode("utf-8", "backslashreplace")


def _parse(path: Path, text: str) -> dict[str, str]:
    found = {}
    for number, line in enumerate(text.splitlines(), 1):
        if not line.strip() or line.lstrip().startswith("#"):
            continue
        name, equals, value = line.strip().partition("=")
        if not name.strip() or not equals:
            raise UsageError(
                f"{path}, line {number} is not key=value", "write it as: zone=us-east-1a"
            )
        found[name.strip()] = _unquote(value.strip())
    return found


def _unquote(text: str) -> str:
    """The downward API quotes as Go does, which for all that is allowed in a label is as JSON
    does.
    """
    if len(text) >= 2 and text[0] == text[-1] == '"':
        try:
            return str(json.loads(text))
        except ValueError:
            return text[1:-1]
    return text


def _size(text: str) -> int:
    return len(text.encode("utf-8", "replace"))
