"""What holds for every cause: its file tells its story, and no rule knows the names that the lab
invents.
"""

import ast
import importlib
import inspect
import re
from pathlib import Path

import pytest

import necroscope
from necroscope.analysis.cause import Cause
from necroscope.analysis.causes import all_causes

ANALYSIS = Path(necroscope.__file__).parent / "analysis"


@pytest.mark.parametrize("cause", all_causes(), ids=lambda cause: cause.slug)
def test_the_file_of_a_cause_opens_with_its_story(cause: Cause) -> None:
    module = inspect.getmodule(cause.assess)
    assert module is not None
    story = " ".join((module.__doc__ or "").split())
    assert [
        word for word in ("Signature:", "Confirming signal:", "Source:") if word not in story
    ] == []
    assert module.__name__.rpartition(".")[2] == cause.slug.replace("-", "_")


def test_no_rule_knows_a_name_of_the_lab() -> None:
    """Names that it invents, and the name under which its own BPF programs stand in stacks."""
    names = importlib.import_module("necroscope.lab.names")
    invented = {
        f"{word}-{tail}"
        for kind, words in names._WORDS.items()
        for word in words
        for tail in names._TAILS[kind]
    }
    for path in ANALYSIS.rglob("*.py"):
        texts = [
            node.value
            for node in ast.walk(ast.parse(path.read_text("utf-8")))
            if isinstance(node, ast.Constant) and isinstance(node.value, str)
        ]
        assert not [text for text in texts for name in invented if name in text], path.name
        assert not [text for text in texts if re.search(r"[*_]necroscope|necroscope[*_]", text)], (
            path.name
        )
