"""The tree is the architecture: who may import whom, what runs without numpy or Linux, and how long
a file may grow.
"""

import ast
import re
import sys
import tomllib
from collections.abc import Iterator
from importlib.metadata import packages_distributions
from pathlib import Path

from necroscope.cli.extras import EXTRAS

ROOT = Path(__file__).parents[1]
PACKAGE = ROOT / "src" / "necroscope"

FOUNDATION = {"errors", "settings", "model"}
KERNEL_SIDE = {"perf_abi", "symbols", "profile", "sources", "recorder"}
READING_SIDE = {
    "segment",
    "stacks",
    "store",
    "interchange",
    "analysis",
    "verdicts",
    "views",
    "wire",
    "outlets",
    "fleet",
}
# What a node and a collector say to each other is a part of its own: nodes load it and nothing
# else of the fleet.
WIRE = {
    f"necroscope.fleet.{module}"
    for module in ("backoff", "bundle", "lake_tables", "limits", "protocol", "request")
}
# The flow, in order: a part imports only those named here, and itself.
MAY_IMPORT = {
    "__init__": {"api"},
    "errors": set(),
    "model": {"errors"},
    "settings": {"errors", "model"},
    "native": {"errors"},
    "perf_abi": FOUNDATION,
    "symbols": FOUNDATION | {"native", "perf_abi"},
    "profile": FOUNDATION | {"native", "perf_abi", "symbols"},
    "sources": FOUNDATION | {"native", "perf_abi", "symbols", "profile"},
    "segment": FOUNDATION,
    "recorder": FOUNDATION | {"perf_abi", "symbols", "sources", "segment"},
    "stacks": {"errors", "model"},
    "store": FOUNDATION | {"segment", "stacks"},
    # Copies of the kernel's files are parsed as the recorder parses the files.
    "interchange": FOUNDATION
    | {"perf_abi", "symbols", "profile", "sources", "segment", "stacks", "store"},
    "analysis": FOUNDATION | {"stacks"},
    "verdicts": FOUNDATION | {"segment", "store", "analysis"},
    "views": FOUNDATION | {"stacks", "store", "analysis", "verdicts"},
    "wire": FOUNDATION | {"segment", "store"},
    "outlets": FOUNDATION
    | {"segment", "stacks", "store", "interchange", "analysis", "verdicts", "views", "wire"},
    "fleet": FOUNDATION | READING_SIDE - {"fleet"},
    "api": FOUNDATION | {"stacks", "store", "interchange", "analysis", "verdicts", "views"},
    "stakeout": FOUNDATION | {"store", "analysis"},
    "treat": FOUNDATION | {"sources", "analysis"},
    "lab": FOUNDATION | KERNEL_SIDE | READING_SIDE | {"stakeout"},
    "cli": FOUNDATION | KERNEL_SIDE | READING_SIDE | {"stakeout", "treat", "lab"},
    "__main__": {"cli"},
}
# The recorder process lives for weeks on somebody's node: these, and all they import, are standard
# library only.
RECORDER_SIDE = re.compile(
    r"necroscope\.(errors|settings|(model|perf_abi|profile|sources|recorder)(\..+)?"
    r"|segment\.(frame|journal|manifest|checksum|recording)|symbols\.lookup)"
)
# A laptop of any system opens a node's recording, so these import nothing at their top that only
# Unix has ...
ANY_SYSTEM = {
    "errors",
    "settings",
    "model",
    "segment",
    "stacks",
    "store",
    "interchange",
    "analysis",
    "views",
}
UNIX_MODULES = {"fcntl", "grp", "posix", "pty", "pwd", "resource", "syslog", "termios", "tty"}
# ... but for what only the writer of a recording needs, and the others leave alone.
UNIX_ONLY = {
    "necroscope.segment.lock",
    "necroscope.segment.seal_child",
    "necroscope.segment.seal_writer",
}

FILE_LINES = 400
FUNCTION_LINES = 50
# Directories that are built, not written.
MADE = {"__pycache__", "node_modules", "static"}
EMPTY_WORDS = {"util", "utils", "common", "helper", "helpers", "manager", "managers", "misc"}


def _distribution(requirement: str) -> str:
    return re.split(r"[^\w-]", requirement)[0]


def module_name(path: Path) -> str:
    parts = path.relative_to(PACKAGE.parent).with_suffix("").parts
    return ".".join(parts[:-1] if parts[-1] == "__init__" else parts)


