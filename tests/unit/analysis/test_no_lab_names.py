"""The diagnosis is scored in the lab, so it may know nothing of the lab: no rule keys on a name
that only the lab uses.
"""

import ast
import re
from collections.abc import Iterator
from pathlib import Path

import necroscope
from necroscope.lab import names

PACKAGE = Path(necroscope.__file__).parent
OWN_WORDS = {"necroscope-lab", "necroscope_lab", "label.json"}
# The name under which the recorder's own BPF programs stand in stacks.
OWN_PROGRAM = re.compile(r"[*_]necroscope|necroscope[*_]")


def trees(folder: str) -> Iterator[tuple[Path, ast.Module]]:
    for path in sorted((PACKAGE / folder).rglob("*.py")):
        yield path, ast.parse(path.read_text("utf-8"))


def texts(tree: ast.Module) -> Iterator[str]:
    """Constant texts but for docstrings, which may tell of the lab."""
    found = {
        id(node.body[0].value)
        for node in ast.walk(tree)
        if isinstance(node, ast.Module | ast.ClassDef | ast.FunctionDef)
        and node.body
        and isinstance(node.body[0], ast.Expr)
    }
    for node in ast.walk(tree):
        if isinstance(node, ast.Constant) and isinstance(node.value, str) and id(node) not in found:
            yield node.value


def given_comms(tree: ast.Module) -> Iterator[str]:
    """Names of processes that a scenario writes out instead of inventing them."""
    for node in ast.walk(tree):
        if (
            isinstance(node, ast.keyword)
            and node.arg == "comm"
            and isinstance(node.value, ast.Constant)
        ):
            yield str(node.value.value)


def test_no_rule_knows_a_name_of_the_lab():
    invented = {
        f"{word}-{tail}"
        for kind, words in names._WORDS.items()
        for word in words
        for tail in names._TAILS[kind]
    }
    comms = {comm for _, tree in trees("lab") for comm in given_comms(tree)}
    assert "telemetry-agent" in invented
    assert "make" in comms
    found = [
        f"{path.relative_to(PACKAGE)}: {text!r}"
        for path, tree in trees("analysis")
        for text in texts(tree)
        if text in comms
        or any(name in text for name in invented | OWN_WORDS)
        or OWN_PROGRAM.search(text)
    ]
    assert found == []


def test_the_analysis_does_not_import_the_lab():
    for path, tree in trees("analysis"):
        modules = [node.module or "" for node in ast.walk(tree) if isinstance(node, ast.ImportFrom)]
        assert not [module for module in modules if "necroscope.lab" in module], path
