"""What of a recording is for its owner only: texts are replaced, or left out, when it is shown to
strangers.
"""

import re
from collections.abc import Callable, Mapping
from typing import Final

import pyarrow as pa
import pyarrow.compute as pc

# Facts about how a node is set up, and not whose it is or what is installed on it.
_SHOWN_FACTS: Final = [
    "boot",
    "cgroup",
    "cpu",
    "kernel",
    "memory",
    "module",
    "nic",
    "numa",
    "os",
    "sysctl",
    "systemd",
    "thp",
]
_HIDDEN: Final = "(redacted)"
_PATHS: Final = {"frames": ("module",), "tasks": ("argv0", "file", "executable")}
# Words that a daemon, a program or Ray chose; the kernel's own lines name devices and tasks.
_WORDS: Final = {"events": ("message", "lines", "fields")}
# A path outside of what every system has.
_OWN_PATH: Final = re.compile(r"/(?!usr/|lib|bin/|sbin/|proc\b|sys/|dev/)(?:[^/\0]*/)+")


class Renamer:
    """Replaces texts in every column that holds names."""

    def __init__(self, renames: Mapping[str, str]) -> None:
        self._renames = renames

    def text(self, text: str) -> str:
        for old, new in self._renames.items():
            text = text.replace(old, new)
        return text

    def labels(self, labels: Mapping[str, str]) -> dict[str, str]:
        return {self.text(key): self.text(value) for key, value in labels.items()}

    def rows(self, name: str, rows: pa.Table) -> pa.Table:  # noqa: ARG002 - all tables alike
        if not self._renames:
            return rows
        names = [
            field.name
            for field in rows.schema
            if pa.types.is_dictionary(field.type) or pa.types.is_string(field.type)
        ]
        return _replace(rows, names, self.text)


class Redactor(Renamer):
    """Leaves out the log, labels, packages, programs and whatever says whose node it is; of paths
    it leaves the last part.
    """

    def __init__(self, renames: Mapping[str, str], node: str) -> None:
        super().__init__({**renames, **({node: "node"} if node else {})})

    def labels(self, labels: Mapping[str, str]) -> dict[str, str]:  # noqa: ARG002 - none is shown
        return {}

    def rows(self, name: str, rows: pa.Table) -> pa.Table:
        if name == "log":
            return rows.slice(0, 0)
        if name == "facts":
            kinds = pc.cast(rows.column("kind"), pa.string())
            shown = pc.is_in(kinds, pa.array(_SHOWN_FACTS))
            is_kept = pc.not_equal(pc.cast(rows.column("name"), pa.string()), "command_line")
            rows = rows.filter(pc.and_(shown, is_kept))
        rows = super().rows(name, rows)
        rows = _replace(rows, _PATHS.get(name, ()), lambda text: _OWN_PATH.sub(f"{_HIDDEN}/", text))
        if name in _WORDS and rows.num_rows:
            by_kernel = pc.fill_null(rows.column("by_kernel"), fill_value=False)
            for column in _WORDS[name]:
                place = rows.schema.get_field_index(column)
                kept = pc.if_else(by_kernel, rows.column(column), _HIDDEN)
                rows = rows.set_column(place, rows.schema.field(place), kept)
        return rows


def _replace(
    rows: pa.Table, names: tuple[str, ...] | list[str], new: Callable[[str], str]
) -> pa.Table:
    rows = rows.unify_dictionaries().combine_chunks() if names else rows
    for name in names:
        place = rows.schema.get_field_index(name)
        if place < 0:
            continue
        field, texts = rows.schema.field(place), rows.column(place).to_pylist()
        known = {text: None if text is None else new(text) for text in set(texts)}
        column = pa.array([known[text] for text in texts], pa.string()).cast(field.type)
        rows = rows.set_column(place, field, column)
    return rows
