"""The expression on frames: what it finds, what it cannot be, and that no name and no expression
keeps it long.
"""

import time

import pyarrow as pa
import pytest

from necroscope.errors import UsageError
from necroscope.store.matching import matching
from necroscope.store.selection import Selection


def frames(*names: tuple[str | None, str]) -> pa.Table:
    """In two chunks, each with a dictionary of its own, as they are read."""
    functions, modules = zip(*names, strict=True)
    chunks = [
        pa.table(
            {
                "function": pa.array([function], pa.string()),
                "module": pa.array([module]).dictionary_encode(),
            }
        )
        for function, module in zip(functions, modules, strict=True)
    ]
    return pa.concat_tables(chunks)


TABLE = frames(
    ("mem_cgroup_iter", "[kernel]"), (None, "/usr/lib/libc.so.6"), ("Größe", "/usr/bin/app")
)


@pytest.mark.parametrize(
    ("expression", "found"),
    [
        ("cgroup", [True, False, False]),
        ("^mem_.*iter$", [True, False, False]),
        (r"libc\.so", [False, True, False]),
        ("(?i)KERNEL", [True, False, False]),
        ("größe|Größe", [False, False, True]),
        ("/usr/(lib|bin)/", [False, True, True]),
        ("", [True, True, True]),
    ],
)
def test_a_function_or_a_module_is_found_and_a_lost_frame_is_not(
    expression: str, found: list[bool]
) -> None:
    assert matching(expression, TABLE).tolist() == [*found, False]


@pytest.mark.parametrize(
    "expression", ["f(", "[", "*", "a{2000}", "(?=look)ahead", r"(a)\1", "\udc80"]
)
def test_what_is_none_is_reported_with_what_is_not_supported(expression: str) -> None:
    with pytest.raises(UsageError, match="not a valid regular expression") as found:
        Selection.of(frames=expression)
    assert "look-around and back-references are not supported" in found.value.hint


@pytest.mark.parametrize("expression", ["(a+)+$", "(a|aa)+$", "(.*a){20}b"])
def test_no_expression_takes_long_on_a_long_name(expression: str) -> None:
    table = frames(("a" * 5000 + "!", "[kernel]"))
    started_s = time.perf_counter()
    assert matching(expression, table).tolist() == [False, False]
    assert time.perf_counter() - started_s < 5