MODULES = {module_name(path): path for path in sorted(PACKAGE.rglob("*.py"))}
TREES = {name: ast.parse(path.read_text("utf-8")) for name, path in MODULES.items()}
FILES = sorted(
    path
    for folder in ("src", "web", "tests", "benchmarks", "docs", "deploy", "scripts", ".ci")
    for path in (ROOT / folder).rglob("*")
    if path.is_file() and not MADE & set(path.parts)
) + sorted(path for path in ROOT.glob("*") if path.suffix in {".md", ".toml"})
PYTHON_FILES = [path for path in FILES if path.suffix == ".py" and "data" not in path.parts]


def relative(path: Path) -> str:
    return str(path.relative_to(ROOT))


def layer_of(name: str) -> str:
    return "wire" if name in WIRE else [*name.split("."), "__init__"][1]


def imported_by(node: ast.AST) -> Iterator[str]:
    """Full names an import statement may load: `from a import b` loads a, and a.b where that is a
    module.
    """
    if isinstance(node, ast.Import):
        yield from (alias.name for alias in node.names)
    elif isinstance(node, ast.ImportFrom) and node.module:
        yield node.module
        yield from (
            f"{node.module}.{alias.name}"
            for alias in node.names
            if f"{node.module}.{alias.name}" in MODULES
        )


def imports(name: str) -> set[str]:
    """Of a module, also those inside its functions and those for the type checker alone."""
    return {imported for node in ast.walk(TREES[name]) for imported in imported_by(node)}


def imports_when_run(name: str, *, in_functions: bool) -> set[str]:
    """What importing the module loads, or also what its functions load when called."""
    later = () if in_functions else (ast.FunctionDef, ast.AsyncFunctionDef, ast.Lambda)
    waiting: list[ast.AST] = [TREES[name]]
    found: set[str] = set()
    while waiting:
        node = waiting.pop()
        if not isinstance(node, later) and not (
            isinstance(node, ast.If) and ast.unparse(node.test) == "TYPE_CHECKING"
        ):
            found.update(imported_by(node))
            waiting.extend(ast.iter_child_nodes(node))
    return found


def packages_of(name: str) -> set[str]:
    """Importing a.b.c runs a and a.b first."""
    parts = name.split(".")
    return {".".join(parts[:end]) for end in range(1, len(parts))}


def reached_from(names: set[str]) -> set[str]:
    """These modules of ours and all that they load."""
    reached: set[str] = set()
    waiting = set(names)
    while waiting:
        reached |= waiting
        loaded = {
            imported for name in waiting for imported in imports_when_run(name, in_functions=True)
        } | waiting
        waiting = (loaded.union(*map(packages_of, loaded)) & MODULES.keys()) - reached
    return reached


def test_every_part_imports_only_what_it_may() -> None:
    for name in MODULES:
        layer = layer_of(name)
        assert layer in MAY_IMPORT, f"{name}: its part has no place in the import table"
        used = {
            layer_of(imported) for imported in imports(name) if imported.startswith("necroscope.")
        }
        assert not used - MAY_IMPORT[layer] - {layer}, f"{name} may not import these"


def test_imports_are_absolute() -> None:
    for name, tree in TREES.items():
        assert not [
            node.lineno
            for node in ast.walk(tree)
            if isinstance(node, ast.ImportFrom) and node.level
        ], name


def test_the_import_table_has_no_cycle() -> None:
    placed: set[str] = set()
    while remaining := MAY_IMPORT.keys() - placed:
        ready = {layer for layer in remaining if MAY_IMPORT[layer] <= placed}
        assert ready, f"cycle among {sorted(remaining)}"
        placed |= ready


def test_modules_import_each_other_in_no_cycle() -> None:
    # A module's own packages do not count: they have begun to run before the module does.
    needs = {
        name: imports_when_run(name, in_functions=False) - {name} - packages_of(name)
        for name in MODULES
    }
    while needs:
        ready = {name for name, found in needs.items() if not found & needs.keys()}
        assert ready, f"cycle among {sorted(needs)}"
        needs = {name: found for name, found in needs.items() if name not in ready}


def test_the_recorder_side_is_standard_library_only() -> None:
    for name in reached_from({name for name in MODULES if RECORDER_SIDE.fullmatch(name)}):
        packages = {
            imported.split(".")[0] for imported in imports_when_run(name, in_functions=True)
        }
        assert not packages - sys.stdlib_module_names - {"necroscope"}, (
            f"{name} is loaded by the recorder"
        )


