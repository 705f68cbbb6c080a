"""Numbers that decide: every rule is handed its own, and says why each is what it is."""

import ast
import inspect
from types import ModuleType

import pytest

from necroscope.analysis import scheduling
from necroscope.analysis.cause import Cause
from necroscope.analysis.causes import all_causes
from necroscope.analysis.thresholds import Threshold, Thresholds


def test_one_threshold_is_scaled_and_the_others_stay() -> None:
    limits = Thresholds(least=Threshold(0.1, "noise"), confirmed=Threshold(0.2, "much"))
    scaled = limits.scale("least", 1.5)
    assert (scaled.least, scaled.confirmed) == (pytest.approx(0.15), 0.2)
    assert limits.least == 0.1


@pytest.mark.parametrize("cause", all_causes(), ids=lambda cause: cause.slug)
def test_every_threshold_has_a_reason_in_words(cause: Cause) -> None:
    assert [name for name, limit in cause.limits if len(limit.reason.split()) < 3] == []


@pytest.mark.parametrize("cause", all_causes(), ids=lambda cause: cause.slug)
def test_a_rule_reads_only_the_thresholds_it_has(cause: Cause) -> None:
    module = inspect.getmodule(cause.assess)
    assert module is not None
    read = names_read(module) | (names_read(scheduling) if hasattr(module, "FAIRNESS") else set())
    assert read <= {name for name, _ in cause.limits}
    assert {name for name, _ in cause.thresholds} <= read


def names_read(module: ModuleType) -> set[str]:
    """`name` of every `limits.name` in a module."""
    return {
        node.attr
        for node in ast.walk(ast.parse(inspect.getsource(module)))
        if isinstance(node, ast.Attribute)
        and isinstance(node.value, ast.Attribute | ast.Name)
        and (node.value.attr if isinstance(node.value, ast.Attribute) else node.value.id)
        == "limits"
    }
