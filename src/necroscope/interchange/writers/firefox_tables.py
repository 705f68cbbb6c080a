"""The tables that all threads of a Firefox profile share: stacks, frames, functions, libraries,
strings (format version 61).
"""

from typing import Any, Final

from necroscope.interchange.writers.window import UNKNOWN, SampleColumns, Strings
from necroscope.stacks.tree import Tree

Json = dict[str, Any]
Modules = dict[tuple[str, str | None], int]
# The viewer takes the first grey one for what has no category.
CATEGORIES: Final = [
    {"name": name, "color": color, "subcategories": ["Other"]}
    for name, color in (
        ("Other", "grey"),
        ("Kernel", "orange"),
        ("User", "yellow"),
        ("JIT", "green"),
        ("Event", "red"),
    )
]
EVENT_CATEGORY: Final = 4
_CATEGORY_OF_KIND: Final = {"kernel": 1, "user": 2, "jit": 3}
_LIBRARY_RESOURCE: Final = 1
_NO_ADDRESS: Final = -1


def _modules(columns: SampleColumns) -> Modules:
    keys = dict.fromkeys((frame.module, frame.build_id) for frame in columns.frames)
    return {key: number for number, key in enumerate(keys)}


def libraries(columns: SampleColumns) -> list[Json]:
    return [_library(module, build_id) for module, build_id in _modules(columns)]


def _library(module: str, build_id: str | None) -> Json:
    name = module.rsplit("/", 1)[-1]
    identity = {"breakpadId": breakpad_id(build_id), "codeId": build_id}
    return {
        "arch": "",
        "name": name,
        "path": module,
        "debugName": name,
        "debugPath": module,
        **identity,
    }


def breakpad_id(build_id: str | None) -> str:
    """The first 16 bytes of a GNU build id, read as a little-endian GUID, and the age 0."""
    try:
        raw = bytes.fromhex(build_id or "")[:16].ljust(16, b"\0")
    except ValueError:
        raw = bytes(16)
    return (raw[3::-1] + raw[5:3:-1] + raw[7:5:-1] + raw[8:]).hex().upper() + "0"


def shared_tables(columns: SampleColumns, stacks: Tree, strings: Strings) -> Json:
    modules = _modules(columns)
    parents = stacks.parent.tolist()
    return {
        "stackTable": {
            "frame": stacks.frame.tolist(),
            "prefix": [None if parent == UNKNOWN else parent for parent in parents],
            "length": len(stacks),
        },
        "frameTable": _frame_table(columns),
        "funcTable": _function_table(columns, modules, strings),
        "resourceTable": {
            "lib": list(range(len(modules))),
            "name": [strings(module.rsplit("/", 1)[-1]) for module, _ in modules],
            "host": [None] * len(modules),
            "type": [_LIBRARY_RESOURCE] * len(modules),
            "length": len(modules),
        },
        "nativeSymbols": _empty_table("libIndex", "address", "name", "functionSize"),
        "sources": _empty_table("id", "filename", "startLine", "startColumn", "sourceMapURL"),
    }


def _frame_table(columns: SampleColumns) -> Json:
    count = len(columns.frames)
    nothing = [None] * count
    return {
        "address": [_NO_ADDRESS] * count,
        "inlineDepth": [0] * count,
        "category": [_CATEGORY_OF_KIND.get(frame.kind, 0) for frame in columns.frames],
        "subcategory": [0] * count,
        "func": list(range(count)),
        "nativeSymbol": nothing,
        "innerWindowID": [0] * count,
        "line": nothing,
        "column": nothing,
        "length": count,
    }


def _function_table(columns: SampleColumns, modules: Modules, strings: Strings) -> Json:
    count = len(columns.frames)
    nothing = [None] * count
    return {
        "isJS": [False] * count,
        "relevantForJS": [False] * count,
        "name": [strings(frame.name) for frame in columns.frames],
        "resource": [modules[frame.module, frame.build_id] for frame in columns.frames],
        "source": nothing,
        "lineNumber": nothing,
        "columnNumber": nothing,
        "length": count,
    }


def _empty_table(*columns: str) -> Json:
    return {**{column: [] for column in columns}, "length": 0}