def test_what_opens_recordings_imports_on_any_system() -> None:
    for name in MODULES:
        if layer_of(name) in ANY_SYSTEM and name not in UNIX_ONLY:
            assert not imports_when_run(name, in_functions=False) & (UNIX_MODULES | UNIX_ONLY), name


def test_every_package_that_is_imported_is_the_base_or_an_extra_that_the_error_names() -> None:
    project = tomllib.loads((ROOT / "pyproject.toml").read_text("utf-8"))["project"]
    base = {_distribution(text) for text in project["dependencies"]}
    of_extra = {
        extra: {_distribution(text) for text in texts}
        for extra, texts in project["optional-dependencies"].items()
    }
    brought_by = packages_distributions()
    imported = {
        name.partition(".")[0]
        for tree in MODULES
        for name in imports(tree)
        if name.partition(".")[0] not in sys.stdlib_module_names | {"necroscope", "hatchling"}
    }
    extras = {
        module: {extra for extra, brought in of_extra.items() if brought & {*names}}
        for module in imported
        if not base & {*(names := brought_by.get(module, [module]))}
    }
    assert extras == {module: {*named} for module, named in EXTRAS.items()}
    assert of_extra["all"] == {"necroscope"}


def test_children_look_for_no_module_where_we_were_started() -> None:
    """`python -m` finds modules in the current directory first, which may be anybody's, and a
    recorder's children are root.
    """
    for name, tree in TREES.items():
        commands = [
            [ast.unparse(word) for word in node.elts]
            for node in ast.walk(tree)
            if isinstance(node, ast.List)
        ]
        pythons = [words for words in commands if {"sys.executable", "'-m'"} & set(words)]
        assert not [words for words in pythons if words[1] != "'-P'"], name


def test_views_do_not_import_each_other() -> None:
    views = {name for name in MODULES if name.startswith("necroscope.views.")}
    # How values are written is the same in all of them.
    others = views - {"necroscope.views.format"}
    for name in views:
        assert not {
            other for other in imports(name) & others if other.split(".")[2] != name.split(".")[2]
        }, name


def test_every_module_says_what_it_is_for() -> None:
    assert not [name for name, tree in TREES.items() if not ast.get_docstring(tree)]


def test_no_public_class_has_the_name_of_another() -> None:
    homes: dict[str, list[str]] = {}
    for path in sorted(PACKAGE.rglob("*.py")):
        for node in ast.parse(path.read_text()).body:
            if isinstance(node, ast.ClassDef) and not node.name.startswith("_"):
                homes.setdefault(node.name, []).append(str(path.relative_to(PACKAGE)))
    assert {name: places for name, places in homes.items() if len(places) > 1} == {}


def test_files_stay_short() -> None:
    assert not {
        relative(path): lines
        for path in PYTHON_FILES
        if (lines := path.read_text("utf-8").count("\n")) > FILE_LINES
    }


def test_functions_stay_short() -> None:
    for path in PYTHON_FILES:
        functions = [
            node
            for node in ast.walk(ast.parse(path.read_text("utf-8")))
            if isinstance(node, ast.FunctionDef)
        ]
        lengths = {
            function.name: (function.end_lineno or 0) - function.lineno + 1
            for function in functions
        }
        assert not {name for name, lines in lengths.items() if lines > FUNCTION_LINES}, relative(
            path
        )


def test_names_say_something() -> None:
    for path in PYTHON_FILES:
        classes = [
            node.name
            for node in ast.walk(ast.parse(path.read_text("utf-8")))
            if isinstance(node, ast.ClassDef)
        ]
        words = re.findall(
            r"[A-Za-z][a-z]*", " ".join([*path.relative_to(ROOT).with_suffix("").parts, *classes])
        )
        assert not {word.lower() for word in words} & EMPTY_WORDS, relative(path)


def test_files_name_no_registry_and_no_machine_path() -> None:
    registry = r"(?:pypi|pythonhosted|npmjs|crates)\.(?:org|com|io)|[-_]index[-_]url"
    working_copy = (
        "/" + r"work/(?:main|shared)\b|/root/\.pyenv"
    )  # in two parts, so that this file does not hold one itself
    for path in FILES:
        assert not re.search(
            f"{registry}|{working_copy}", path.read_text("utf-8", errors="replace")
        ), relative(path)
